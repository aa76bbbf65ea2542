package podtopologyspread

import "github.com/berth-scheduler/berth/core/domain"

// topology is one constraint's view of the nodes: the domains, which are the
// values of its topology key, held by the places in them, and the matching
// pods in each.
type topology struct {
	domains domain.Ids[count]
	// tally counts domains that eligible nodes are in (hard constraints only).
	tally tally
}

// count is what there is in a domain.
type count struct {
	eligible int // rows that count for it
	pods     int // matching pods on those rows
	seen     uint64
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
