package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/index/priorities"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/decode"
)

// Bounds of a run.
const (
	mostPasses     = 10  // over the pods that wait for others
	mostPreemptors = 100 // pods whose preemption is looked at
)

// Pod is a pending pod.
type Pod struct {
	API *v1.Pod
	// Kind is shared by pods that differ in their names alone. If one does not fit, the others are
	// not tried.
	Kind int
}

// Sort sorts the pods as the scheduler's queue does. Equals keep their order.
func Sort(pods []Pod) {
	slices.SortStableFunc(pods, func(a, b Pod) int { return Compare(a.API, b.API) })
}

// Compare returns a negative number if pod a comes before b in the scheduler's queue: by
// priority, then by age.
func Compare(a, b *v1.Pod) int {
	return cmp.Or(cmp.Compare(priority(b), priority(a)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
}

// Kinds numbers pods. Those that differ in their names alone have one number.
type Kinds map[string]int

// Of returns the number of the pod, and whether it is a new one.
func (k Kinds) Of(p *v1.Pod) (kind int, first bool) {
	key, err := json.Marshal([]any{p.Namespace, p.Labels, p.Spec, p.DeletionTimestamp, p.Status.NominatedNodeName})
	if err != nil { // an object that was read from JSON can be written
		key = []byte(p.UID)
	}
	kind, known := k[string(key)]
	if !known {
		kind = len(k)
		k[string(key)] = kind
	}
	return kind, !known
}

func priority(p *v1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// Short is a pod group of which too few pods fit.
type Short struct {
	Name     types.NamespacedName
	Members  []Pod  // those that wait
	Fitting  []Pod  // those of them that fit together
	First    Pod    // the first that does not
	MinCount int    // how many are to be placed at once
	Fault    string // what is wrong with the group, so that none is placed; "" for nothing
}

// Decode returns a pod as the scheduler sees it.
type Decode func(*v1.Pod) *object.Pod

// Run is pods that took their turn.
type Run struct {
	// Nodes are those of the pods that are placed, Nominated those to which pods are nominated
	// that would preempt others there.
	Nodes, Nominated map[types.UID]string
	// Victims are those that the nominated pods would preempt.
	Victims map[types.UID][]types.NamespacedName
	// Tried is how many of the pods had their turn before the context ended.
	Tried int

	machine *machine.Machine
	decode  Decode
	short   func(*Short)
	groups  map[types.NamespacedName][]Pod
	failed  map[int]bool
	undo    []func()
}

// Take tries each of the pods in turn. Of a pod group that the machine places together it
// places all waiting pods, or none. For a group of which too few fit, it calls short
// while those that fit are placed.
func Take(ctx context.Context, m *machine.Machine, decode Decode, pods []Pod, short func(*Short)) *Run {
	groups := map[types.NamespacedName][]Pod{}
	for _, p := range pods {
		if name, ok := groupOf(m, p.API); ok && m.PlacesGroups() {
			groups[name] = append(groups[name], p)
		}
	}
	return take(ctx, m, decode, pods, groups, short)
}

// TakeEach tries each of the pods in turn, one by one: it ignores pod groups.
func TakeEach(ctx context.Context, m *machine.Machine, decode Decode, pods []Pod) *Run {
	return take(ctx, m, decode, pods, nil, nil)
}

func take(ctx context.Context, m *machine.Machine, decode Decode, pods []Pod, groups map[types.NamespacedName][]Pod, short func(*Short)) *Run {
	r := &Run{Nodes: map[types.UID]string{}, Nominated: map[types.UID]string{}, Victims: map[types.UID][]types.NamespacedName{}, machine: m, decode: decode, short: short, groups: groups, failed: map[int]bool{}}
	waiting := map[int]bool{} // kinds that other pods may help
	for pass, placed := 0, -1; pass < mostPasses && placed < len(r.Nodes); pass++ {
		placed = len(r.Nodes)
		r.pass(ctx, pods, waiting, pass == 0)
		for kind := range waiting { // any order: each by itself
			delete(r.failed, kind)
		}
		if len(waiting) == 0 || ctx.Err() != nil {
			break
		}
	}
	return r
}

// pass tries the pods that are not placed yet; count counts them.
func (r *Run) pass(ctx context.Context, pods []Pod, waiting map[int]bool, count bool) {
	for _, p := range pods {
		if ctx.Err() != nil {
			return
		}
		if count {
			r.Tried++
		}
		if r.Nodes[p.API.UID] != "" || r.Nominated[p.API.UID] != "" || r.failed[p.Kind] {
			continue
		}
		if name, ok := groupOf(r.machine, p.API); ok && r.groups[name] != nil {
			r.takeGroup(r.groups[name])
			continue
		}
		o := r.decode(p.API)
		if r.place(p, o) || r.nominate(p, o) {
			continue
		}
		r.failed[p.Kind] = true
		if o.Affinity != nil || o.Spread != nil {
			waiting[p.Kind] = true
		}
	}
}

func (r *Run) place(p Pod, o *object.Pod) bool {
	node, undo := r.machine.Place(o)
	if undo == nil {
		return false
	}
	r.Nodes[p.API.UID] = node
	r.undo = append(r.undo, undo)
	return true
}

// nominate nominates a pod that would preempt others to its node, so that none after it
// takes the room.
func (r *Run) nominate(p Pod, o *object.Pod) bool {
	e := r.machine.Entry(o.UID)
	if e == nil || o.NeverPreempts || len(r.Nominated) == mostPreemptors || o.Priority <= priorities.Of(r.machine.Table()).LowestOfAll() {
		return false
	}
	d := r.machine.AssessBriefly(o)
	if d.Result != decision.ResultPreempting || d.NominatedNode == "" {
		return false
	}
	before, q := e.NominatedNode(), r.machine.Queue()
	q.Nominate(e, d.NominatedNode)
	r.undo = append(r.undo, func() { q.Nominate(e, before) })
	r.Nominated[o.UID], r.Victims[o.UID] = d.NominatedNode, d.Victims
	return true
}

// groupOf returns the name of the pod's group; false where it has none.
func groupOf(m *machine.Machine, p *v1.Pod) (name types.NamespacedName, ok bool) {
	group := m.GroupName(p.Spec.SchedulerName, decode.PodGroupName(&p.Spec), p.Labels)
	return types.NamespacedName{Namespace: p.Namespace, Name: group}, group != ""
}

// takeGroup places the members of a group, or none of them.
func (r *Run) takeGroup(members []Pod) {
	t := r.machine.Table()
	s := &Short{Members: members, MinCount: 1}
	s.Name, _ = groupOf(r.machine, members[0].API)
	if g := table.PodGroup(t, s.Name); g == nil {
		s.MinCount = len(members)
	} else if g.Gang {
		s.MinCount = max(1, g.MinCount-t.Groups().Named(s.Name).Scheduled())
	}
	mark, most := len(r.undo), len(members)
	if s.Fault = r.machine.GroupFault(s.Name); s.Fault != "" {
		most, s.MinCount = 0, max(1, s.MinCount)
	} else if holds, short := r.machine.TreeHolds(s.Name); short {
		most = holds // elsewhere the others may fit, but not together with these
	}
	for _, p := range members {
		switch {
		case len(s.Fitting) < most && r.place(p, r.decode(p.API)):
			s.Fitting = append(s.Fitting, p)
		case s.First.API == nil:
			s.First = p
		}
	}
	for _, p := range members {
		r.failed[p.Kind] = true
	}
	if len(s.Fitting) >= s.MinCount {
		return
	}
	if r.short != nil {
		r.short(s)
	}
	r.undoTo(mark)
	for _, p := range members {
		delete(r.Nodes, p.API.UID)
	}
}

// Undo takes the pods off again.
func (r *Run) Undo() { r.undoTo(0) }

func (r *Run) undoTo(mark int) {
	for _, undo := range slices.Backward(r.undo[mark:]) {
		undo()
	}
	r.undo = r.undo[:mark]
}
