package podtopologyspread

// topology is one constraint's view of the nodes: the domains, which are the
// values of its topology key, and the matching pods in each. Ids of domains
// that lost their last node are used again: no row has such an id then.
type topology struct {
	byValue map[string]int32
	domains []domain
	free    []int32
	// tally counts domains that eligible nodes are in (hard constraints only).
	tally tally
}

type domain struct {
	value    string
	places   int // that name it
	eligible int // rows that count for it
	pods     int // matching pods on those rows
	seen     uint64
}

// hold returns the id of the domain with that value, for one more place.
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
	t.domains[id].places++
	return id
}

func (t *topology) release(id int32) {
	d := &t.domains[id]
	if d.places--; d.places == 0 {
		delete(t.byValue, d.value)
		*d = domain{}
		t.free = append(t.free, id)
	}
}

// site says where a node is in one topology: the id of a domain, or one of the
// values below. bare marks a node that lacks the label and counts, all the
// same, for the domain of the empty value.
type site int32

const (
	missing site = -1 // the node lacks the label
	own     site = -2 // the node is a domain of its own, counted with its row
)

func at(id int32, bare bool) site {
	s := site(id) << 1
	if bare {
		s |= 1
	}
	return s
}

func (s site) domain() int32 { return int32(s >> 1) }
func (s site) bare() bool    { return s&1 != 0 }
