package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/sim"
)

// NodesFit is which more nodes place all pods.
type NodesFit struct {
	Shapes []PricedShape
	// Counts has the least number of nodes after which no more help, by shape. Of several shapes
	// it is the cheapest set that was found.
	Counts []int
	// Proven: no cheaper set places as many pods, if more nodes never place fewer. No set was
	// played that refutes it.
	Proven bool
	// Tried is how many sets were played.
	Tried int
	// Placed are the pods that they place, beyond those that have a node
	// without them.
	Placed int
	// Unplaced has the reasons why pods stay pending all the same, by
	// namespace/name.
	Unplaced map[string]string
	// NoPlace has the reasons why pods that DaemonSets make for the nodes have no place there,
	// by namespace/name. They are not among Unplaced.
	NoPlace map[string]string
	// Notices are for the user.
	Notices []string
}

// Nodes returns how many nodes are added.
func (n *NodesFit) Nodes() int { return total(n.Counts) }

// Price returns the price of the nodes.
func (n *NodesFit) Price() (sum Price) {
	for i, c := range n.Counts {
		sum += Price(c) * n.Shapes[i].Price
	}
	return sum
}

// FitNodes finds how few more nodes of a shape place all pods that can be placed on such
// nodes, once the changes are made; of several shapes, the cheapest set of nodes. Pods that
// are preempted count as pending, pods that are made for the nodes do not. It assumes that
// more nodes never place fewer pods. Each run has a scheduler of its own, which options
// describes.
func FitNodes(set *manifest.Set, in sim.Input, options func() (machine.Options, error), after []Change, shapes []PricedShape) (*NodesFit, error) {
	order := byPrice(shapes)
	s := &nodeSearch{set: set, in: in, options: options, after: after, results: map[string]*outcome{}}
	for _, i := range order {
		s.shapes = append(s.shapes, shapes[i])
	}
	without, err := s.play(make([]int, len(shapes)))
	if err != nil {
		return nil, err
	}
	proven, err := s.cheapest(len(without.unplaced))
	var cut cutError
	if err != nil && (!errors.As(err, &cut) || !s.shrunk) && !errors.Is(err, errTried) {
		return nil, err
	}
	best := s.best()
	n := &NodesFit{Shapes: shapes, Counts: make([]int, len(shapes)), Proven: proven, Tried: len(s.results),
		Placed: len(without.unplaced) - len(best.unplaced), Unplaced: best.unplaced, NoPlace: best.noPlace, Notices: best.notices}
	for at, i := range order {
		n.Counts[i] = best.counts[at]
	}
	if cut != "" {
		n.Notices = append(n.Notices, "cut: "+string(cut))
	}
	return n, nil
}

// byPrice returns the places of the shapes in an order that does not depend on the order of
// the shapes: the cheapest first.
func byPrice(shapes []PricedShape) []int {
	order := make([]int, len(shapes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(shapes[x].Price, shapes[y].Price), cmp.Compare(shapes[x].Shape, shapes[y].Shape))
	})
	return order
}

// nodeSearch plays sets of nodes: counts of nodes by shape.
type nodeSearch struct {
	set     *manifest.Set
	in      sim.Input
	options func() (machine.Options, error)
	after   []Change
	shapes  []PricedShape // the cheapest first

	most    int             // nodes of a shape
	least   int             // the fewest pods that a set leaves pending, of those played
	there   map[string]bool // the pods without the nodes, by namespace/name
	results map[string]*outcome
	tooFew  [][]int // sets that leave more pods pending
	shrunk  bool    // a set is known that is enough and from which no node can be taken
}

// enough reports whether the set places as many pods as any that was played. It plays no set
// that is part of one that is too small.
func (s *nodeSearch) enough(counts []int) (bool, error) {
	if slices.ContainsFunc(s.tooFew, func(larger []int) bool { return within(counts, larger) }) {
		return false, nil
	}
	r, err := s.play(counts)
	if err != nil {
		return false, err
	}
	if len(r.unplaced) > s.least {
		s.tooFew = append(s.tooFew, r.counts)
		return false, nil
	}
	return true, nil
}

// within reports whether the set is part of the larger one, or the same.
func within(counts, larger []int) bool {
	for i, n := range counts {
		if n > larger[i] {
			return false
		}
	}
	return true
}

// best returns the outcome of the set that leaves the fewest pods pending: of several the
// cheapest, of these the one with the fewest nodes.
func (s *nodeSearch) best() *outcome {
	return slices.MinFunc(slices.Collect(maps.Values(s.results)), func(x, y *outcome) int {
		return cmp.Or(cmp.Compare(len(x.unplaced), len(y.unplaced)), cmp.Compare(s.price(x.counts), s.price(y.counts)),
			cmp.Compare(total(x.counts), total(y.counts)), slices.Compare(x.counts, y.counts))
	})
}

// refuted reports whether a set leaves more pods pending than a part of it: then more nodes
// can place fewer pods.
func (s *nodeSearch) refuted() bool {
	for _, x := range s.results { // any order: it is asked whether there is one
		for _, y := range s.results {
			if len(y.unplaced) > len(x.unplaced) && within(x.counts, y.counts) {
				return true
			}
		}
	}
	return false
}

func total(counts []int) (sum int) {
	for _, c := range counts {
		sum += c
	}
	return sum
}

// outcome is what came of a set.
type outcome struct {
	counts   []int
	unplaced map[string]string // of the pods that are there without the nodes
	noPlace  map[string]string // of the pods that are made for them
	notices  []string
}

// outcomeOf returns what came of a run with the set. The first run is the one without nodes.
func (s *nodeSearch) outcomeOf(counts []int, r *Result) *outcome {
	if s.there == nil {
		s.there = map[string]bool{}
		for _, p := range r.Cluster.Pods() {
			s.there[p.Key()] = true
		}
		for pod := range r.Unplaced { // any order: into a map. Some are refused.
			s.there[pod] = true
		}
	}
	o := &outcome{slices.Clone(counts), map[string]string{}, map[string]string{}, endlessNotices(r.Result)}
	for pod, why := range r.Unplaced { // any order: into maps
		if s.there[pod] {
			o.unplaced[pod] = why
		} else {
			o.noPlace[pod] = why
		}
	}
	return o
}

// play plays the cluster with the nodes.
func (s *nodeSearch) play(counts []int) (*outcome, error) {
	key := fmt.Sprint(counts)
	if r := s.results[key]; r != nil {
		return r, nil
	}
	if len(s.results) >= maxTried {
		return nil, errTried
	}
	if s.in.Stop != nil && s.in.Stop() {
		return nil, cutError("the time was up before all numbers of nodes were tried")
	}
	changes, adds := slices.Clip(s.after), false
	for i, n := range counts {
		if n > 0 {
			adds = true
			changes = append(changes, Change{Verb: "add-nodes", Operands: []string{fmt.Sprint(n), s.shapes[i].Shape}})
		}
	}
	var err error
	if s.in.Machine, err = s.options(); err != nil {
		return nil, err
	}
	r, err := Run(s.set.Clone(), s.in, changes, Options{})
	if cause := errors.Unwrap(err); adds && cause != nil { // of a shape: without it the run went well
		return nil, fmt.Errorf("--nodes-like: %w", cause)
	}
	if err != nil && len(s.after) > 0 {
		return nil, fmt.Errorf("--after: %w", err)
	}
	if err != nil {
		return nil, err
	}
	if r.Cut != "" { // how many are needed is not known then
		return nil, cutError(r.Cut)
	}
	s.results[key] = s.outcomeOf(counts, r)
	s.least = min(s.least, len(s.results[key].unplaced))
	return s.results[key], nil
}
