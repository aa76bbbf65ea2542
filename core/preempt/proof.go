package preempt

import (
	"slices"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// mostProven is the largest number of units of which all sets are looked at: 4,096 sets, in some
// milliseconds.
const mostProven = 12

// proof is a search through all sets of units that may go.
type proof struct {
	*fewest
	units []*unit // the least important first
	need  int     // how many pods of the group must be placed
	// domainOf is the index of each row's domain in rooms.Domains, holds how many pods of each
	// class a domain takes before units leave: holds[domain][class].
	domainOf map[table.Row]int
	holds    [][]int
	sets     []victimSet // those that are worth a try
}

// victimSet is a set of units with its criteria.
type victimSet struct {
	units []*unit
	cost  *criteria
}

// prove tries the sets of units with which the group may fit, the best first, until it fits.
// That one is the best of all, if the tries suffice.
func (s *fewest) prove(units []*unit) {
	if s.rules.entitled {
		units = s.rules.alone(units)
	}
	slices.SortFunc(units, moreImportantUnit)
	p := proof{fewest: s, units: slices.Clone(units), need: s.need(), domainOf: map[table.Row]int{}}
	slices.Reverse(p.units)
	for i, rows := range s.rooms.Domains {
		holds := make([]int, len(s.rooms.Classes))
		for _, r := range rows {
			p.domainOf[r] = i
			for k := range s.rooms.Classes {
				class := &s.rooms.Classes[k]
				h := hostOn(class, r)
				holds[k] += h.takes(len(class.Pods))
			}
		}
		p.holds = append(p.holds, holds)
	}
	if !p.mayFit(units) {
		return
	}
	p.collect(0, nil)
	slices.SortStableFunc(p.sets, func(a, b victimSet) int { return a.cost.compare(b.cost, s.Now) })
	for _, set := range p.sets {
		if s.tries == 0 || s.try(set.units) {
			return
		}
	}
}

// need returns how many pods of the group must be placed: as many as in the best result so far. If
// there is none, it returns how many more a gang needs to have its minimum, and at least 1.
func (s *fewest) need() int {
	switch {
	case s.cost != nil:
		return len(s.result.Assignments)
	case s.Group.Gang:
		return max(1, s.Group.MinCount-s.Table.Groups().Of(s.Pods[0]).Scheduled())
	}
	return 1
}

// collect adds to p.sets the sets that consist of the given units and some of p.units from the
// index from on, if the group may fit without them and they beat the best result so far.
func (p *proof) collect(from int, units []*unit) {
	for i := from; i < len(p.units); i++ {
		set := append(slices.Clip(units), p.units[i])
		cost := p.costOf(set)
		if !p.beats(cost) || !p.mayGo(set) || p.Strict && cost.numPDBViolations > 0 {
			continue // nor is any that has more units
		}
		if p.mayFit(set) {
			p.sets = append(p.sets, victimSet{set, cost})
		}
		p.collect(i+1, set)
	}
}

// mayFit reports whether by sums, if the units go, some domain has room for p.need pods of the
// group.
func (p *proof) mayFit(units []*unit) bool {
	leave := map[table.Row][]*object.Pod{}
	for _, u := range withSurplus(units) {
		for i, r := range u.rows {
			leave[r] = append(leave[r], u.pods[i])
		}
	}
	for i, holds := range p.holds {
		placed := 0
		for k := range p.rooms.Classes {
			class, n := &p.rooms.Classes[k], holds[k]
			for r, pods := range leave { // any order: a sum
				if d, in := p.domainOf[r]; !in || d != i {
					continue
				}
				h := hostOn(class, r)
				n -= h.takes(len(class.Pods))
				h.leave(pods)
				n += h.takes(len(class.Pods))
			}
			placed += min(n, len(class.Pods))
		}
		if placed >= p.need {
			return true
		}
	}
	return false
}
