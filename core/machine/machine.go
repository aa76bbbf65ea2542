package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/recovered"
)

// Options configure a machine.
type Options struct {
	// Profiles are selected by the pods' schedulerName; pods that name none of them are
	// ignored. All have the same QueueSort plugin.
	Profiles []*profile.Profile
	// Extenders are in the order in which they are called: those that are not Ignorable
	// first.
	Extenders []Extender
	// Seed decides between nodes of equal score.
	Seed uint64
	// Workers is how many cores one decision may use; at least 1.
	Workers int
	// ViewsOff makes each decision evaluate all nodes from scratch: slow, with the same
	// results.
	ViewsOff bool
	// PodGroups places the pods of a PodGroup of scheduling.k8s.io together and searches
	// victims for the group as a whole, as the gate GenericWorkload does. Without it such
	// PodGroups are ignored. Groups by labels are the profiles' (Profile.Groups).
	PodGroups bool
	// GroupPlacements tries a pod group in each of the placements that plugins generate, as
	// the gate TopologyAwareWorkloadScheduling does.
	GroupPlacements bool
	// HideExpectedNode omits the patch that shows where a pod that waits is about to be
	// bound, as kube-scheduler does without the gate NominatedNodeNameForExpectation.
	HideExpectedNode bool
	// WaitForEvictions starts no scheduling cycle while an Evict effect has no reply, as
	// kube-scheduler does without the gate SchedulerAsyncPreemption.
	WaitForEvictions bool
	// WaitOutBackoff lets no pod be tried before its backoff is over, as kube-scheduler
	// does without the gate SchedulerPopFromBackoffQ. Otherwise it may be tried sooner if
	// no pod is active.
	WaitOutBackoff bool
	// Explain selects the pods whose records list all nodes (Decision.Nodes); nil: none.
	Explain func(*object.Pod) bool
	// StepDone, when set, is called after each part of an attempt with a text for traces.
	StepDone func(step string)
	// Panicked, when set, is called with each contained panic of a plugin, on the stack of
	// the panic.
	Panicked func(*recovered.Panic)
	// Check verifies every invariant after each step and panics on a breach.
	Check bool

	// InitialBackoff is how long a pod waits after its first failure. The wait doubles with each
	// further failure, up to MaxBackoff. MaxUnschedulable is how long a pod stays unschedulable if
	// no event moves it.
	InitialBackoff, MaxBackoff, MaxUnschedulable time.Duration
}

// placesGroups reports whether the pods of groups are placed together: of PodGroups of Kubernetes
// (o.PodGroups), or of the groups of a profile (Profile.Groups).
func (o *Options) placesGroups() bool {
	return o.PodGroups || slices.ContainsFunc(o.Profiles, func(p *profile.Profile) bool { return p.Groups != nil })
}

// Reads returns the kinds of objects that a machine with these options needs to watch,
// besides pods, nodes and those that every scheduler reads.
func (o *Options) Reads() []object.Kind {
	kinds := profile.Reads(o.Profiles)
	if o.PodGroups && !slices.Contains(kinds, object.PodGroups) {
		kinds = append(kinds, object.PodGroups) // their conditions are written
	}
	return kinds
}

// Machine is the scheduler's whole state. It has one owner, who calls Step; nothing in it
// is safe for concurrent use. It takes each event to the part that it concerns. The parts
// stand in order: each calls those above it.
type Machine struct {
	options  Options
	profiles profiles
	unlisted unlistedKinds
	budgets  *budgets
	engine   *engine.Engine
	*step

	guard       *guard
	pods        *pods
	nominations *nominations
	preemptors  *preemptors
	conditions  *conditions
	overcommits *overcommits
	attempts    *attempts
	reads       *reads
	bindings    *bindingCycles
	evictions   *evictions
	extenders   *extenderCycles
	scheduling  *schedulingCycles
	groups      *podGroups
	quotas      *quotas
	cluster     *cluster
	watch       *podWatch

	Assessor
	Inspector
}

// Step handles one event and returns the effects to carry out, in order. now must not go
// back, by the monotonic clock if it has it.
func (m *Machine) Step(now time.Time, e Event) []Effect {
	m.begin(now, e)
	switch e := e.(type) {
	case PodSet:
		m.watch.podSet(e.Pod)
	case ScheduleOne:
		m.scheduleOne()
	case BindReply:
		m.bindings.bindReplied(e)
	case PodGone:
		m.watch.podGone(e)
	case PodDecodeFailed:
		m.watch.podDecodeFailed(e)
	case ReadReply:
		m.watch.readReplied(e)
	case WriteReply:
		m.writeReplied(e)
	case PreBindReply:
		m.bindings.preBindReplied(e)
	case PreBindBegins:
		m.bindings.preBindBegins(e)
	case PostFilterReply:
		m.scheduling.postFilterReplied(e)
	case PermitReply:
		m.bindings.permitReplied(e)
	case Activate:
		m.activate(e)
	case AskGatedAgain:
		m.askGatedAgain()
	case NominationSet:
		m.nominate(e)
	case HostedObjectChanged:
		m.hostedObjectChanged(e)
	case EvictReply:
		m.evictions.replied(e)
	case ExtenderReply:
		m.scheduling.extenderReplied(e)
	case Tick:
		m.tick()
	case Rewound:
		m.engine.Told()
		m.watch.rewound()
	case Reconfigured:
		m.reconfigure(e)
	default:
		m.engine.Told()
		m.cluster.handle(e)
	}
	if m.extenders.freed {
		m.extenders.admit(m.scheduling.resume)
	}
	m.quotas.settle()
	m.groups.statuses.settle()
	m.orderGroups()
	if m.options.Check {
		if err := m.Verify(); err != nil {
			panic(fmt.Sprintf("machine: after %T: %v", e, err))
		}
	}
	return m.end()
}

// tick handles everything whose time has come: backoffs that are over, calls that are
// overdue, waits that time out. It also renews the oldest condition.
func (m *Machine) tick() {
	m.queue.Flush(m.now)
	m.scheduling.failLateExtenders()
	m.bindings.failLate()
	m.conditions.renew()
}

// NextTimer returns when a Tick is next needed; false when nothing waits for time.
func (m *Machine) NextTimer() (time.Time, bool) {
	next, ok := m.queue.NextTimer()
	if ps, due := m.conditions.oldest(); ps != nil && (!ok || due.Before(next)) {
		next, ok = due, true
	}
	for _, c := range m.bindings.waiting {
		for _, deadline := range c.deadlines { // any order: takes the earliest
			if !ok || deadline.Before(next) {
				next, ok = deadline, true
			}
		}
	}
	if due, late := m.extenders.nextOverdue(); late && (!ok || due.Before(next)) {
		next, ok = due, true
	}
	return next, ok
}

// less reports whether pod a comes before b, by the QueueSort plugin. If the plugin panics, less
// reports the panic and returns false, so that the pods stay in the order of their arrival.
func (m *Machine) less(a, b *framework.QueuedPodInfo) (before bool) {
	defer func() {
		if r := recover(); r != nil {
			m.guard.contained++
			m.guard.report(recovered.From("the QueueSort plugin", r))
			before = false
		}
	}()
	return m.options.Profiles[0].QueueSort.Less(a, b)
}

// holdInBackoff reports whether the pod must not be tried before its backoff is over, even if
// nothing else is active. A pod without a group is held while victims of its preemption are
// leaving. A pod of a group is held always, as attempts of groups cost more, except after the group
// has preempted others and these have left.
func (m *Machine) holdInBackoff(p *object.Pod) bool {
	if !m.groups.has(p) {
		return m.preemptors.victimsLeaving(m.pods.byUID[p.UID]) != ""
	}
	return !m.groups.nominated(p.GroupKey()) || m.groups.victimsLeaving(p.GroupKey())
}
