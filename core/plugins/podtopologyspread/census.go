package podtopologyspread

import (
	"slices"

	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// census holds which nodes count for topology spread constraints (by their labels and the
// inclusion policies), and how many in each domain. Pods with the same topologies and
// policies share it.
type census struct {
	layout  *domain.Layout // the domains of each node
	nodes   *inclusion     // the inclusion policies affinity and taints that each node meets
	lenient bool           // nodes without the topology labels count, too

	admitted  []policy    // by row, the policies that its node meets; 0 without a node
	eligibles []*eligible // the results of eligible for this version
	// version changes whenever other nodes count, or count in other domains.
	version uint64
	moves   uint64 // sum of layout.Moves and nodes.moves when admitted was computed
}

// eligible is the number of nodes that meet the policies in need, by domain of a topology.
type eligible struct {
	topology int // index in the layout
	need     policy
	nodes    []int32 // by domain
	domains  int     // how many domains have such nodes
}

// censusKey is what the result of a census depends on: the topologies, the nodes that the
// pods' policies admit, and whether nodes without the topology labels count.
type censusKey struct {
	layout  *domain.Layout
	nodes   *inclusion
	lenient bool
}

// elementsKept bounds the elements of all inclusions and censuses together. With more,
// all are dropped.
const elementsKept = 1 << 22

// begin drops all inclusions and censuses if they belong to another table or to outdated numbers of
// taints, or have too many elements. It must be called before layouts, inclusions and censuses are
// used. Classes keep those that they use.
func (pl *plugin) begin(t *table.Table) {
	generation, state := pl.layouts.Prepare(t), taintState(t)
	if pl.inclusions == nil || pl.generation != generation || pl.taints != state || pl.elements > elementsKept {
		pl.inclusions, pl.censuses = map[string]*inclusion{}, map[censusKey]*census{}
		pl.generation, pl.taints, pl.elements = generation, state, 0
	}
}

// censusOf returns the census for the layout and for the inclusion policies in any, as they apply
// to pods like p. It adds one if there is none, which knows no nodes before follow.
func (pl *plugin) censusOf(t *table.Table, layout *domain.Layout, any policy, lenient bool, p *object.Pod) *census {
	key := censusKey{layout, pl.inclusionOf(t, any, p), lenient}
	s := pl.censuses[key]
	if s == nil {
		s = &census{layout: layout, nodes: key.nodes, lenient: lenient}
		pl.censuses[key] = s
		pl.elements += 4 * t.Rows()
	}
	return s
}

// follow brings the census up to date with the table. If a node changed whether or where it counts,
// it computes admitted anew for all rows, drops eligibles and raises version.
func (s *census) follow(t *table.Table) {
	s.layout.Follow(t)
	s.nodes.follow(t)
	known := len(s.admitted)
	if n := t.Rows() - known; n > 0 {
		s.admitted = append(s.admitted, make([]policy, n)...)
	}
	now := s.layout.Moves + s.nodes.moves
	if s.moves == now && s.version != 0 {
		return // rows that came have no nodes
	}
	s.eligibles = nil
	complete := make([]policy, s.layout.Len())
	for at := range complete {
		if s.lenient || !slices.Contains(s.layout.Domains(int32(at)), domain.Missing) {
			complete[at] = topologyLabels
		}
	}
	for r, at := range s.layout.Locations() {
		if s.admitted[r] = 0; at != domain.NoNode {
			s.admitted[r] = s.nodes.met[r] | complete[at]
		}
	}
	s.moves = now // last: after a panic in between all is done anew
	s.version++
}

// eligible returns the number of nodes that meet the policies in need, by domain of the topology
// (an index in the layout). It keeps the result until follow sees a change.
func (s *census) eligible(topology int, need policy) *eligible {
	for _, e := range s.eligibles {
		if e.topology == topology && e.need == need {
			return e
		}
	}
	p := s.layout.Topologies[topology]
	e := &eligible{topology: topology, need: need, nodes: make([]int32, p.Len())}
	counts := countsIf(need, int32(1))
	of := p.Of()
	for r, met := range s.admitted {
		e.nodes[of[r]] += counts[met]
	}
	for _, n := range e.nodes[domain.Unnamed:] {
		if n > 0 {
			e.domains++
		}
	}
	s.eligibles = append(s.eligibles, e)
	return e
}

// countsIf returns an array with an element for each set of policies: n if the set includes all of
// need, else 0.
func countsIf[N int32 | int64](need policy, n N) (counts [policies]N) {
	for met := range policy(policies) {
		if need&^met == 0 {
			counts[met] = n
		}
	}
	return counts
}
