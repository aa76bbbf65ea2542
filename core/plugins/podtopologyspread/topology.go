package podtopologyspread

import "github.com/berth-scheduler/berth/core/domain"

// topology is one constraint's view of the nodes: the domains, which are the
// values of its topology key, held by the locations in them, and the matching
// pods in each.
type topology struct {
	domains domain.Ids[count]
	// minimum counts the domains that eligible nodes are in (hard constraints only).
	minimum minTracker
}

// count is what there is in a domain.
type count struct {
	eligible int // rows that count for it
	pods     int // matching pods on those rows
	seen     uint64
}

// domainID says where a node is in one topology: the id of a domain, or one of the
// values below. bare marks a node that lacks the label and counts, all the
// same, for the domain of the empty value.
type domainID int32

const (
	missing domainID = -1 // the node lacks the label
	own     domainID = -2 // the node is a domain of its own, counted with its row
)

func at(id int32, bare bool) domainID {
	s := domainID(id) << 1
	if bare {
		s |= 1
	}
	return s
}

func (s domainID) domain() int32 { return int32(s >> 1) }
func (s domainID) bare() bool    { return s&1 != 0 }
