package podtopologyspread

import "encoding/binary"

// places are where nodes are, each once. Ids of places without a node are used
// again.
type places struct {
	byKey map[string]int32
	list  []place
	free  []int32
}

// place is where a node is in all topologies. Nodes with the same labels share
// one. A place that lacks a label that is needed ends with the first such.
type place struct {
	key   string
	sites []site // by constraint
	whole bool   // no label is missing
	rows  int
}

// of returns the place of a cell that has one. It is valid until the next join.
func (p *places) of(cell int64) *place { return &p.list[placeOf(cell)] }

// join finds or makes the place for one more row.
func (p *places) join(sites []site, whole bool) (id int32, known bool) {
	key := make([]byte, 0, 64)
	for _, s := range sites {
		key = binary.LittleEndian.AppendUint32(key, uint32(s))
	}
	if id, known = p.byKey[string(key)]; known {
		p.list[id].rows++
		return id, true
	}
	if n := len(p.free); n > 0 {
		id, p.free = p.free[n-1], p.free[:n-1]
	} else {
		id = int32(len(p.list))
		p.list = append(p.list, place{})
	}
	p.list[id] = place{key: string(key), sites: append([]site(nil), sites...), whole: whole, rows: 1}
	p.byKey[string(key)] = id
	return id, false
}

// leave takes a row off the place. When it was the last, empty is true and the
// domains of the sites are to be released.
func (p *places) leave(id int32) (sites []site, empty bool) {
	at := &p.list[id]
	if at.rows--; at.rows > 0 {
		return nil, false
	}
	sites = at.sites
	delete(p.byKey, at.key)
	*at = place{}
	p.free = append(p.free, id)
	return sites, true
}
