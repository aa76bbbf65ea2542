package preempt

import (
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// A search that takes all units off places the group where most room is then, which costs more
// victims than other nodes may. So sets of units are proposed, and each is tried as the only
// units to go. Where there are few units all sets are (proof.go). Else what the group lacks on
// each row says which of its units are worth going (offers.go).

// mostProposals bounds the sets that are tried of those that offers.go proposes.
const mostProposals = 4

// fewest is a search for the best victims of a pod group, by the criteria between plans.
type fewest struct {
	*framework.PodGroupPostFilterCall
	rules unitRules
	most  int
	rooms framework.GroupRooms
	tries int // how many are left
	work  int // how many rows offer has looked at

	result framework.PodGroupPostFilterResult // of the best set so far
	cost   *criteria                          // its criteria; nil: there is none
}

// improve tries other sets of victims than those that searchAll found: found is its result, and
// gone are its victims. It returns the best result, which may be found. A set that places fewer
// pods of the group than the best so far is never better. most bounds the answers of filters,
// as in searchVictims.
func improve(c *framework.PodGroupPostFilterCall, rules unitRules, found framework.PodGroupPostFilterResult, gone []*unit, most int) framework.PodGroupPostFilterResult {
	s := &fewest{PodGroupPostFilterCall: c, rules: rules, most: most, result: found}
	switch found.Status.Code {
	case decision.Success:
		if s.cost = s.costOf(gone); s.cost.victims == 0 {
			return found
		}
	case decision.Unschedulable:
	case decision.UnschedulableAndUnresolvable: // nobody may go together with others
		if !rules.entitled {
			return found
		}
	default:
		return found
	}
	units := unitsOf(c, unitList{unitRules: rules, apart: true})
	few := len(units) <= mostProven
	if !few && s.cost == nil && len(gone) == 0 {
		return found // it does not fit without all of them
	}
	if s.measure(); len(s.rooms.Classes) > 0 && few {
		s.prove(units)
	} else if len(s.rooms.Classes) > 0 {
		s.offer()
	}
	return s.result
}

// measure finds out what the sums of the filters say, and how many tries that leaves.
func (s *fewest) measure() {
	if s.rooms = s.Rooms(); s.rooms.Domains == nil {
		s.rooms.Domains = [][]table.Row{s.Table.All()}
	}
	s.tries = max(mostProposals, mostChecks/max(1, len(s.Pods)*s.Table.Live()))
}

// try searches the victims among the units alone, and keeps the result if it is the best. It
// reports whether enough pods of the group fit. A unit of a whole gang stands for its surplus, too.
func (s *fewest) try(units []*unit) (fits bool) {
	s.tries--
	result, gone := tryWithout(s.PodGroupPostFilterCall, withSurplus(units), s.most, s.rules)
	switch {
	case result.Status.Code != decision.Success || !s.mayGo(gone):
		return false
	case s.cost != nil && len(result.Assignments) < len(s.result.Assignments):
		return false
	}
	if cost := s.costOf(gone); s.beats(cost) {
		s.result, s.cost = result, cost
	}
	return true
}

// beats reports whether a set of that cost is better than the best so far.
func (s *fewest) beats(cost *criteria) bool { return s.cost == nil || cost.compare(s.cost, s.Now) < 0 }

// mayGo reports whether all of the units may go: each gang keeps its minimum or goes as a whole,
// which one unit stands for, and no queue falls below its min.
func (s *fewest) mayGo(units []*unit) bool {
	taken := map[*gang]int{}
	for _, u := range units {
		if u.gang != nil {
			taken[u.gang]++
		}
	}
	for _, u := range units {
		g := u.gang
		if u.isWhole() && taken[g] > 1 || g != nil && !u.isWhole() && taken[g] > len(g.surplus)-g.least {
			return false
		}
	}
	return !s.rules.entitled || s.rules.permits(slices.Clone(units))
}

// costOf returns the criteria of a plan in which the units go. Only these count for budgets.
func (s *fewest) costOf(gone []*unit) *criteria {
	p := &Plan{}
	p.addVictims(gone)
	slices.SortFunc(p.Victims, byImportance(s.Now))
	p.NumPDBViolations = 0
	used := newBudgetUse(s.Budgets)
	for _, v := range p.Victims {
		if used.charge(v) != nil {
			p.NumPDBViolations++
		}
	}
	c := p.criteria()
	return &c
}

// withSurplus returns the units. For each unit of a whole gang it adds gang.surplus. The most
// important unit comes first.
func withSurplus(units []*unit) (all []*unit) {
	for _, u := range units {
		if all = append(all, u); u.isWhole() {
			all = append(all, u.gang.surplus...)
		}
	}
	slices.SortFunc(all, moreImportantUnit)
	return all
}
