package preempt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/table"
)

// The victims of a pod group (kube-scheduler, PodGroupEvaluator). All pods of lower priority
// go, from all nodes; the group is tried once; then they come back one after the other as
// long as the group's pods still fit on the nodes that were found.

// unit is what is preempted as a whole: a pod, or the placed pods of a group.
type unit struct {
	pods     []*object.Pod
	rows     []table.Row // of the pods; none for a whole gang, whose pods are units of their own
	priority int32       // of the pod, or of its group
	// grouped is set for a pod of one of Kubernetes' own groups, for all pods of such a group, and
	// for a whole gang, but not for a single pod of a gang that keeps its minimum.
	grouped bool
	surplus bool      // it is a single pod of a gang that keeps its minimum or goes as a whole
	gang    *gang     // of such a pod, and of the unit of the whole gang; else nil
	since   time.Time // when the first of its pods started
	gone    bool      // its pods are off their nodes
	// violations is the number of its pods whose eviction violates a budget, as splitUnits found.
	violations int
}

// takeFrom removes the unit's pods from the table, for a trial, and marks the unit as gone. For a
// whole gang it removes none: its pods are units of their own.
func (u *unit) takeFrom(t *table.Table) {
	u.gone = true
	for i := range u.rows {
		t.RemovePod(u.pods[i].UID)
	}
}

// putBack places the unit's pods on their rows again, and marks the unit as not gone.
func (u *unit) putBack(t *table.Table) {
	u.gone = false
	for i, r := range u.rows {
		t.Place(u.pods[i], r)
	}
}

// mostChecks bounds the answers of filters in one search for the victims of a group, which
// take about a second. A search that may need more puts many units back at a time, and
// halves a set in which some unit cannot stay. The victims are the same, unless a pod can
// stay only because another one stays.
const mostChecks = 200_000

// groupSearch is one search for the victims of a pod group.
type groupSearch struct {
	*framework.PodGroupPostFilterCall
	assignments []framework.GroupAssignment // nodes for the group's pods when all units are gone
	byRow       map[table.Row][]int         // indices in assignments
	local       bool                        // units on other rows change nothing for an assignment
}

const (
	prefix      = "pod group preemption: "                             // of each reason
	noneToEvict = "No preemption victims found for incoming preemptor" // the one if no unit may go
)

// ForGroup returns the pods to evict so that the pod group fits, with the nodes of its pods
// then, or a status with the reason why there are none. While pods that were preempted for the
// group are leaving, it returns Success and no pods. It tries on the table and leaves it as it was.
func ForGroup(c *framework.PodGroupPostFilterCall) framework.PodGroupPostFilterResult {
	return searchVictims(c, mostChecks)
}

// searchVictims returns the result of ForGroup. If filters look beyond the node, and a search may
// need more than most of their answers, it puts units back many at a time.
func searchVictims(c *framework.PodGroupPostFilterCall, most int) framework.PodGroupPostFilterResult {
	switch {
	case c.Searched:
		return framework.PodGroupPostFilterResult{Status: &decision.Status{Code: decision.Unschedulable}, Searched: true}
	case slices.ContainsFunc(c.Pods, func(p *object.Pod) bool { return p.NeverPreempts }):
		return groupResult(decision.Unschedulable, reasonNever)
	case c.Leaving:
		return groupResult(decision.Success, "ongoing preemption on nominated nodes")
	}
	rules := rulesForGroup(c)
	found, gone := searchAll(c, rules, most)
	if c.Group.Source == "" && rules.reclaim == nil || c.Rooms == nil {
		return found // as kube-scheduler does
	}
	return improve(c, rules, found, gone, most)
}

// searchAll searches the victims among all units that may go. gone are the units whose pods are the
// victims, or would be if a strict budget let them go.
func searchAll(c *framework.PodGroupPostFilterCall, rules unitRules, most int) (found framework.PodGroupPostFilterResult, gone []*unit) {
	units := rules.together(lowerUnits(c, rules))
	if some := spareOf(units); len(some) > 0 {
		// Where all may go the group may be placed on nodes without any.
		if found, gone := tryWithout(c, some, most, rules); found.Status.Code == decision.Success && !slices.ContainsFunc(gone, guarded) {
			return found, gone
		}
	}
	found, gone = tryWithout(c, units, most, rules)
	if len(gone) > 0 && found.Status.Code != decision.Success {
		// A budget keeps victims. The group may be placed on nodes without them.
		if other, gone := tryWithout(c, rules.unguarded(c), most, rules); other.Status.Code == decision.Success {
			return other, gone
		}
	}
	if found.Status.Code == decision.Success || !rules.entitled {
		return found, gone
	}
	// What may go together is spread over nodes as importance has it. Others may do.
	if some := rules.alone(lowerUnits(c, rules)); len(some) > len(units) {
		if other, gone := tryWithout(c, some, most, rules); other.Status.Code == decision.Success && rules.permits(gone) {
			return other, gone
		}
	}
	return found, gone
}

// guarded reports whether evicting the unit violates a budget, as splitUnits found.
func guarded(u *unit) bool { return u.violations > 0 }

// rulesForGroup returns the rules by which units may go for the group. ElasticQuotas judge what its
// pods request together.
func rulesForGroup(c *framework.PodGroupPostFilterCall) unitRules {
	rules := unitRules{priority: c.Group.Priority, evicting: c.Evicting}
	if c.Quotas == nil || !quota.Of(c.Table).Any() {
		return rules
	}
	group := *quota.Together(c.Pods)
	group.UID, group.Priority = "", c.Group.Priority
	others := func(yield func(*object.Pod) bool) {
		for p := range c.Nominated.All {
			if !slices.ContainsFunc(c.Pods, func(own *object.Pod) bool { return own.UID == p.UID }) && !yield(p) {
				return
			}
		}
	}
	if c.Nominated.All == nil {
		others = nil
	}
	rules.reclaim = quota.Of(c.Table).Reclaim(&quota.Ask{Pod: &group, Nominated: quota.Nominated{All: others}, UnlistedZero: c.Quotas.UnlistedZero}, c.Evicting)
	rules.entitled = rules.reclaim.Entitled()
	return rules
}

// tryWithout takes all of the units off the table, tries the group once, and puts back the units
// beside which it still fits. It returns the result, or why there is none, and the units that go,
// also if a strict budget keeps them from going. It leaves the table as it was.
func tryWithout(c *framework.PodGroupPostFilterCall, units []*unit, most int, rules unitRules) (_ framework.PodGroupPostFilterResult, gone []*unit) {
	if len(units) == 0 {
		return groupResult(decision.UnschedulableAndUnresolvable, noneToEvict), nil
	}
	defer func() { // also where a plugin panics
		for _, u := range units {
			if u.gone {
				u.putBack(c.Table)
			}
			if u.gang != nil {
				u.gang.lost = false
			}
		}
	}()
	for _, u := range units {
		u.takeFrom(c.Table)
	}
	s := groupSearch{PodGroupPostFilterCall: c, byRow: map[table.Row][]int{}}
	s.local = rules.reclaim == nil || !rules.reclaim.Queued() // the quotas' verdict depends on all nodes
	var status *decision.Status
	if s.assignments, status = c.Try(); status != nil {
		failed := *status
		failed.Err, failed.Reasons = nil, slices.Clone(status.Reasons)
		if status.Err != nil {
			failed.Reasons = slices.Insert(failed.Reasons, 0, status.Err.Error())
		}
		failed.Reasons = []string{prefix + strings.Join(failed.Reasons, ", ")}
		return framework.PodGroupPostFilterResult{Status: &failed, Searched: true}, nil
	}
	for i, a := range s.assignments {
		s.byRow[a.Row] = append(s.byRow[a.Row], i)
		s.local = s.local && a.Local
	}
	guarded, others := splitUnits(units, c.Budgets)
	atOnce := 1
	if !s.local && len(units)*len(s.assignments) > most {
		atOnce = len(units)
	}
	back := newPardon(c.Table, units, s.fits)
	back.all(guarded, atOnce)
	back.all(others, atOnce)
	gone = goneOf(units)
	result := s.result(gone)
	if b := broken(&framework.Disruption{Budgets: c.Budgets, Strict: c.Strict}, result.Victims); b != nil {
		result = groupResult(b.Code, b.Reasons[0])
	}
	return result, gone
}

// goneOf returns those of the units that are gone. Of a gang that goes as a whole it returns the
// unit of the whole gang alone.
func goneOf(units []*unit) (gone []*unit) {
	for _, u := range units {
		if u.gone && (u.gang == nil || u.gang.lost == u.isWhole()) {
			gone = append(gone, u)
		}
	}
	return gone
}

// result returns the search's result: the pods of the units that go.
func (s *groupSearch) result(gone []*unit) framework.PodGroupPostFilterResult {
	var victims []*object.Pod
	for _, u := range gone {
		victims = append(victims, u.pods...)
	}
	result := groupResult(decision.Success, fmt.Sprintf("found a placement for podgroup, preempting %d victims", len(victims)))
	result.Victims = victims
	for _, a := range s.assignments {
		result.Assignments = append(result.Assignments, a.Assignment)
	}
	return result
}

// groupResult returns a result without victims, with that code and reason, and Searched set.
func groupResult(code decision.Code, why string) framework.PodGroupPostFilterResult {
	return framework.PodGroupPostFilterResult{Searched: true, Status: &decision.Status{Code: code, Reasons: []string{prefix + why}}}
}

// fits reports whether the filters accept each pod of the group on its node, one after the
// other, with those before it placed. If they answer by the node alone (s.local) only the nodes of
// back, the units that came back, are asked about. It leaves the table as it was.
func (s *groupSearch) fits(back []*unit) (fits bool) {
	asked := s.assignments
	if s.local {
		asked = nil
		rows := map[table.Row]bool{}
		for _, u := range back {
			for _, r := range u.rows {
				if !rows[r] {
					rows[r] = true
					for _, i := range s.byRow[r] {
						asked = append(asked, s.assignments[i])
					}
				}
			}
		}
	}
	placed := 0
	defer func() {
		for _, a := range slices.Backward(asked[:placed]) {
			a.Remove()
		}
	}()
	for _, a := range asked {
		if !s.Fits(a) {
			return false
		}
		placed++
		a.Place()
	}
	return true
}

// lowerUnits returns the units that the rules do not exclude, each where its first row comes in the
// order of rows. Pods of nodes that are gone are left out.
func lowerUnits(c *framework.PodGroupPostFilterCall, rules unitRules) []*unit {
	return unitsOf(c, unitList{unitRules: rules})
}

// unitsOf collects the units of all rows in list and returns them. Pods of nodes that are gone are
// left out.
func unitsOf(c *framework.PodGroupPostFilterCall, list unitList) []*unit {
	list.table, list.now = c.Table, c.Now
	for _, r := range c.Table.All() {
		if c.Table.Node(r) != nil { // else its pods are bound to a node that is gone
			list.add(r)
		}
	}
	return list.units
}

// add adds a pod, placed on row r, to the unit. A pod that has not started counts as
// started now.
func (u *unit) add(p *object.Pod, r table.Row, now time.Time) {
	if since := started(p, now); len(u.pods) == 0 || since.Before(u.since) {
		u.since = since
	}
	u.pods, u.rows = append(u.pods, p), append(u.rows, r)
}

// groupOf returns the PodGroup of Kubernetes that the pod names; nil if it names none, or that does
// not exist. It is nil, too, for groups from other sources, whose pods have their own priority.
func groupOf(t *table.Table, p *object.Pod) *object.PodGroup {
	if t.Groups() == nil || p.KubernetesGroup() == "" {
		return nil
	}
	return table.PodGroup(t, p.GroupKey())
}

// PriorityOf returns the priority by which a placed pod is preempted: that of its PodGroup of
// Kubernetes, if it has one, else its own (kube-scheduler, GetPodPriority).
func PriorityOf(t *table.Table, p *object.Pod) int32 { return priorityIn(groupOf(t, p), p) }

// priorityIn returns the priority of the group g, or that of the pod if g is nil.
func priorityIn(g *object.PodGroup, p *object.Pod) int32 {
	if g != nil {
		return g.Priority
	}
	return p.Priority
}

// moreImportantUnit compares units, the more important first: higher priority, groups before pods
// and these before the surplus of gangs, groups with more pods, then those that started earlier.
// The UID of the first pod makes the order total, where kube-scheduler's is left open.
func moreImportantUnit(a, b *unit) int {
	return cmp.Or(
		cmp.Compare(b.priority, a.priority),
		-compareBool(a.grouped, b.grouped),
		compareBool(a.surplus, b.surplus),
		cmp.Compare(len(b.pods), len(a.pods)), // single pods are all of one size
		a.since.Compare(b.since),
		cmp.Compare(a.pods[0].UID, b.pods[0].UID),
	)
}

// compareBool returns -1, 0 or 1, as cmp.Compare does, with false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// splitUnits separates the units whose eviction would violate a budget (guarded) from the others,
// both in the given order, and sets each unit's violations. Earlier units use up budgets first.
func splitUnits(units []*unit, budgets []*object.Budget) (guarded, others []*unit) {
	used := newBudgetUse(budgets)
	for _, u := range units {
		u.violations = 0
		used := used
		if u.isWhole() { // each of its pods is charged when it is its turn
			used = used.clone()
		}
		for _, p := range u.pods {
			if used.charge(p) != nil {
				u.violations++
			}
		}
		if u.violations > 0 {
			guarded = append(guarded, u)
		} else {
			others = append(others, u)
		}
	}
	return guarded, others
}
