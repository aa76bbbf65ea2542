package preempt

import (
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// A search that takes all units off places the group where most room is then, which costs more
// victims than other nodes may. So sets of units are proposed, and each is tried as the only
// units to go. If there are few units all sets are proposed (proof.go). Else what the group lacks
// on each row says which of the row's units are worth going (offers.go).

// mostProposals bounds the sets that are tried of those that offers.go proposes.
const mostProposals = 4

// fewest is a search for the best set of victims of a pod group: the one with the best criteria.
type fewest struct {
	*framework.PodGroupPostFilterCall
	rules unitRules            // which units may go
	most  int                  // bounds the answers of filters in one try, as in searchVictims
	rooms framework.GroupRooms // what each row has free for the group; set by measure
	tries int                  // how many more sets may be tried
	work  int                  // how many rows buy has looked at, each again for each class

	result framework.PodGroupPostFilterResult // of the best set so far
	cost   *criteria                          // its criteria; nil: no set lets the group fit yet
}

// improve tries other sets of victims than the one that searchAll found: found is the result of
// searchAll, and gone are its victims. It returns the best result, which may be found. A set that
// places fewer pods of the group than the best so far is never better. most bounds the answers of
// filters, as in searchVictims.
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

// measure sets s.rooms and s.tries, the number of sets that may be tried. If the group need not be
// in one domain, it makes all rows one.
func (s *fewest) measure() {
	if s.rooms = s.Rooms(); s.rooms.Domains == nil {
		s.rooms.Domains = [][]table.Row{s.Table.All()}
	}
	s.tries = max(mostProposals, mostChecks/max(1, len(s.Pods)*s.Table.Live()))
}

// try searches victims among these units alone, and takes the result over into s if it beats the
// best so far. It returns false if the group does not fit, fewer of its pods fit than in the best
// result so far, or the victims may not go together. A unit of a whole gang stands for its surplus,
// too.
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

// beats reports whether a set with that cost is better than the best so far.
func (s *fewest) beats(cost *criteria) bool { return s.cost == nil || cost.compare(s.cost, s.Now) < 0 }

// mayGo reports whether all of the units may go together. Each gang must keep its minimum, or go
// as a whole, with its unit whole as the only one. No queue may fall below its min.
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

// costOf returns the criteria of a plan in which the units go. Pods that stay use up no budget.
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
