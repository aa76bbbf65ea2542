package preempt

import (
	"slices"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// once is a search for a pod of whose class nothing is kept. Most nodes are ruled out by
// what filters say of them without their pods of lower priority. The others wait in a
// heap, the most promising first. What a plan there cannot be better than is worked out
// for a node only when its turn comes; until then it is as good as a plan can be that
// has one victim, of the lowest priority there. Budgets come last.
type once struct {
	candidates []candidate
	pods       []*object.Pod // of lower priority, by candidate
	heap       []prospect
	bounds     criteriaBounds
}

// candidate is a node where removing pods may help, and where some have a lower priority.
type candidate struct {
	row      table.Row
	from, to int32 // its pods of lower priority
	// refusal is why the pod does not fit though all of those went; nil: it does, or that
	// is not known.
	refusal *decision.Blocker
	known   bool
	plan    *Plan
}

// prospect is a candidate that is not ruled out.
type prospect struct {
	criteria
	uid   types.UID // of the node
	node  string
	at    int32 // among the candidates
	known knowledge
}

// knowledge is what the criteria of a prospect take into account. Each is no worse than
// the next.
type knowledge int8

const (
	aVictim    knowledge = iota // that there is one
	sums                        // what pods take up
	budgetsToo                  // and which of them budgets guard
)

// find is Finder.Find.
func (s *once) find(c *framework.PostFilterCall, limits Limits) (*Plan, []decision.Tally, error) {
	s.list(c)
	s.ruleOut(c)
	best := s.best(c, limits)
	if c.Check {
		verify(c, best, limits)
	}
	if best == nil {
		refused, err := s.refused(c)
		if c.Check {
			verifyRefused(c, refused, err)
		}
		return nil, refused, err
	}
	best.NominationsToClear = nominationsToClear(c, best.Node)
	return best, nil, nil
}

// list lists the candidates and their pods of lower priority.
func (s *once) list(c *framework.PostFilterCall) {
	clear(s.candidates)
	clear(s.pods)
	s.candidates, s.pods = s.candidates[:0], s.pods[:0]
	for _, row := range c.Table.All() {
		if c.Table.LowestPriority(row) < c.Pod.Priority && isCandidate(c, row) {
			s.candidates = append(s.candidates, candidate{row: row})
		}
	}
	for i := range s.candidates { // apart from the above, so that many are asked of the memory at once
		n := &s.candidates[i]
		n.from = int32(len(s.pods))
		for _, pl := range c.Table.Pods(n.row) {
			if lower(c, pl) {
				s.pods = append(s.pods, pl.Pod)
			}
		}
		n.to = int32(len(s.pods))
	}
}

func (s *once) podsOf(n *candidate) []*object.Pod { return s.pods[n.from:n.to] }

// ruleOut asks the filters about the candidates without these pods, and puts those that
// they do not refuse into the heap.
func (s *once) ruleOut(c *framework.PostFilterCall) {
	clear(s.heap)
	s.heap = s.heap[:0]
	for i := range s.candidates {
		n := &s.candidates[i]
		if n.refusal, n.known = withoutLower(c, n.row, s.podsOf(n)); n.refusal != nil {
			continue
		}
		lowest := c.Table.LowestPriority(n.row)
		s.heap = append(s.heap, prospect{
			criteria: criteria{highest: lowest, weight: weight(lowest), victims: 1, since: endOfTime},
			uid:      nodeUID(c.Table, n.row), node: c.Table.Name(n.row), at: int32(i),
		})
	}
	for i := len(s.heap)/2 - 1; i >= 0; i-- {
		s.sink(c, i)
	}
}

// best tries candidates, the most promising first, until no other can be better. Where
// filters look beyond the node, enough plans are enough. nil: there is none.
func (s *once) best(c *framework.PostFilterCall, limits Limits) *Plan {
	var best choice
	found, clean, enough := 0, 0, limits.of(c.Table.Live())
	for len(s.heap) > 0 {
		p := &s.heap[0]
		if !best.beatenBy(&p.criteria, p.uid, p.node, c.Now) || !c.Filters.Local && clean > 0 && found >= enough {
			break
		}
		n := &s.candidates[p.at]
		if p.known != budgetsToo {
			s.workOut(c, p, n)
			continue
		}
		s.pop(c)
		if s.try(c, n); n.refusal != nil || len(n.plan.Victims) == 0 {
			continue
		}
		best.take(n.plan, c.Now)
		if found++; n.plan.NumPDBViolations == 0 {
			clean++
		}
	}
	return best.Plan
}

// workOut works out more of the first prospect's criteria, and moves it to where it belongs
// then, which is nowhere where it would not be enough that all could go.
func (s *once) workOut(c *framework.PostFilterCall, p *prospect, n *candidate) {
	budgets := c.Disruption.Budgets
	if p.known++; p.known == sums {
		budgets = nil
	}
	var enough bool
	if p.criteria, enough = s.bounds.of(c, n.row, s.podsOf(n), budgets); !enough {
		s.pop(c)
		return
	}
	if len(c.Disruption.Budgets) == 0 {
		p.known = budgetsToo
	}
	s.sink(c, 0)
}

// try tries the candidate, unless it was tried.
func (s *once) try(c *framework.PostFilterCall, n *candidate) {
	if n.plan == nil && n.refusal == nil {
		n.plan, n.refusal = tryRow(c, n.row, slices.Clone(s.podsOf(n)))
	}
}

// refused says why there is no plan, over all nodes.
func (s *once) refused(c *framework.PostFilterCall) ([]decision.Tally, error) {
	var refused tallies
	var errs []error
	nodes := c.Filters.Unschedulable()
	refused.add(&noVictims, nodes-len(s.candidates))
	for i := range s.candidates {
		n := &s.candidates[i]
		switch s.try(c, n); {
		case n.refusal == nil:
			errs = append(errs, noVictim(n.plan.Node))
		case n.refusal.Code == decision.Error:
			errs = append(errs, n.refusal.Failure())
		default:
			refused.add(n.refusal, 1)
		}
	}
	if len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	refused.add(&notHelpful, c.Table.Live()-nodes)
	return refused, nil
}

// less tells whether the i-th prospect of the heap is better than the j-th.
func (s *once) less(c *framework.PostFilterCall, i, j int) bool {
	a, b := &s.heap[i], &s.heap[j]
	if order := a.compare(&b.criteria, c.Now); order != 0 {
		return order < 0
	}
	return byUID(a.uid, b.uid, a.node, b.node) < 0
}

// sink moves the i-th prospect down to where it belongs.
func (s *once) sink(c *framework.PostFilterCall, i int) {
	for {
		child := 2*i + 1
		if child >= len(s.heap) {
			return
		}
		if child+1 < len(s.heap) && s.less(c, child+1, child) {
			child++
		}
		if !s.less(c, child, i) {
			return
		}
		s.heap[i], s.heap[child] = s.heap[child], s.heap[i]
		i = child
	}
}

// pop takes the best prospect out of the heap.
func (s *once) pop(c *framework.PostFilterCall) {
	last := len(s.heap) - 1
	s.heap[0] = s.heap[last]
	s.heap = s.heap[:last]
	s.sink(c, 0)
}
