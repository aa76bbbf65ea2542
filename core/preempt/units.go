package preempt

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/index/priorities"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/table"
)

// While a pod of a pod group is placed anywhere, a single pod preempts by units: a group
// that is preempted as a whole goes from all its nodes, and at equal priority pods of groups
// are more important than others. On a node without pods of groups each pod is a unit, and
// the search is that among pods.

// byUnits reports whether a pod preempts by units, as in kube-scheduler: a pod of one of
// Kubernetes' own groups is placed somewhere.
func byUnits(t *table.Table) bool { return t.Groups().AnyPlaced() }

// groupsOn reports whether pods of Kubernetes' own groups are on the row.
func groupsOn(t *table.Table, row table.Row) bool {
	return byUnits(t) && priorities.Of(t).Grouped(row)
}

// gangsOn reports whether pods of groups that are not Kubernetes' own are on the row.
func gangsOn(t *table.Table, row table.Row) bool {
	return t.Groups().AnyOthersPlaced() && slices.ContainsFunc(t.Pods(row), func(pl *table.Placed) bool {
		return pl.Pod.PodGroup() != "" && pl.Pod.KubernetesGroup() == ""
	})
}

// unitRules says which units a preemptor may have go.
type unitRules struct {
	priority int32          // of the preemptor
	reclaim  *quota.Reclaim // nil if no ElasticQuotas are followed
	entitled bool           // the preemptor may preempt pods of other queues
	// evicting reports whether a pod is a victim of an earlier preemption; nil: none is.
	evicting func(types.UID) bool
}

// rules returns the rules by which units may go for the pod at hand.
func (c *call) rules() unitRules {
	return unitRules{c.Pod.Priority, c.reclaim, c.entitled, c.Disruption.Evicting}
}

// excludes reports whether a unit with the pod p, of that priority, may not go whatever other units
// do. If the preemptor is entitled it is false: that depends on the other units. Else the unit must
// have a lower priority than the preemptor and, if ElasticQuotas are followed, the same queue.
func (r *unitRules) excludes(p *object.Pod, priority int32) bool {
	if r.entitled {
		return false
	}
	return priority >= r.priority || r.reclaim != nil && !r.reclaim.SharesQueue(p)
}

// together returns those of the units that may go together, the most important first. It returns
// all unless the preemptor is entitled; then no queue may fall below its min, and the least
// important units are decided on first. It reorders units, and takes pods that must stay out of the
// surplus of their gangs.
func (r *unitRules) together(units []*unit) []*unit {
	slices.SortFunc(units, moreImportantUnit)
	if !r.entitled {
		return units
	}
	r.reclaim.Restart()
	may, alone := map[*unit]bool{}, map[*gang]int{} // how many go though the gang stays
	for _, u := range slices.Backward(units) {
		switch g := u.gang; {
		case u.isWhole():
			r.decideWhole(g, may)
		case g == nil || g.least == 0 || alone[g] < g.spare:
			if may[u] = r.reclaim.Allows(u.pods, u.priority); may[u] && g != nil {
				alone[g]++
			}
		}
	}
	return slices.DeleteFunc(units, func(u *unit) bool { return !may[u] })
}

// decideWhole adds all units of the gang to may, the units that may go, if all of its pods may go
// together. If not, it takes the units that are not in may out of the gang's surplus: they stay.
func (r *unitRules) decideWhole(g *gang, may map[*unit]bool) {
	var rest []*object.Pod
	for _, p := range g.whole.pods {
		if !slices.ContainsFunc(g.surplus, func(u *unit) bool { return may[u] && u.pods[0] == p }) {
			rest = append(rest, p)
		}
	}
	if r.reclaim.Allows(rest, g.whole.priority) {
		may[g.whole] = true
		for _, u := range g.surplus {
			may[u] = true
		}
		return
	}
	g.surplus, g.least = slices.DeleteFunc(slices.Clone(g.surplus), func(u *unit) bool { return !may[u] }), 0
}

// alone returns the units of which each may go if no other unit does, the most important first.
// The unit that stands for a whole gang is always among them. Whether several may go together,
// permits reports. A pod that may not go is taken out of its gang's surplus. The preemptor
// must be entitled.
func (r *unitRules) alone(units []*unit) (may []*unit) {
	for _, u := range units {
		r.reclaim.Restart()
		switch {
		case u.isWhole() || r.reclaim.Allows(u.pods, u.priority):
			may = append(may, u)
		case u.gang != nil:
			u.gang.leave(u)
		}
	}
	slices.SortFunc(may, moreImportantUnit)
	return may
}

// permits reports whether the quotas let all of the units go together. It sorts the units. The
// preemptor must be entitled.
func (r *unitRules) permits(units []*unit) bool {
	slices.SortFunc(units, moreImportantUnit)
	r.reclaim.Restart()
	for _, u := range slices.Backward(units) {
		if !r.reclaim.Allows(u.pods, u.priority) {
			return false
		}
	}
	return true
}

// unitList collects the units that the rules do not exclude.
type unitList struct {
	unitRules
	table  *table.Table
	now    time.Time
	units  []*unit
	wholes map[*object.PodGroup]bool // groups that are one unit, and are in units
	// gangs are the groups that addGang looked at; true: their pods go as those of a gang.
	gangs map[types.NamespacedName]bool
	// only is the row from which pods of gangs are taken one by one; nil: all rows.
	only *table.Row
	// apart is set if the units need not be able to go together.
	apart bool
}

// add adds the units of which pods are on the row, unless the rules exclude them or they are in the
// list.
func (l *unitList) add(row table.Row) {
	for _, pl := range l.table.Pods(row) {
		p := pl.Pod
		if l.addGang(p) {
			continue
		}
		g := groupOf(l.table, p)
		priority := priorityIn(g, p)
		if l.wholes[g] || l.excludes(p, priority) {
			continue
		}
		u := &unit{priority: priority, grouped: p.KubernetesGroup() != ""}
		if g == nil || !g.PreemptedWhole {
			u.add(p, row, l.now)
		} else {
			if l.wholes == nil {
				l.wholes = map[*object.PodGroup]bool{}
			}
			l.wholes[g] = true
			for uid := range l.table.Groups().Of(p).Placed() {
				if member := l.table.Pod(uid); l.table.Node(member.Row) != nil { // else its node is gone
					u.add(member.Pod, member.Row, l.now)
				}
			}
		}
		l.units = append(l.units, u)
	}
}

// planByUnits returns a plan for the row in which units go, or the reason why there is none: no
// unit may go, the pod does not fit there even without all units that may, or a strict budget keeps
// victims. It leaves the table as it was.
func planByUnits(c *call, row table.Row) (*Plan, *decision.Blocker) {
	list := unitList{unitRules: c.rules(), table: c.Table, now: c.Now}
	if c.Filters.Local && (c.reclaim == nil || !c.reclaim.Queued()) {
		list.only = &row // pods elsewhere change nothing
	}
	list.add(row)
	units := list.together(list.units)
	if len(units) == 0 {
		return nil, &noVictims
	}
	mark := c.Table.Checkpoint()
	defer c.Table.Undo(mark)
	for _, u := range units {
		u.takeFrom(c.Table)
	}
	if b := c.Filters.Run(row); b != nil {
		return nil, b
	}
	guarded, others := splitUnits(units, c.Disruption.Budgets)
	return c.accept(c.pardonFor(row, units, guarded, others))
}

// addVictims adds the pods of the units to the victims, and counts their violations and surplus.
func (p *Plan) addVictims(gone []*unit) {
	for _, u := range gone {
		p.Victims = append(p.Victims, u.pods...)
		p.NumPDBViolations += u.violations
		if u.surplus {
			p.surplus++
		}
	}
}
