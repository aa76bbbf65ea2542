package group

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
)

// Groups holds the pod groups that have pods, by name. The table owns it and records
// placements; the machine adds and removes pods. A nil *Groups is empty and ignores
// changes.
type Groups struct {
	byName map[types.NamespacedName]*Group
	placed int // number of pods of Kubernetes' own groups that are assumed or assigned
	others int // the same for groups that are not Kubernetes' own
	// changed holds the names of groups whose pods changed since TakeChanged was called.
	changed []types.NamespacedName
}

// New returns an empty Groups.
func New() *Groups { return &Groups{byName: map[types.NamespacedName]*Group{}} }

// Group is the set of known pods that name one PodGroup, with the state of each. It does
// not know whether the PodGroup exists and what it requires.
type Group struct {
	members  []member          // in an order that is the same for the same history
	at       map[types.UID]int // index in members by UID
	counts   [states]int       // number of members by state
	running  int               // number of members in phase Running
	changed  bool              // listed in Groups.changed
	raised   bool              // what Raised returns
	labelled                   // set for a group from labels alone
}

// member is a pod of a group.
type member struct {
	uid     types.UID
	state   state
	running bool // in phase Running
	// minAvailable is the value of the pod's label PREFIX/min-available, for a group from labels
	// alone; "" if it has none.
	minAvailable string
}

// state is how far a pod of a group is scheduled.
type state uint8

const (
	unscheduled state = iota // on no node
	assumed                  // placed by this scheduler; the API does not show it bound yet
	assigned                 // bound, as the API shows
	// states is the number of states.
	states = int(assigned) + 1
)

// Join adds a pod, as unscheduled, to the group that it names. If the pod is a member already, Join
// keeps its state, and reads anew its phase and what its labels say of the group. It does nothing
// if the pod names no group. Call it when the API shows the pod.
func (gs *Groups) Join(p *object.Pod) {
	if gs == nil || p.PodGroup() == "" {
		return
	}
	g := gs.byName[p.GroupKey()]
	if g == nil {
		g = &Group{at: map[types.UID]int{}}
		gs.byName[p.GroupKey()] = g
	}
	at, known := g.at[p.UID]
	if !known {
		at = len(g.members)
		g.at[p.UID] = at
		g.members = append(g.members, member{uid: p.UID})
		g.counts[unscheduled]++
	}
	g.setRunning(&g.members[at], p.Running)
	g.read(p, &g.members[at], known)
	gs.markChanged(g, p.GroupKey())
}

// markChanged records that pods of the group, which has this name, changed.
func (gs *Groups) markChanged(g *Group, name types.NamespacedName) {
	if !g.changed {
		g.changed = true
		gs.changed = append(gs.changed, name)
	}
}

// TakeChanged returns the names of the groups that changed since the last call, and clears the
// list. A group changes when the API shows one of its pods, and when a pod is placed on a node,
// leaves its node or is removed from the group. A name can occur twice, and its group can be gone.
// The slice is valid until the next change.
func (gs *Groups) TakeChanged() []types.NamespacedName {
	if gs == nil {
		return nil
	}
	names := gs.changed
	gs.changed = names[:0]
	for _, name := range names {
		if g := gs.byName[name]; g != nil {
			g.changed = false
		}
	}
	return names
}

// setRunning records whether the member is in phase Running.
func (g *Group) setRunning(m *member, running bool) {
	if m.running != running {
		m.running = running
		if g.running--; running {
			g.running += 2
		}
	}
}

// Leave removes p from the group that p names: the pod is deleted, or p is its state before it
// named another group. A group without pods is removed. A pod that did not Join is ignored.
func (gs *Groups) Leave(p *object.Pod) {
	g := gs.Of(p)
	if g == nil {
		return
	}
	at, known := g.at[p.UID]
	if !known {
		return
	}
	gs.markChanged(g, p.GroupKey())
	gs.count(p, g.members[at].state, -1)
	g.setRunning(&g.members[at], false)
	g.unread(p, &g.members[at])
	g.counts[g.members[at].state]--
	last := len(g.members) - 1
	g.members[at] = g.members[last]
	g.at[g.members[at].uid] = at
	delete(g.at, p.UID)
	g.members = g.members[:last]
	if last == 0 {
		delete(gs.byName, p.GroupKey())
	}
}

// Placed records that the pod is on a node: assigned if it has a NodeName, else assumed. A
// pod that did not Join is ignored.
func (gs *Groups) Placed(p *object.Pod) {
	if p.NodeName != "" {
		gs.set(p, assigned)
	} else {
		gs.set(p, assumed)
	}
}

// Taken records that the pod is on no node any more. A pod that did not Join is ignored.
func (gs *Groups) Taken(p *object.Pod) { gs.set(p, unscheduled) }

// set sets the state of the pod in its group, if it is a member.
func (gs *Groups) set(p *object.Pod, s state) {
	g := gs.Of(p)
	if g == nil {
		return
	}
	if at, known := g.at[p.UID]; known {
		m := &g.members[at]
		gs.count(p, m.state, -1)
		gs.count(p, s, 1)
		g.counts[m.state]--
		g.counts[s]++
		m.state = s
		gs.markChanged(g, p.GroupKey())
	}
}

// count adds n to gs.placed, or to gs.others for a pod of a group that is not Kubernetes' own. It
// does nothing if s is unscheduled.
func (gs *Groups) count(p *object.Pod, s state, n int) {
	switch {
	case s == unscheduled:
	case p.KubernetesGroup() != "":
		gs.placed += n
	default:
		gs.others += n
	}
}

// AnyPlaced reports whether a pod of any of Kubernetes' own groups is assumed or bound.
func (gs *Groups) AnyPlaced() bool { return gs != nil && gs.placed > 0 }

// AnyOthersPlaced reports whether a pod of a group that is not Kubernetes' own is assumed or bound:
// one of scheduler-plugins, or one by labels alone.
func (gs *Groups) AnyOthersPlaced() bool { return gs != nil && gs.others > 0 }

// Of returns the group that the pod names, nil if it names none or the group has no pods.
func (gs *Groups) Of(p *object.Pod) *Group {
	if gs == nil || p.PodGroup() == "" {
		return nil
	}
	return gs.byName[p.GroupKey()]
}

// Named returns the group with this name, nil if it has no pods.
func (gs *Groups) Named(name types.NamespacedName) *Group {
	if gs == nil {
		return nil
	}
	return gs.byName[name]
}

// Names returns the names of the groups that have pods, sorted.
func (gs *Groups) Names() []types.NamespacedName {
	if gs == nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(gs.byName), func(a, b types.NamespacedName) int { // any order: sorted
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// Members returns the UIDs of the pods of all groups, sorted by group, those of one group
// in its order, for a snapshot.
func (gs *Groups) Members() (uids []types.UID) {
	for _, name := range gs.Names() {
		for _, m := range gs.byName[name].members {
			uids = append(uids, m.uid)
		}
	}
	return uids
}

// Arrange restores the order of the pods in each group from uids, a result of Members.
func (gs *Groups) Arrange(uids []types.UID) {
	if len(uids) == 0 {
		return
	}
	rank := map[types.UID]int{}
	for i, uid := range uids {
		rank[uid] = i
	}
	for _, name := range gs.Names() {
		g := gs.byName[name]
		slices.SortStableFunc(g.members, func(a, b member) int { return cmp.Compare(rank[a.uid], rank[b.uid]) })
		for i := range g.members {
			g.at[g.members[i].uid] = i
		}
	}
}

// Len returns the number of pods of the group. A nil group has none.
func (g *Group) Len() int {
	if g == nil {
		return 0
	}
	return len(g.members)
}

// Scheduled returns the number of pods that are assumed or assigned. A nil group has none.
func (g *Group) Scheduled() int {
	if g == nil {
		return 0
	}
	return g.counts[assumed] + g.counts[assigned]
}

// Bound returns the number of pods that are assigned. A nil group has none.
func (g *Group) Bound() int {
	if g == nil {
		return 0
	}
	return g.counts[assigned]
}

// HalfBound reports whether pods of the gang are bound, but fewer than its minimum are bound or
// assumed. A leader that dies between the bindings leaves a gang so. It is false if fewer pods than
// the minimum are known: the rest has finished or was lost. gang is the group's object; it is
// false, too, if that is nil or no gang.
func (g *Group) HalfBound(gang *object.PodGroup) bool {
	return gang != nil && gang.Gang && g.Bound() > 0 && g.Scheduled() < gang.MinCount && g.Len() >= gang.MinCount
}

// MinimumChanged makes Raised return true if the gang was half bound before its minimum rose. was
// is the group's object as it was before. Call it when the minimum rose.
func (g *Group) MinimumChanged(was *object.PodGroup) {
	if g != nil && g.HalfBound(was) {
		g.raised = true
	}
}

// Raised reports whether the minimum of the gang rose while it was half bound, and the gang was not
// whole since. Fewer pods than its minimum may be known then though none was lost. It is forgotten
// when the process ends, except for a snapshot. A nil Group was not raised.
func (g *Group) Raised() bool { return g != nil && g.raised }

// SetRaised makes Raised return true, as a snapshot has it.
func (g *Group) SetRaised() { g.raised = true }

// Complete makes Raised return false if the gang is whole now: its minimum is assumed or bound, or
// gang, the group's object, is nil.
func (g *Group) Complete(gang *object.PodGroup) {
	if g != nil && g.raised && (gang == nil || g.Scheduled() >= gang.MinCount) {
		g.raised = false
	}
}

// Running returns the number of pods in phase Running. A nil group has none.
func (g *Group) Running() int {
	if g == nil {
		return 0
	}
	return g.running
}

// All returns the pods of the group, in an order that is the same for the same history.
func (g *Group) All() iter.Seq[types.UID] { return g.those(states) }

// Unscheduled returns the pods that are on no node.
func (g *Group) Unscheduled() iter.Seq[types.UID] { return g.those(int(unscheduled)) }

// Assumed returns the pods that are assumed on a node.
func (g *Group) Assumed() iter.Seq[types.UID] { return g.those(int(assumed)) }

// Assigned returns the pods that are bound.
func (g *Group) Assigned() iter.Seq[types.UID] { return g.those(int(assigned)) }

// Placed returns the pods that are assumed or bound.
func (g *Group) Placed() iter.Seq[types.UID] {
	return func(yield func(types.UID) bool) {
		for uid := range g.All() {
			if g.members[g.at[uid]].state != unscheduled && !yield(uid) {
				return
			}
		}
	}
}

// those returns the pods in state s, or all pods if s is states. A nil group has none. It
// looks at no pod if none is in that state. Otherwise each pod that joins a large group would
// cost a look at all of it, for the question whether one is bound.
func (g *Group) those(s int) iter.Seq[types.UID] {
	return func(yield func(types.UID) bool) {
		if g == nil || s != states && g.counts[s] == 0 {
			return
		}
		for i := range g.members {
			if m := &g.members[i]; (s == states || m.state == state(s)) && !yield(m.uid) {
				return
			}
		}
	}
}

// Check returns an error unless each known pod that names a group is in it, in the state in
// which placed has it (nil: unscheduled), and there are no others. It is for tests and
// audits.
func (gs *Groups) Check(placed func(types.UID) *object.Pod, known iter.Seq[*object.Pod]) error {
	if gs == nil {
		return nil
	}
	pods := 0
	for p := range known {
		if p.PodGroup() == "" {
			continue
		}
		pods++
		want := unscheduled
		if on := placed(p.UID); on != nil && on.NodeName != "" {
			want = assigned
		} else if on != nil {
			want = assumed
		}
		g := gs.Of(p)
		if g == nil {
			return fmt.Errorf("group: pod %s is known, and its group %s is not", p.Key(), p.GroupKey())
		}
		if at, in := g.at[p.UID]; !in || g.members[at].state != want {
			return fmt.Errorf("group: pod %s is in group %s %t, or is not %d there", p.Key(), p.GroupKey(), in, want)
		} else if g.members[at].running != p.Running {
			return fmt.Errorf("group: pod %s is running: %t, which group %s does not know", p.Key(), p.Running, p.GroupKey())
		}
	}
	scheduled, others := 0, 0
	for name, g := range gs.byName { // any order: an error is an error
		pods -= len(g.members)
		if source, _ := object.GroupSource(name.Name); source == "" {
			scheduled += g.Scheduled()
		} else {
			others += g.Scheduled()
		}
		if err := g.checkLabels(name); err != nil {
			return err
		}
		var counts [states]int
		running := 0
		for i, m := range g.members {
			counts[m.state]++
			if m.running {
				running++
			}
			if g.at[m.uid] != i {
				return fmt.Errorf("group: pod %s of group %s is not where it is found", m.uid, name)
			}
		}
		if running != g.running {
			return fmt.Errorf("group: %d pods of %s run, counted are %d", running, name, g.running)
		}
		if counts != g.counts || len(g.members) == 0 || len(g.at) != len(g.members) {
			return fmt.Errorf("group: %s has %v pods unscheduled, assumed and assigned, counted are %v", name, counts, g.counts)
		}
	}
	if scheduled != gs.placed || others != gs.others {
		return fmt.Errorf("group: %d and %d pods are placed, counted are %d and %d", scheduled, others, gs.placed, gs.others)
	}
	if pods != 0 {
		return fmt.Errorf("group: %d pods are in groups and are not known", -pods)
	}
	return nil
}
