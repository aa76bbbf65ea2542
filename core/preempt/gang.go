package preempt

import (
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// gang is a placed pod group that, when pods of it are preempted, keeps its minimum or goes as a
// whole. Its pods are units of one pod each, the surplus, and one more unit, whole, stands for all
// of them going. The surplus goes before single pods of its priority; the whole gang goes after
// them, as any group does.
type gang struct {
	whole *unit // has the pods of the gang that are not leaving, but no rows
	// surplus are the units of one pod that a search may take off their nodes, the most important
	// first. The gang's other pods stay unless the whole gang goes: they make no difference to
	// the preemptor.
	surplus []*unit
	least   int  // how many of surplus must stay, unless the whole gang goes
	spare   int  // how many pods the gang has beyond its minimum
	lost    bool // the whole gang goes
}

// keepsMinimum returns the pod's group if it is a gang that keeps its minimum or goes as a whole;
// else nil, also if it has a Fault. A PodGroup of Kubernetes is none: its disruptionMode says how
// it is preempted. But while ElasticQuotas are followed, a Kubernetes gang with the mode Single
// keeps its minimum, too.
func (r *unitRules) keepsMinimum(t *table.Table, p *object.Pod) *object.PodGroup {
	if t.Groups() == nil || p.PodGroup() == "" {
		return nil
	}
	g := table.PodGroup(t, p.GroupKey())
	if g == nil || !g.Gang || g.Fault != "" || g.Source == "" && (r.reclaim == nil || g.PreemptedWhole) {
		return nil
	}
	return g
}

// leaving reports whether the pod is being deleted or evicted.
func (r *unitRules) leaving(p *object.Pod) bool {
	return p.Terminating || r.evicting != nil && r.evicting(p.UID)
}

// addGang adds the pod with the rest of its gang, unless these are in the list. It returns
// false for a pod that may go by itself: it is in no gang that keeps its minimum, is leaving,
// or its gang has fewer pods than its minimum.
func (l *unitList) addGang(p *object.Pod) bool {
	of := l.keepsMinimum(l.table, p)
	if of == nil || l.leaving(p) {
		return false
	}
	keeps, known := l.gangs[p.GroupKey()]
	if !known {
		if l.gangs == nil {
			l.gangs = map[types.NamespacedName]bool{}
		}
		keeps = l.addPodsOf(of, p)
		l.gangs[p.GroupKey()] = keeps
	}
	return keeps
}

// addPodsOf adds the units of the gang of, which p is in. It returns false, and adds none, if the
// gang has fewer placed pods than its minimum, those that are leaving not counted. The unit of the
// whole gang is left out if the rules exclude a pod of the gang, or if all of surplus may go.
func (l *unitList) addPodsOf(of *object.PodGroup, p *object.Pod) bool {
	g := &gang{whole: &unit{priority: math.MinInt32, grouped: true}}
	placed, excluded := 0, false
	for uid := range l.table.Groups().Of(p).Placed() {
		pl := l.table.Pod(uid)
		if l.table.Node(pl.Row) == nil || l.leaving(pl.Pod) {
			continue
		}
		placed++
		priority := priorityIn(groupOf(l.table, pl.Pod), pl.Pod)
		if l.excludes(pl.Pod, priority) {
			excluded = true
			continue
		}
		g.whole.add(pl.Pod, pl.Row, l.now)
		g.whole.priority = max(g.whole.priority, priority)
		if l.only == nil || *l.only == pl.Row {
			u := &unit{priority: priority, surplus: true, gang: g}
			u.add(pl.Pod, pl.Row, l.now)
			g.surplus = append(g.surplus, u)
		}
	}
	if g.spare = placed - of.MinCount; g.spare < 0 {
		return false
	}
	g.whole.gang, g.whole.rows = g, nil // its pods are units of their own
	slices.SortFunc(g.whole.pods, byImportance(l.now))
	slices.SortFunc(g.surplus, moreImportantUnit)
	g.least = max(0, len(g.surplus)-g.spare)
	if excluded && !l.apart {
		g.keepMostImportant()
	}
	if l.units = append(l.units, g.surplus...); g.least > 0 && !excluded {
		l.units = append(l.units, g.whole)
	}
	return true
}

// keepMostImportant removes the most important pods from the surplus, as many as the gang must
// keep, because the whole gang may not go.
func (g *gang) keepMostImportant() { g.surplus, g.least = g.surplus[g.least:], 0 }

// leave removes the unit from the surplus: its pod stays on its node, as one of those that the gang
// must keep.
func (g *gang) leave(u *unit) {
	g.surplus = slices.DeleteFunc(slices.Clone(g.surplus), func(other *unit) bool { return other == u })
	g.least = max(0, g.least-1)
}

// missing returns how many more pods of the gang must come back for it to keep its minimum.
func (g *gang) missing() int {
	n := g.least
	for _, u := range g.surplus {
		if !u.gone {
			n--
		}
	}
	return max(0, n)
}

// isWhole reports whether the unit stands for all pods of a gang.
func (u *unit) isWhole() bool { return u.gang != nil && u == u.gang.whole }

// spareOf returns, from the units of the lowest priority of all, pods that gangs have beyond their
// minimum, as many of each gang as may go. Both lists are sorted, the most important first.
func spareOf(units []*unit) (spare []*unit) {
	taken := map[*gang]int{}
	for _, u := range slices.Backward(units) {
		if u.priority > units[len(units)-1].priority {
			break
		}
		if u.surplus && (u.gang.least == 0 || taken[u.gang] < u.gang.spare) {
			taken[u.gang]++
			spare = append(spare, u)
		}
	}
	slices.Reverse(spare)
	return spare
}
