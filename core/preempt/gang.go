package preempt

import (
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// gang is a pod group that keeps its minimum or goes as a whole. Its pods are units of one
// pod each, the surplus, and one unit, whole, stands for all of them going. The surplus goes
// before single pods of its priority; the whole gang goes after them, as any group does.
type gang struct {
	whole *unit
	// surplus are the pods that a search takes off their nodes. Others of the gang stay on
	// theirs unless the whole gang goes: they make no difference to the preemptor.
	surplus []*unit
	least   int  // how many of surplus must stay, unless the whole gang goes
	spare   int  // how many pods the gang has beyond its minimum
	lost    bool // the whole gang goes
}

// keepsMinimum returns the pod's group if it keeps its minimum or goes as a whole; nil for
// none. A PodGroup of Kubernetes says by its disruptionMode how it is preempted. While
// ElasticQuotas are followed one with the mode single keeps its minimum, too.
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

// addPodsOf adds the units of the gang that the pod is in. It returns false if fewer than its
// minimum are placed.
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

// keepMostImportant leaves as many of the most important pods on their nodes as the gang must
// keep, because the whole gang may not go.
func (g *gang) keepMostImportant() { g.surplus, g.least = g.surplus[g.least:], 0 }

// leave leaves the pod of the unit on its node.
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

// spareOf returns pods that gangs have beyond their minimum, as many as may go of each, if no
// unit has a lower priority. units are sorted, the most important first.
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
