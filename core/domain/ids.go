package domain

// ids gives names small numbers (ids) from 0 while they have holders. The id of a name without
// holders is used again, so that there are never more ids than names were held at one time. The
// zero value is ready to use; it has one owner.
type ids struct {
	byName map[string]int32
	list   []heldName // by id
	free   []int32    // ids without a name
}

// heldName is a name that has an id, and the number of its holders.
type heldName struct {
	name    string
	holders int
}

// hold adds a holder to the name and returns its id. known reports whether the name had
// holders already.
func (s *ids) hold(name string) (id int32, known bool) {
	if id, known = s.byName[name]; !known {
		id = s.add(name)
	}
	s.list[id].holders++
	return id, known
}

// holdBytes adds a holder to the name and returns its id. It allocates nothing for a name
// that has holders already, and does not keep the slice. known is false for a name that
// had none.
func (s *ids) holdBytes(name []byte) (id int32, known bool) {
	if id, known = s.byName[string(name)]; !known {
		id = s.add(string(name))
	}
	s.list[id].holders++
	return id, known
}

// add gives the name, which has none, an id, a free one if there is one. It adds no holder.
func (s *ids) add(name string) (id int32) {
	if n := len(s.free); n > 0 {
		id, s.free = s.free[n-1], s.free[:n-1]
	} else {
		id = int32(len(s.list))
		s.list = append(s.list, heldName{})
	}
	if s.byName == nil {
		s.byName = map[string]int32{}
	}
	s.byName[name] = id
	s.list[id].name = name
	return id
}

// release removes a holder of the id. With the last one the name is removed.
func (s *ids) release(id int32) {
	h := &s.list[id]
	if h.holders--; h.holders > 0 {
		return
	}
	delete(s.byName, h.name)
	*h = heldName{}
	s.free = append(s.free, id)
}

// held returns the number of names that have holders; free ids do not count.
func (s *ids) held() int { return len(s.byName) }

// len returns the number of ids in use or free; all are below it. Free ids have no name.
func (s *ids) len() int { return len(s.list) }
