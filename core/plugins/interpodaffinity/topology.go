package interpodaffinity

import "encoding/binary"

// topology is the nodes by one label: the domains, which are its values, and
// what speaks for or against each. Ids of domains that lost their last node
// are used again: no row has such an id then.
type topology struct {
	key     string
	byValue map[string]int32
	domains []domain
	free    []int32
}

type domain struct {
	value string
	rows  int
	sums  [kinds]int64
}

// hold returns the id of the domain with that value, for one more row.
func (t *topology) hold(value string) int32 {
	id, ok := t.byValue[value]
	if !ok {
		if n := len(t.free); n > 0 {
			id, t.free = t.free[n-1], t.free[:n-1]
		} else {
			id = int32(len(t.domains))
			t.domains = append(t.domains, domain{})
		}
		t.byValue[value] = id
		t.domains[id] = domain{value: value}
	}
	t.domains[id].rows++
	return id
}

func (t *topology) release(id int32) {
	d := &t.domains[id]
	if d.rows--; d.rows == 0 {
		delete(t.byValue, d.value)
		*d = domain{}
		t.free = append(t.free, id)
	}
}

// site says where a node is in one topology: the id of a domain, or one of the
// values below.
type site = int32

const (
	missing site = -1 // the node lacks the label
	own     site = -2 // the node is a domain of its own, counted with its row
)

// places are where nodes are, in all topologies, each once. Ids of places
// without a node are used again.
type places struct {
	byKey map[string]int32
	list  []place
	free  []int32
	buf   []byte
}

type place struct {
	key   string
	sites []site // by topology
	rows  int
}

// join finds or makes the place for one more row.
func (p *places) join(sites []site) int32 {
	p.buf = p.buf[:0]
	for _, s := range sites {
		p.buf = binary.LittleEndian.AppendUint32(p.buf, uint32(s))
	}
	id, known := p.byKey[string(p.buf)]
	if !known {
		if n := len(p.free); n > 0 {
			id, p.free = p.free[n-1], p.free[:n-1]
		} else {
			id = int32(len(p.list))
			p.list = append(p.list, place{})
		}
		key := string(p.buf)
		p.list[id] = place{key: key, sites: append([]site(nil), sites...)}
		p.byKey[key] = id
	}
	p.list[id].rows++
	return id
}

func (p *places) leave(id int32) {
	at := &p.list[id]
	if at.rows--; at.rows == 0 {
		delete(p.byKey, at.key)
		*at = place{}
		p.free = append(p.free, id)
	}
}
