package machine

import (
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
)

// triesInARow is how many attempts in a row a group has that may fit with other choices among
// nodes of equal score. After them it waits for events, as other groups do at once.
const triesInARow = 3

// groupWait is how a group that does not fit waits for its next attempt.
type groupWait struct {
	groups *podGroups
	cycle  *groupCycle
	// forEvents is set if it waits until an event may help one of its pods. Otherwise it is
	// tried again after its backoff.
	forEvents bool
	// anyPlugin is set if an event may help a pod whatever plugin registered it: the verdict of
	// any filter on any pod may decide whether the group fits.
	anyPlugin bool
	filters   map[string][]string // result of filtersOf by template
}

// newGroupWait returns how the group waits.
//
// There are four cases:
//   - All pods of the cycle are of one class, and filters answer by the node alone. The choice
//     among equal nodes changes neither how many fit nor what quotas leave. Every attempt ends
//     alike until something changes, so the group waits for events at once.
//   - The pods differ, or a filter looks beyond the node. Other choices may let the group fit. It
//     has triesInARow attempts for them, then it waits for events. If it has just preempted pods,
//     it is tried again after its backoff, since these leave soon.
//   - One cycle did not try all placements and orders, or a hosted plugin generated no placement.
//     The group is tried again after its backoff.
//   - The group has a fault, and was not tried. It waits for the event that mends the fault.
func (l *podGroups) newGroupWait(c *groupCycle) *groupWait {
	of, _ := levelsOf(l.options, c.profile, c.group)
	alike := equalPods(c.members) && !slices.ContainsFunc(c.members, func(mb *groupMember) bool {
		return mb.tried && mb.failed == nil && !mb.local
	})
	generator := c.profile.PlacementGenerate
	noPlacement := l.options.GroupPlacements && of.levels == nil && c.placement == nil
	w := &groupWait{groups: l, cycle: c, anyPlugin: !alike || l.constrained(c), filters: map[string][]string{}}
	switch {
	case c.group.Fault != "":
		w.forEvents, w.anyPlugin = true, false
	case c.partial || noPlacement && generator != nil && generator.Hosted != nil:
	case alike && !w.anyPlugin:
		w.forEvents = true
	case c.preempts: // its victims leave soon
	default:
		w.forEvents = alike || c.members[0].record.Attempt%triesInARow == 0
	}
	return w
}

// rejected returns the plugins whose events may help a pod that plugins rejected; nil if the group
// does not wait for events.
func (w *groupWait) rejected(mb *groupMember) []string {
	switch {
	case !w.forEvents:
		return nil
	case w.anyPlugin:
		return slices.Concat(mb.record.RejectedBy, w.filtersOf(mb), w.budgets())
	}
	return slices.Concat(mb.record.RejectedBy, w.budgets())
}

// held returns the plugins whose events may help a pod that no plugin rejected though its group
// was: those that found the group infeasible, and the one that changes claims for it. It returns
// nil if the group does not wait for events.
func (w *groupWait) held(mb *groupMember) (names []string) {
	if !w.forEvents {
		return nil
	}
	for _, pl := range w.cycle.profile.PlacementFeasible {
		names = append(names, pl.Name)
	}
	if len(mb.writes) > 0 {
		names = append(names, mb.writer)
	}
	if w.anyPlugin {
		names = append(names, w.filtersOf(mb)...)
	}
	return append(names, w.budgets()...)
}

// budgets returns the name by which pods wait for a change of a budget, if budgets are strict: the
// search for victims does not say whether one kept them.
func (w *groupWait) budgets() []string {
	if !w.cycle.profile.StrictBudgets || w.cycle.group.Fault != "" {
		return nil
	}
	return []string{framework.PreemptionBudgets}
}

// filtersOf returns the plugins whose filters have a say about the pod: PreFilter, which it calls,
// does not skip the pod. Hosted plugins count as if theirs did not. The result is shared by equal
// pods.
func (w *groupWait) filtersOf(mb *groupMember) (names []string) {
	template := string(mb.pod.AppendTemplate(nil))
	if names, known := w.filters[template]; known {
		return names
	}
	for _, pl := range w.cycle.profile.PreFilter {
		skips := false
		if pl.PreFilter != nil && pl.Hosted == nil {
			err := w.groups.guard.run("PreFilter", pl.Name, func() { skips = pl.PreFilter(w.groups.table, mb.pod).Skip })
			skips = skips && err == nil
		}
		if !skips {
			names = append(names, pl.Name)
		}
	}
	w.filters[template] = names
	return names
}

// relabelled handles new labels of a node. If the label of a topology level changed, the node is in
// another domain. Groups that are kept in one domain by that label may then be tried again.
func (l *podGroups) relabelled(old, now *object.Node) {
	if l.table.Groups() == nil || maps.Equal(old.Labels, now.Labels) {
		return
	}
	changed := func(key string) bool {
		before, had := old.Labels[key]
		value, has := now.Labels[key]
		return had != has || before != value
	}
	moved := func(p *object.Pod) bool {
		of := l.profiles[p.SchedulerName]
		g := table.PodGroup(l.table, p.GroupKey())
		if p.PodGroup() == "" || of == nil || g == nil {
			return false
		}
		if levels, _ := levelsOf(l.options, of, g); levels.levels != nil {
			return slices.ContainsFunc(levels.levels, changed)
		}
		return l.options.GroupPlacements && g.TopologyKey != "" && changed(g.TopologyKey)
	}
	leveled := func(of string) bool { return slices.ContainsFunc(l.profiles[of].Levels, changed) }
	if l.options.GroupPlacements || slices.ContainsFunc(slices.Collect(maps.Keys(l.profiles)), leveled) { // any order: one is enough
		l.queue.MoveInNamespaces(l.now, queue.Label(framework.Node, framework.UpdateNodeLabel), func(string) bool { return true }, moved)
	}
}
