package whatif

import (
	"errors"
	"fmt"
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
	// Proven: no cheaper set places as many pods, if more nodes never place fewer.
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
func (n *NodesFit) Nodes() (sum int) {
	for _, c := range n.Counts {
		sum += c
	}
	return sum
}

// Price returns the price of the nodes.
func (n *NodesFit) Price() (sum Price) {
	for i, c := range n.Counts {
		sum += Price(c) * n.Shapes[i].Price
	}
	return sum
}

// FitNodes finds how few more nodes of a shape place all pods that can be placed on such
// nodes, once the changes are made; of several shapes, the cheapest set of nodes. Pods that
// are preempted count as pending, pods that are made for the nodes do not. It assumes that more nodes never place fewer pods. Each run
// has a scheduler of its own, which options describes.
func FitNodes(set *manifest.Set, in sim.Input, options func() (machine.Options, error), after []Change, shapes []PricedShape) (*NodesFit, error) {
	s := &nodeSearch{set: set, in: in, options: options, after: after, shapes: shapes, results: map[string]*outcome{}}
	none := make([]int, len(shapes))
	without, err := s.play(none)
	if err != nil {
		return nil, err
	}
	s.most = min(max(len(without.unplaced), 1), maxAdded/len(shapes)) // a node that helps places at least one pod
	all := slices.Repeat([]int{s.most}, len(shapes))
	with, err := s.play(all)
	if err != nil {
		return nil, err
	}
	s.least = len(with.unplaced)
	best, proven, err := s.cheapest()
	var cut cutError
	if best == nil || err != nil && !errors.Is(err, errTried) && !errors.As(err, &cut) {
		return nil, err
	}
	r := s.results[fmt.Sprint(best)]
	n := &NodesFit{Shapes: shapes, Counts: best, Proven: proven, Tried: len(s.results),
		Placed: len(without.unplaced) - len(r.unplaced), Unplaced: r.unplaced, NoPlace: r.noPlace, Notices: r.notices}
	if cut != "" {
		n.Notices = append(n.Notices, "cut: "+string(cut))
	}
	return n, nil
}

// nodeSearch plays sets of nodes: counts of nodes by shape.
type nodeSearch struct {
	set     *manifest.Set
	in      sim.Input
	options func() (machine.Options, error)
	after   []Change
	shapes  []PricedShape

	most    int             // nodes of a shape
	least   int             // pods that are pending whatever nodes are added
	there   map[string]bool // the pods without the nodes, by namespace/name
	results map[string]*outcome
	tooFew  [][]int // sets that leave more pods pending
	bounded bool    // a set is known that is enough, so no more than maxTried are tried
}

// outcome is what came of a set.
type outcome struct {
	unplaced map[string]string // of the pods that are there without the nodes
	noPlace  map[string]string // of the pods that are made for them
	notices  []string
}

// outcomeOf returns what came of a run. The first run is the one without nodes.
func (s *nodeSearch) outcomeOf(r *Result) *outcome {
	if s.there == nil {
		s.there = map[string]bool{}
		for _, p := range r.Cluster.Pods() {
			s.there[p.Key()] = true
		}
		for pod := range r.Unplaced { // any order: into a map. Some are refused.
			s.there[pod] = true
		}
	}
	o := &outcome{map[string]string{}, map[string]string{}, endlessNotices(r.Result)}
	for pod, why := range r.Unplaced { // any order: into maps
		if s.there[pod] {
			o.unplaced[pod] = why
		} else {
			o.noPlace[pod] = why
		}
	}
	return o
}

// enough reports whether no more nodes would place more pods. It plays no set that is part of
// one that is too small.
func (s *nodeSearch) enough(counts []int) (bool, error) {
	within := func(larger []int) bool {
		for i, n := range counts {
			if n > larger[i] {
				return false
			}
		}
		return true
	}
	if slices.ContainsFunc(s.tooFew, within) {
		return false, nil
	}
	r, err := s.play(counts)
	if err != nil {
		return false, err
	}
	if len(r.unplaced) > s.least {
		s.tooFew = append(s.tooFew, slices.Clone(counts))
		return false, nil
	}
	return true, nil
}

// play plays the cluster with the nodes.
func (s *nodeSearch) play(counts []int) (*outcome, error) {
	key := fmt.Sprint(counts)
	if r := s.results[key]; r != nil {
		return r, nil
	}
	if s.bounded && len(s.results) >= maxTried {
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
	s.results[key] = s.outcomeOf(r)
	return s.results[key], nil
}
