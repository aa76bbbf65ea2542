package domain

// Ids gives names small numbers (ids) from 0 while they have holders, and keeps a T for
// each. The id of a name without holders is used again, so that there are never more ids
// than names were held at one time. The zero value is ready to use; it has one owner.
type Ids[T any] struct {
	byName map[string]int32
	list   []idEntry[T]
	free   []int32
}

// idEntry is what Ids keeps for one id: the name, the number of its holders, and the
// caller's T.
type idEntry[T any] struct {
	name    string
	holders int
	of      T
}

// Hold adds a holder to the name and returns its id. known reports whether the name had
// holders already; otherwise its T is zero.
func (s *Ids[T]) Hold(name string) (id int32, known bool) {
	if id, known = s.byName[name]; !known {
		id = s.add(name)
	}
	s.list[id].holders++
	return id, known
}

// HoldBytes adds a holder to the name and returns its id. It allocates nothing for a name
// that has holders already, and does not keep the slice. known is false for a name that
// had none; its T is zero then.
func (s *Ids[T]) HoldBytes(name []byte) (id int32, known bool) {
	if id, known = s.byName[string(name)]; !known {
		id = s.add(string(name))
	}
	s.list[id].holders++
	return id, known
}

// add gives the name an id, a free one if there is one, without a holder.
func (s *Ids[T]) add(name string) (id int32) {
	if n := len(s.free); n > 0 {
		id, s.free = s.free[n-1], s.free[:n-1]
	} else {
		id = int32(len(s.list))
		s.list = append(s.list, idEntry[T]{})
	}
	if s.byName == nil {
		s.byName = map[string]int32{}
	}
	s.byName[name] = id
	s.list[id].name = name
	return id
}

// Release removes a holder of the id. With the last one the name and its T are removed;
// of is the T then, and last is true.
func (s *Ids[T]) Release(id int32) (of T, last bool) {
	h := &s.list[id]
	if h.holders--; h.holders > 0 {
		return of, false
	}
	of = h.of
	delete(s.byName, h.name)
	*h = idEntry[T]{}
	s.free = append(s.free, id)
	return of, true
}

// At returns a pointer to the T that is kept for the id, to read or change it. It is valid
// until the next Hold.
func (s *Ids[T]) At(id int32) *T { return &s.list[id].of }

// Name returns the name of the id.
func (s *Ids[T]) Name(id int32) string { return s.list[id].name }

// Held returns the number of names that have holders; free ids do not count.
func (s *Ids[T]) Held() int { return len(s.byName) }

// Len returns the number of ids in use or free; all are below it. Free ids have the zero
// T and no name.
func (s *Ids[T]) Len() int { return len(s.list) }
