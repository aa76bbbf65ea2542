package preempt

import (
	"slices"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// once is a search for a pod of whose class nothing is kept. Nodes wait in a heap, the most
// promising first, those with the lowest priority before others come into it. Until a
// node's turn comes it is as good as a plan can be that has one victim, of the lowest
// priority there. Then filters are asked about it without its pods of lower priority, and
// what a plan there cannot be better than is worked out. Budgets come last.
type once struct {
	rows       []table.Row
	candidates []candidate
	levels     []int32
	pods       []*object.Pod // of lower priority, by candidate
	heap       []prospect
	bounds     criteriaBounds
	alone      int // candidates that were asked about by themselves
}

// mostAlone is how many candidates are asked about by themselves. Where the best of so many
// have no plan it is likely that none has. All are asked about then, in a row, and the
// refused need not be taken out of the heap one by one.
const mostAlone = 16

// mostLevels bounds the levels of priority by which candidates enter the heap.
const mostLevels = 16

// candidate is a node where removing pods may help, and where some have a lower priority.
type candidate struct {
	row      table.Row
	lowest   int32 // priority there
	from, to int32 // its pods of lower priority, once they are listed
	// refusal is why the pod does not fit though all of those went; nil: it does, or that
	// is not known.
	refusal *decision.Blocker
	plan    *Plan
	opened  bool // it has come into the heap
	asked   bool // filters were asked about it without these pods
}

// prospect is a candidate that is not ruled out yet.
type prospect struct {
	criteria
	at    int32 // index into once.candidates
	known knowledge
}

// knowledge is what the criteria of a prospect are based on. Criteria become worse, or
// stay equal, from one to the next.
type knowledge int8

const (
	aVictim    knowledge = iota // a plan has a victim of at least the lowest priority
	sums                        // what pods take up
	budgetsToo                  // and which of them budgets guard
)

// find returns the best plan, or else the reasons why there is none, over all nodes. It
// ranks the candidates for this one pod and keeps nothing.
func (s *once) find(c *framework.PostFilterCall, limits Limits) (*Plan, []decision.Tally, error) {
	s.list(c)
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

// list lists the candidates, and the levels of their lowest priorities.
func (s *once) list(c *framework.PostFilterCall) {
	clear(s.candidates)
	clear(s.pods)
	s.candidates, s.pods, s.levels, s.heap = s.candidates[:0], s.pods[:0], s.levels[:0], s.heap[:0]
	s.alone = 0
	s.rows = appendCandidateRows(s.rows[:0], c)
	for _, row := range s.rows {
		if lowest := c.Table.LowestPriority(row); lowest < c.Pod.Priority {
			s.candidates = append(s.candidates, candidate{row: row, lowest: lowest})
			s.addLevel(lowest)
		}
	}
}

// addLevel lists the priority, unless there are enough lower ones. Nodes above the last
// but one belong to the last.
func (s *once) addLevel(priority int32) {
	at, known := slices.BinarySearch(s.levels, priority)
	if known || at == mostLevels {
		return
	}
	s.levels = slices.Insert(s.levels, at, priority)
	s.levels = s.levels[:min(len(s.levels), mostLevels)]
}

// open adds the candidates of the lowest level to the heap.
func (s *once) open(c *framework.PostFilterCall) {
	level := s.levels[0]
	s.levels = s.levels[1:]
	for i := range s.candidates {
		n := &s.candidates[i]
		if n.lowest < level || n.lowest > level && len(s.levels) > 0 || n.opened {
			continue
		}
		n.opened = true
		first := criteriaOfOne(n.lowest)
		first.since = c.Table.LatestOfLowest(n.row, c.Now)
		s.heap = append(s.heap, prospect{criteria: first, at: int32(i)})
	}
	if s.alone == mostAlone {
		s.askAll(c)
	}
	s.order(c)
}

// order makes a heap of the prospects.
func (s *once) order(c *framework.PostFilterCall) {
	for i := len(s.heap)/2 - 1; i >= 0; i-- {
		s.sink(c, i)
	}
}

// criteriaOfOne returns the best that a plan can be with a victim of the priority.
func criteriaOfOne(priority int32) criteria {
	return criteria{highest: priority, weight: weight(priority), victims: 1, since: endOfTime}
}

// listPods lists the pods of lower priority on the candidate.
func (s *once) listPods(c *framework.PostFilterCall, n *candidate) {
	n.from = int32(len(s.pods))
	s.pods = appendLowerPods(s.pods, c, n.row)
	n.to = int32(len(s.pods))
}

// ask asks the filters about the candidate without its pods of lower priority. If they do
// not refuse it, ask lists these pods.
func (s *once) ask(c *framework.PostFilterCall, n *candidate) {
	n.asked = true
	if n.refusal, _ = withoutLower(c, n.row); n.refusal == nil {
		s.listPods(c, n)
	}
}

// askAll asks the filters about all prospects, and removes those that they refuse.
func (s *once) askAll(c *framework.PostFilterCall) {
	s.heap = slices.DeleteFunc(s.heap, func(p prospect) bool {
		n := &s.candidates[p.at]
		if !n.asked {
			s.ask(c, n)
		}
		return n.refusal != nil
	})
}

func (s *once) podsOf(n *candidate) []*object.Pod { return s.pods[n.from:n.to] }

// best tries candidates, the most promising first, until no other can be better. Where
// filters look beyond the node, enough plans are enough. nil: there is none.
func (s *once) best(c *framework.PostFilterCall, limits Limits) *Plan {
	var best choice
	found, clean, enough := 0, 0, limits.of(c.Table.Live())
	for s.openFor(c, &best) {
		p := &s.heap[0]
		if best.Plan != nil && p.compare(&best.criteria, c.Now) > 0 || !c.Filters.Local && clean > 0 && found >= enough {
			break
		}
		n := &s.candidates[p.at]
		if best.Plan != nil && !best.beatenBy(&p.criteria, nodeUID(c.Table, n.row), c.Table.Name(n.row), c.Now) {
			s.pop(c)
			continue
		}
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

// openFor opens the levels that may hold a better prospect than the first one. It returns
// false if no prospect can be better than the best plan.
func (s *once) openFor(c *framework.PostFilterCall, best *choice) bool {
	for len(s.levels) > 0 {
		next := criteriaOfOne(s.levels[0])
		if len(s.heap) > 0 && s.heap[0].compare(&next, c.Now) < 0 || !best.beatenBy(&next, "", "", c.Now) {
			break
		}
		s.open(c)
	}
	return len(s.heap) > 0
}

// workOut computes the next criteria of the first prospect, and moves it to its place in
// the heap. It removes the prospect if filters refuse it whichever pods leave.
func (s *once) workOut(c *framework.PostFilterCall, p *prospect, n *candidate) {
	budgets := c.Disruption.Budgets
	if p.known == aVictim {
		budgets = nil
		switch {
		case n.asked:
		case s.alone == mostAlone:
			s.askAll(c)
			s.order(c)
			return
		default:
			s.alone++
			if s.ask(c, n); n.refusal != nil {
				s.pop(c)
				return
			}
		}
	}
	p.known++
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

// refused returns why there is no plan, over all nodes.
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

// less reports whether the i-th prospect of the heap comes before the j-th. The order of
// equals matters only if a few plans are enough, since it decides which are tried.
func (s *once) less(c *framework.PostFilterCall, i, j int) bool {
	a, b := &s.heap[i], &s.heap[j]
	order := a.compare(&b.criteria, c.Now)
	if order == 0 && !c.Filters.Local {
		x, y := s.candidates[a.at].row, s.candidates[b.at].row
		order = byUID(nodeUID(c.Table, x), nodeUID(c.Table, y), c.Table.Name(x), c.Table.Name(y))
	}
	return order < 0
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

// pop removes the best prospect from the heap.
func (s *once) pop(c *framework.PostFilterCall) {
	last := len(s.heap) - 1
	s.heap[0] = s.heap[last]
	s.heap = s.heap[:last]
	s.sink(c, 0)
}
