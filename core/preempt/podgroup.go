package preempt

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// The victims of a pod group (v1.36, PodGroupEvaluator). All pods of lower priority go, from
// all nodes; the group is tried; then they come back one after the other as long as the group
// still fits.

// unit is what is preempted as a whole: a pod, or the placed pods of a group.
type unit struct {
	pods     []*object.Pod
	rows     []table.Row // of the pods
	priority int32       // of the pod, or of the group if it is preempted as a whole
	// grouped is set if its pods belong to a pod group. If the group is not preempted as a
	// whole each of them is a unit.
	grouped bool
	since   time.Time // when the first of its pods started
	gone    bool      // its pods are off their nodes
}

// takeFrom removes the unit's pods from the table, to try the group without them.
func (u *unit) takeFrom(t *table.Table) {
	u.gone = true
	for _, p := range u.pods {
		t.RemovePod(p.UID)
	}
}

// putBack places the unit's pods on their rows again.
func (u *unit) putBack(t *table.Table) {
	u.gone = false
	for i, p := range u.pods {
		t.Place(p, u.rows[i])
	}
}

// groupLimits bounds a search, in decisions: tries of the group times its pods. A search
// that may need more than oneByOne puts many units back at a time, and halves a set in
// which some unit cannot stay. The victims are the same, unless a pod can stay only because
// another one stays. After more than most decisions the search is abandoned.
type groupLimits struct{ oneByOne, most int }

// groupSearch is one search for the victims of a pod group.
type groupSearch struct {
	*framework.PodGroupPostFilterCall
	groupLimits
	decisions int // cost so far
}

// ForGroup returns the pods to evict so that the pod group fits, or a status with the
// reason why there are none. It tries on the table and leaves it as it was.
func ForGroup(c *framework.PodGroupPostFilterCall) framework.PodGroupPostFilterResult {
	return forGroup(c, groupLimits{oneByOne: 20_000, most: 150_000}) // a second, 20 where each pod takes long
}

// forGroup does the work of ForGroup within the limits.
func forGroup(c *framework.PodGroupPostFilterCall, limits groupLimits) framework.PodGroupPostFilterResult {
	if slices.ContainsFunc(c.Pods, func(p *object.Pod) bool { return p.NeverPreempts }) {
		return noGroupVictims(decision.Unschedulable, reasonNever)
	}
	units := lowerUnits(c)
	if len(units) == 0 {
		return noGroupVictims(decision.UnschedulableAndUnresolvable, "No preemption victims found for incoming preemptor")
	}
	defer func() { // also where a plugin panics
		for _, u := range units {
			if u.gone {
				u.putBack(c.Table)
			}
		}
	}()
	for _, u := range units {
		u.takeFrom(c.Table)
	}
	s := groupSearch{PodGroupPostFilterCall: c, groupLimits: limits}
	if status := s.try(); status != nil {
		return framework.PodGroupPostFilterResult{Status: status}
	}
	slices.SortFunc(units, moreImportantUnit)
	guarded, others := splitUnits(units, c.Budgets)
	atOnce := 1
	if len(units)*len(c.Pods) > s.oneByOne {
		atOnce = len(units)
	}
	s.reprieve(guarded, atOnce)
	s.reprieve(others, atOnce)
	if s.decisions > s.most {
		return noGroupVictims(decision.Unschedulable, fmt.Sprintf("preemption: the search for victims was given up after %d decisions", s.decisions))
	}
	var result framework.PodGroupPostFilterResult
	for _, u := range units {
		if u.gone {
			result.Victims = append(result.Victims, u.pods...)
		}
	}
	return result
}

// noGroupVictims returns a result without victims, with that code and reason.
func noGroupVictims(code decision.Code, why string) framework.PodGroupPostFilterResult {
	return framework.PodGroupPostFilterResult{Status: &decision.Status{Code: code, Reasons: []string{why}}}
}

// try tries to place the group on the table as it is now, and counts the cost. nil means
// that it fits.
func (s *groupSearch) try() *decision.Status {
	s.decisions += len(s.Pods)
	return s.Try()
}

// reprieve puts the units back, atOnce at a time, and removes those again with which the
// group does not fit. It stops after most decisions.
func (s *groupSearch) reprieve(units []*unit, atOnce int) {
	for some := range slices.Chunk(units, max(1, atOnce)) {
		if s.decisions > s.most {
			return
		}
		for _, u := range some {
			u.putBack(s.Table)
		}
		if s.try() == nil {
			continue
		}
		for _, u := range some {
			u.takeFrom(s.Table)
		}
		if len(some) > 1 {
			s.reprieve(some, (len(some)+1)/2)
		}
	}
}

// lowerUnits returns the units of lower priority than the group, in the order of their
// first pods' rows. Pods of the group itself, and of nodes that are gone, are left out.
func lowerUnits(c *framework.PodGroupPostFilterCall) []*unit {
	var units []*unit
	wholes := map[types.UID]*unit{} // by group
	for _, r := range c.Table.All() {
		if c.Table.Node(r) == nil {
			continue // its pods are bound to a node that is gone
		}
		for _, pl := range c.Table.Pods(r) {
			p := pl.Pod
			u := &unit{priority: p.Priority, grouped: p.PodGroup() != ""}
			if u.grouped {
				g := table.Lookup[*object.PodGroup](c.Table, object.PodGroups, p.Namespace, p.PodGroup())
				if g != nil && g.PreemptedWhole {
					if whole := wholes[g.UID]; whole != nil {
						u = whole
					} else {
						u.priority, wholes[g.UID] = g.Priority, u
					}
				}
			}
			if u.priority >= c.Group.Priority || p.Namespace == c.Group.Namespace && p.PodGroup() == c.Group.Name {
				continue
			}
			if len(u.pods) == 0 {
				units = append(units, u)
			}
			u.add(p, r, c.Now)
		}
	}
	return units
}

// add adds a pod, placed on row r, to the unit. A pod that has not started counts as
// started now.
func (u *unit) add(p *object.Pod, r table.Row, now time.Time) {
	if since := started(p, now); len(u.pods) == 0 || since.Before(u.since) {
		u.since = since
	}
	u.pods, u.rows = append(u.pods, p), append(u.rows, r)
}

// moreImportantUnit compares units, the more important first: higher priority, groups
// before pods, groups with more pods, then those that started earlier. The UID of the first
// pod makes the order total, where v1.36's is left open.
func moreImportantUnit(a, b *unit) int {
	return cmp.Or(
		cmp.Compare(b.priority, a.priority),
		-compareBool(a.grouped, b.grouped),
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

// splitUnits separates the units whose eviction would violate a budget (guarded) from the
// others, both in the given order.
func splitUnits(units []*unit, budgets []*object.Budget) (guarded, others []*unit) {
	used := newBudgetUse(budgets)
	for _, u := range units {
		if slices.ContainsFunc(u.pods, used.charge) {
			guarded = append(guarded, u)
		} else {
			others = append(others, u)
		}
	}
	return guarded, others
}
