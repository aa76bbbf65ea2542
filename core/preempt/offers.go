package preempt

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// An offer of n pods is the cheapest set of units on a row whose leaving lets the row take n more
// pods of a class. Of the offers of all rows those are chosen that take enough pods at the lowest
// price. For equal pods, and units of one row each, no choice has fewer violations, a lower highest
// priority, or fewer victims then; budgets that several victims share, and gangs, may make
// others better. Unequal pods come class after class, those first of which the fewest fit.

// Bounds of the work. What they bound takes about a second at most.
const (
	mostRows      = 1 << 16 // rows that one search looks at, each again for each class of pods
	mostSetsOnRow = 1 << 10 // sets of units that are tried on a row
	mostSteps     = 1 << 25 // one choice among offers: rows times pods times offers of a row
)

// price is what offers are compared by: violations first, then weight, lower is better. It leaves
// out the highest priority of the units, which propose bounds. Prices are added up.
type price struct {
	violations int   // pods whose eviction, by itself, violates a budget
	weight     int64 // the sum of the priorities, each moved up to 0 or more, so fewer pods weigh less
}

// tooDear is the price of what cannot be had. It is higher than any other.
var tooDear = price{violations: math.MaxInt}

// plus returns the sum of the prices.
func (p price) plus(o price) price {
	return price{p.violations + o.violations, p.weight + o.weight}
}

// compare returns a negative number if p is lower than o, 0 if they are equal.
func (p price) compare(o price) int {
	return cmp.Or(cmp.Compare(p.violations, o.violations), cmp.Compare(p.weight, o.weight))
}

// onOffer is a unit that may leave a row.
type onOffer struct {
	*unit
	pods  []*object.Pod // those on the row
	price price         // of the unit, with its pods on other rows
	frees []int64       // what pods free, for each sum of the class at hand; set by host.offers
}

// offer is the cheapest set of units whose leaving lets a row take n more pods. A list of offers
// has the one for n pods at index n-1.
type offer struct {
	price
	units []onOffer
}

// offer proposes a set of units for each domain, by the offers of its rows, and tries the
// mostProposals best of these. It proposes from all units that may go. If a proposal violates a
// budget or has a whole gang in it, it also proposes from the units of withinMinimum, and if one
// still does, from those of withinBudgets.
func (s *fewest) offer() {
	var proposals []victimSet
	units := s.rules.together(lowerUnits(s.PodGroupPostFilterCall, s.rules))
	for _, some := range []func() []*unit{
		func() []*unit { return units },
		func() []*unit { return withinMinimum(units) },
		func() []*unit { return s.withinBudgets(units) },
	} {
		m, enough := newMarket(s, some()), true
		for _, rows := range s.rooms.Domains {
			set, clean := m.propose(rows)
			if enough = enough && clean; len(set) > 0 {
				proposals = append(proposals, victimSet{set, s.costOf(set)})
			}
		}
		if enough {
			break
		}
	}
	slices.SortStableFunc(proposals, func(a, b victimSet) int { return a.cost.compare(b.cost, s.Now) })
	for _, p := range proposals[:min(len(proposals), mostProposals)] {
		if s.beats(p.cost) {
			s.try(p.units)
		}
	}
}

// withinMinimum returns the units without whole gangs, and without the most important pods of each
// gang, as many as it must keep. units are sorted, the most important first.
func withinMinimum(units []*unit) (kept []*unit) {
	taken := map[*gang]int{}
	for _, u := range slices.Backward(units) {
		if u.gang == nil || !u.isWhole() && taken[u.gang] < len(u.gang.surplus)-u.gang.least {
			kept = append(kept, u)
		}
		if u.gang != nil && !u.isWhole() {
			taken[u.gang]++
		}
	}
	slices.Reverse(kept)
	return kept
}

// withinBudgets returns the units that withinMinimum returns, without those whose eviction violates
// a budget once the less important ones are gone.
func (s *fewest) withinBudgets(units []*unit) []*unit {
	units = withinMinimum(units)
	slices.Reverse(units)
	_, others := splitUnits(units, s.Budgets)
	slices.Reverse(others)
	return others
}

// propose returns units whose leaving lets the group fit on the rows, by sums; nil if it does not
// fit. Their highest priority is the lowest that costs no more violations. clean is set if a market
// of fewer units can propose nothing better: the set violates no budget, and has no whole gang in
// it, or is nil.
func (m *market) propose(rows []table.Row) (set []*unit, clean bool) {
	order := m.order(rows)
	chosen, least := m.buy(rows, order, math.MaxInt32)
	if chosen == nil {
		return nil, true
	}
	sort.Search(len(m.levels)-1, func(i int) bool {
		some, violations := m.buy(rows, order, m.levels[i])
		if some == nil || violations > least {
			return false
		}
		chosen = some // at a lower level each time
		return true
	})
	taken, whole := map[*gang]int{}, false
	for u := range chosen { // any order: a sum
		taken[u.gang]++
	}
	for u := range chosen { // any order: sorted below
		if g := u.gang; g != nil && taken[g] > len(g.surplus)-g.least {
			u, whole = g.whole, true
		}
		if !slices.Contains(set, u) {
			set = append(set, u)
		}
	}
	slices.SortFunc(set, moreImportantUnit)
	return set, !whole && m.costOf(set).numPDBViolations == 0
}

// market holds the units that may leave the rows, so that these can offer room to a group's pods.
type market struct {
	*fewest
	units  [][]onOffer // by row
	levels []int32     // the priorities of the units, ascending, each once
}

// newMarket returns a new market of the units.
func newMarket(s *fewest, units []*unit) *market {
	m := &market{fewest: s, units: make([][]onOffer, s.Table.Rows())}
	for _, u := range units {
		m.levels = append(m.levels, u.priority)
		p := price{}
		for _, pod := range u.pods {
			p.weight += weight(u.priority)
			if len(s.Budgets) > 0 && newBudgetUse(s.Budgets).charge(pod) != nil {
				p.violations++
			}
		}
		for i, r := range u.rows {
			on := m.units[r]
			if len(on) == 0 || on[len(on)-1].unit != u {
				on = append(on, onOffer{unit: u, price: p})
			}
			last := &on[len(on)-1]
			last.pods = append(last.pods, u.pods[i])
			m.units[r] = on
		}
	}
	slices.Sort(m.levels)
	m.levels = slices.Compact(m.levels)
	return m
}

// buy chooses, among units of at most the priority highest, the cheapest whose leaving lets the
// rows take the group. order has the indices of the group's classes, which are served one after
// the other. violations is how many pods of the chosen units violate a budget by themselves. chosen
// is nil if the rows do not take the group, or if too many rows were looked at.
func (m *market) buy(rows []table.Row, order []int, highest int32) (chosen map[*unit]bool, violations int) {
	if m.work += len(order) * len(rows); m.work > mostRows {
		return nil, 0
	}
	chosen = map[*unit]bool{}
	placed := map[table.Row][]*object.Pod{}
	for _, k := range order {
		class := &m.rooms.Classes[k]
		need := m.wanted(k)
		for _, r := range rows {
			h := m.hostOf(k, r, chosen, placed[r])
			n := h.takes(need)
			placed[r] = append(placed[r], class.Pods[:n]...)
			need -= n
		}
		if need == 0 {
			continue
		}
		offers, most := make([][]offer, len(rows)), 0
		for i, r := range rows {
			h := m.hostOf(k, r, chosen, placed[r])
			offers[i] = h.offers(m.left(r, highest, chosen), need)
			most = max(most, len(offers[i]))
		}
		if most == 0 || len(rows)*need*most > mostSteps {
			return nil, 0
		}
		picked := cheapest(offers, need)
		if picked == nil {
			return nil, 0
		}
		for i, n := range picked {
			if n == 0 {
				continue
			}
			placed[rows[i]] = append(placed[rows[i]], class.Pods[:n]...)
			violations += offers[i][n-1].violations
			for _, u := range offers[i][n-1].units {
				chosen[u.unit] = true
			}
		}
	}
	return chosen, violations
}

// order returns the indices of the classes, those first of which the fewest pods fit on the rows
// without all units.
func (m *market) order(rows []table.Row) (order []int) {
	fits := make([]int, len(m.rooms.Classes))
	for k := range m.rooms.Classes {
		order = append(order, k)
		for _, r := range rows {
			h := hostOn(&m.rooms.Classes[k], r)
			for _, u := range m.units[r] {
				h.leave(u.pods)
			}
			fits[k] += h.takes(math.MaxInt32)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(fits[a], fits[b]) })
	return order
}

// wanted returns how many pods of class k the victims must make room for: all of them, or as
// many as the best result so far places.
func (m *market) wanted(k int) (n int) {
	pods := m.rooms.Classes[k].Pods
	if m.cost == nil {
		return len(pods)
	}
	for _, a := range m.result.Assignments {
		if slices.Contains(pods, a.Pod) {
			n++
		}
	}
	return n
}

// hostOf returns the host for class k and row r after the units in gone left the row and placed,
// pods of the group, came to it.
func (m *market) hostOf(k int, r table.Row, gone map[*unit]bool, placed []*object.Pod) host {
	h := hostOn(&m.rooms.Classes[k], r)
	for _, u := range m.units[r] {
		if gone[u.unit] {
			h.leave(u.pods)
		}
	}
	h.come(placed)
	return h
}

// left returns the units on the row that have at most the priority highest and are not in gone.
func (m *market) left(r table.Row, highest int32, gone map[*unit]bool) []onOffer {
	return slices.DeleteFunc(slices.Clone(m.units[r]), func(u onOffer) bool { return u.priority > highest || gone[u.unit] })
}

// offers returns the cheapest set of the units for one more pod of the class, for two, and so on,
// up to need or to what the row takes without all units. It looks at no more than mostSetsOnRow
// sets, first at those of the cheapest units, of equally cheap ones at those that free most.
func (h *host) offers(units []onOffer, need int) []offer {
	emptied := *h
	emptied.free = slices.Clone(h.free)
	for i := range units {
		units[i].frees = h.frees(units[i].pods)
		emptied.leave(units[i].pods)
	}
	if need = emptied.takes(need); need == 0 {
		return nil
	}
	x := rowSearch{host: *h, units: units, best: make([]offer, need), sets: mostSetsOnRow}
	slices.SortStableFunc(x.units, func(a, b onOffer) int {
		return cmp.Or(a.price.compare(b.price), slices.Compare(b.frees, a.frees), b.since.Compare(a.since))
	})
	for n := range x.best {
		x.best[n].price = tooDear
	}
	x.extend(0, price{})
	for n := range x.best {
		if x.best[n].price == tooDear {
			return x.best[:n]
		}
	}
	return x.best
}

// rowSearch is a search through the sets of units on a row. Its host is the row without picked.
type rowSearch struct {
	host
	units  []onOffer // the cheapest first
	picked []onOffer // the set at hand
	saved  []int64   // what was free before each of picked
	best   []offer   // for one pod, two, ...
	sets   int       // how many more are looked at
}

// extend tries the picked units, whose price is paid. It records them in x.best for each number
// of pods for which they are cheaper. Then it adds units from index from on, and recurs.
func (x *rowSearch) extend(from int, paid price) {
	n := x.takes(len(x.best))
	for i := n - 1; i >= 0 && paid.compare(x.best[i].price) < 0; i-- {
		x.best[i] = offer{paid, slices.Clone(x.picked)}
	}
	rejects := x.rejects
	for i := from; i < len(x.units) && n < len(x.best); i++ {
		total := paid.plus(x.units[i].price)
		alike := i > from && x.units[i].price == x.units[i-1].price && slices.Equal(x.units[i].frees, x.units[i-1].frees)
		if alike || total.compare(x.best[len(x.best)-1].price) >= 0 {
			continue
		}
		if x.sets--; x.sets < 0 {
			return
		}
		kept := len(x.saved)
		x.saved = append(x.saved, x.free...)
		for d, n := range x.units[i].frees {
			x.free[d] = resource.Add(x.free[d], n)
		}
		x.rejects, x.picked = false, append(x.picked, x.units[i])
		x.extend(i+1, total)
		copy(x.free, x.saved[kept:])
		x.rejects, x.picked, x.saved = rejects, x.picked[:len(x.picked)-1], x.saved[:kept]
	}
}

// cheapest chooses at most one offer of each row, so that the rows together take need more pods at
// the lowest price. It returns, by row, for how many pods the chosen offer is, 0 for none; nil if
// the rows do not take so many.
func cheapest(offers [][]offer, need int) []int {
	least := make([]price, need+1) // for so many pods
	for n := range least[1:] {
		least[n+1] = tooDear
	}
	chosen := make([]uint16, len(offers)*(need+1)) // pods on the row, by row and pods
	for i, of := range offers {
		for n := need; n > 0; n-- {
			for more := range of {
				before := least[max(0, n-more-1)]
				if before == tooDear {
					continue
				}
				if total := before.plus(of[more].price); total.compare(least[n]) < 0 {
					least[n], chosen[i*(need+1)+n] = total, uint16(more+1)
				}
			}
		}
	}
	if least[need] == tooDear {
		return nil
	}
	picked := make([]int, len(offers))
	for i, left := len(offers)-1, need; i >= 0; i-- {
		picked[i] = int(chosen[i*(need+1)+left])
		left = max(0, left-picked[i])
	}
	return picked
}
