package machine

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
)

// Inspector answers questions about the machine's state. Its methods change nothing.
type Inspector struct {
	*step
	profiles    profiles
	unlisted    unlistedKinds
	budgets     *budgets
	guard       *guard
	pods        *pods
	nominations *nominations
	preemptors  *preemptors
	overcommits *overcommits
	bindings    *bindingCycles
	evictions   *evictions
	extenders   *extenderCycles
	groups      *podGroups
	watch       *podWatch
}

// Ready reports whether a ScheduleOne event would start an attempt now.
func (v *Inspector) Ready() bool { return !v.evictions.awaited() && v.queue.Ready() }

// First returns the pod that a ScheduleOne would take now, nil when there is none.
func (v *Inspector) First() *object.Pod {
	if v.evictions.awaited() {
		return nil
	}
	return v.queue.First()
}

// Queue returns the machine's queue, for inspection only.
func (v *Inspector) Queue() *queue.Queue { return v.queue }

// Listen adds a listener that is called about changes of the queue. It must not call the
// machine.
func (m *Machine) Listen(l *queue.Listener) { m.queue.Listen(l) }

// Table returns the machine's table, for inspection only.
func (v *Inspector) Table() *table.Table { return v.table }

// Entry returns the pod's entry in the queue, for inspection only; nil if it has none.
func (v *Inspector) Entry(uid types.UID) *queue.Entry {
	return v.pods.entry(uid)
}

// Nominator returns the nominations of the pods in the queue.
func (v *Inspector) Nominator() engine.Nominator { return v.nominations }

// Pods returns the pods that are queued or placed, in no order.
func (v *Inspector) Pods() []*object.Pod {
	pods := make([]*object.Pod, 0, len(v.pods.byName))
	for _, ps := range v.pods.byName { // any order: so it says
		if pl := v.table.Pod(ps.pod.UID); pl != nil {
			pods = append(pods, pl.Pod)
		} else if ps.entry != nil {
			pods = append(pods, ps.entry.Pod)
		}
	}
	return pods
}

// Knows reports whether the machine knows a pod of that name that is not deleted.
func (v *Inspector) Knows(name types.NamespacedName) bool {
	ps := v.pods.byName[name]
	return ps != nil && ps.goneByRead == nil
}

// Profiles returns the names of the profiles, sorted.
func (v *Inspector) Profiles() []string { return slices.Sorted(maps.Keys(v.profiles)) }

// Changed returns the first change in the cluster that the last step made.
func (v *Inspector) Changed() Change { return v.changed }

// Panics returns how many panics of plugins were contained so far. Those of queueing hints are not
// included: see Queue.Panics.
func (v *Inspector) Panics() int { return v.guard.contained }

// ExtenderCycles returns the number of pods whose attempt waits for an extender or
// PostFilter.
func (v *Inspector) ExtenderCycles() int { return len(v.extenders.cycles) }

// Assumed returns the number of pods that are assumed on a node and not yet shown bound.
func (v *Inspector) Assumed() int { return v.pods.assumedCount }

// Unshown returns the number of pods with a write that the API has not shown yet: a
// binding, a nomination or an eviction. A nomination that was taken back before it was
// written is never shown.
func (v *Inspector) Unshown() int {
	n := 0
	for _, ps := range v.pods.byUID { // any order: a sum
		if e := ps.eviction; ps.assumed || ps.nominating != nil && *ps.nominating != ps.pod.NominatedNode || e != nil && !(e.gone || ps.pod.Terminating) {
			n++
		}
	}
	return n
}

// Undone returns how many bindings were undone by a restore of etcd, after the API had shown or
// confirmed them.
func (v *Inspector) Undone() int { return v.watch.undone }

// UnknownBindings returns the number of pods that may or may not be bound: the reply to the binding
// was lost and no read has decided yet, or a Bind plugin says that it bound the pod and the API has
// not shown that yet.
func (v *Inspector) UnknownBindings() int {
	n := 0
	for _, ps := range v.pods.byUID { // any order: a sum
		if c := ps.binding; c != nil && (c.phase == bindClaimed || c.phase == readSent || c.phase == bindSent && c.lost.Reads() > 0) {
			n++
		}
	}
	return n
}

// WaitingPods returns the pods that Permit plugins hold, sorted by UID.
func (v *Inspector) WaitingPods() []WaitingPod {
	var pods []WaitingPod
	for _, c := range v.bindings.waiting {
		if c.phase == waitOnPermit {
			pods = append(pods, WaitingPod{c.pod, c.record.Attempt, c.node, c.profile.Name, sortedKeys(c.deadlines)})
		}
	}
	return pods
}

// GroupPods returns the known pods of a pod group. While a step tries to place a group, its
// pods are assumed on nodes for the try; if tried is false, they are returned without a
// node.
func (v *Inspector) GroupPods(name types.NamespacedName, tried bool) []GroupPod {
	hidden := map[types.UID]bool{}
	if v.groups.underway != nil && !tried {
		for _, mb := range v.groups.underway.members { // their nodes are those of the try
			hidden[mb.pod.UID] = true
		}
	}
	var pods []GroupPod
	for uid := range v.table.Groups().Named(name).All() {
		p := GroupPod{Pod: v.pods.byUID[uid].pod}
		if pl := v.table.Pod(uid); pl != nil && !hidden[uid] {
			p = GroupPod{pl.Pod, v.table.Name(pl.Row)}
		}
		pods = append(pods, p)
	}
	return pods
}

// GroupCycle identifies the pod group's cycle under way: the value is the same for all
// of one cycle, and nil if there is none.
func (v *Inspector) GroupCycle() any {
	if v.groups.underway == nil {
		return nil
	}
	return v.groups.underway
}

// GroupTry returns a value that identifies the current try of the pod group whose cycle is
// under way, and the name of its placement; "" stands for all nodes. It is nil if there is no
// cycle.
func (v *Inspector) GroupTry() (try any, placement string) {
	c := v.groups.underway
	switch {
	case c == nil:
		return nil, ""
	case c.placement == nil:
		return c.members[0], ""
	}
	return c.members[0], c.placement.Name
}

// GroupAgain returns a value that identifies the present try to place the group for a plugin that
// searches victims; nil if there is no such try.
func (v *Inspector) GroupAgain() any {
	if c := v.groups.underway; c != nil {
		return c.again
	}
	return nil
}

// Steps returns how many steps have begun.
func (v *Inspector) Steps() uint64 { return v.number }

// NominatedTo returns the queued pods nominated to the node.
func (v *Inspector) NominatedTo(node string) []*object.Pod { return v.queue.NominatedTo(node) }

// AllocatedClaims returns the ResourceClaims that are allocated or assumed to be. They are
// shared and must not be changed.
func (v *Inspector) AllocatedClaims() []*object.ResourceClaim {
	var list []*object.ResourceClaim
	for _, o := range v.table.Objects().List(object.ResourceClaims) {
		if c, ok := o.(*object.ResourceClaim); ok && c.Allocation() != nil {
			list = append(list, c)
		}
	}
	return list
}

// OvercommittedNodes returns the number of nodes whose pods request more than is
// allocatable. It looks at every node.
func (v *Inspector) OvercommittedNodes() (nodes int) {
	for _, r := range v.table.All() {
		if _, over := v.table.Excess(r, nil); over {
			nodes++
		}
	}
	return nodes
}

// Overcommits returns the number of pods that the API showed bound, since the first
// decision, to a node that lacked resources for them.
func (v *Inspector) Overcommits() int { return v.overcommits.pods }

// HeldBack returns how many preemptions were refused so far, because the pod has
// preempted too often without being placed.
func (v *Inspector) HeldBack() int { return v.preemptors.heldBack }

// PlacesGroups reports whether pods of a group are scheduled together: those of PodGroups
// (GenericWorkload), or those that labels put into groups.
func (v *Inspector) PlacesGroups() bool { return v.table.Groups() != nil }

// Member returns the pod with SchedulingGroup set to the group in which the machine schedules it;
// the pod itself if that is so already. A placed pod stays in the group with which it was placed.
func (v *Inspector) Member(p *object.Pod) *object.Pod { return v.groups.member(p) }

// GroupName returns the name of the group that a pod with this schedulerName,
// spec.schedulingGroup and labels is in, "" for none.
func (v *Inspector) GroupName(schedulerName, schedulingGroup string, labels map[string]string) string {
	return v.groups.nameOf(schedulerName, schedulingGroup, labels)
}

// Profile returns the profile with that schedulerName; nil if there is none.
func (v *Inspector) Profile(name string) *profile.Profile { return v.profiles[name] }

// Budgets returns all PodDisruptionBudgets, sorted by namespace, then name. The slice
// is never changed.
func (v *Inspector) Budgets() []*object.Budget { return v.budgets.list }

// Known is an object as the machine knows it, to be compared with the API.
type Known struct {
	Name    types.NamespacedName
	UID     types.UID // "" for a node
	Version string    // resource version; "" for a node, and for a pod that is not where shown
}

// KnownPods returns the pods that the machine knows, in no order. A pod's Version is "" if the pod
// is not where the API shows it. A bound pod must be on its node. A pending pod must be queued,
// assumed or being deleted. The Version is also "" if a read showed that the pod is deleted and the
// watch has not shown that yet.
func (v *Inspector) KnownPods() []Known {
	pods := make([]Known, 0, len(v.pods.byName))
	for name, ps := range v.pods.byName { // any order: so it says
		k := Known{Name: name, UID: ps.pod.UID, Version: ps.pod.Version}
		if !v.isWhereShown(ps) {
			k.Version = ""
		}
		pods = append(pods, k)
	}
	return pods
}

// isWhereShown reports whether the pod is where the API shows it. A bound pod must be on its node.
// A pending pod must be queued, assumed or being deleted. It returns false if a read showed that
// the pod is deleted and the watch has not shown that yet.
func (v *Inspector) isWhereShown(ps *podState) bool {
	pl := v.table.Pod(ps.pod.UID)
	switch on := ps.pod.NodeName; {
	case ps.goneByRead != nil:
		return false
	case on == "":
		return pl != nil || ps.entry != nil || ps.pod.Terminating
	default:
		return pl != nil && v.table.Name(pl.Row) == on
	}
}

// KnownNodes returns the names of the nodes in the table. Nodes that only pods name are left out.
func (v *Inspector) KnownNodes() []Known {
	nodes := make([]Known, 0, v.table.Live())
	for _, r := range v.table.All() {
		if v.table.Node(r) != nil { // else only pods of an unknown node are there
			nodes = append(nodes, Known{Name: types.NamespacedName{Name: v.table.Name(r)}})
		}
	}
	return nodes
}

// WaitingPod is a pod that Permit plugins hold. Attempt is the number of the attempt, Node the node
// on which the pod is assumed, Profile the name of its profile, and Plugins are the names of the
// plugins that hold it, sorted.
type WaitingPod struct {
	Pod     *object.Pod
	Attempt int
	Node    string
	Profile string
	Plugins []string
}

// GroupPod is a pod of a pod group, and the node on which it is bound or assumed, "" for none.
type GroupPod struct {
	Pod  *object.Pod
	Node string
}

// Cluster returns events that make another machine know the cluster as this one does:
// assumed pods appear as bound, and nominations are those of the queue. The objects are
// shared and must not be changed.
func (v *Inspector) Cluster() []Event {
	events := make([]Event, 0, v.table.Live()+len(v.pods.byName))
	for _, kind := range slices.Sorted(maps.Keys(v.unlisted)) {
		events = append(events, KindUnlisted{Kind: kind, Err: v.unlisted[kind]})
	}
	for _, n := range v.table.Namespaces().List() {
		events = append(events, NamespaceSet{Namespace: n})
	}
	for _, owner := range v.table.SelectorOwners().List() {
		events = append(events, SelectorOwnerSet{Owner: owner})
	}
	for _, b := range v.budgets.list {
		events = append(events, BudgetSet{Budget: b})
	}
	for kind := range object.Kinds {
		for _, o := range v.table.Objects().List(kind) {
			events = append(events, ObjectSet{Object: o})
		}
	}
	for _, r := range v.table.All() {
		if n := v.table.Node(r); n != nil { // else only pods of an unknown node are there
			events = append(events, NodeSet{Node: n})
		}
	}
	for _, r := range v.table.All() {
		for _, pl := range v.table.Pods(r) {
			events = append(events, PodSet{Pod: boundTo(pl.Pod, v.table.Name(r))})
		}
	}
	for e := range v.queue.Entries() {
		p := e.Pod
		if v.table.Pod(p.UID) != nil {
			continue
		}
		if p.NominatedNode != e.NominatedNode() {
			nominated := *p
			nominated.NominatedNode, p = e.NominatedNode(), &nominated
		}
		events = append(events, PodSet{Pod: p})
	}
	return events
}
