package machine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// Event is something that happened: a change in the cluster, time that
// passed, or the outcome of an effect.
type Event interface{ event() }

type (
	// NodeSet: the node was added or changed.
	NodeSet struct{ Node *object.Node }
	// NodeGone: the node was deleted.
	NodeGone struct{ Name string }
	// PodSet: the pod was added or changed, pending or bound, of any
	// scheduler. A UID other than the known one under the same name means
	// that the old pod is gone.
	PodSet struct{ Pod *object.Pod }
	// PodGone: the pod was deleted, or reached a terminal phase.
	PodGone struct {
		UID             types.UID
		Namespace, Name string
	}
	// PodUnreadable: the pod waits for its scheduler and changed to something
	// that nobody can make sense of. It is out of the queue until the next
	// PodSet.
	PodUnreadable struct {
		UID                            types.UID
		Namespace, Name, SchedulerName string
		Why                            error
	}
	// BudgetSet: the disruption budget was added or changed.
	BudgetSet struct{ Budget *object.Budget }
	// BudgetGone: the disruption budget was deleted.
	BudgetGone struct{ Namespace, Name string }
	// SelectorOwnerSet: the Service or controller was added or changed.
	SelectorOwnerSet struct{ Owner *object.SelectorOwner }
	// SelectorOwnerGone: the Service or controller was deleted.
	SelectorOwnerGone struct {
		Kind            object.SelectorOwnerKind
		Namespace, Name string
	}
	// NamespaceSet: the namespace was added or changed.
	NamespaceSet struct{ Namespace *object.Namespace }
	// NamespaceGone: the namespace was deleted.
	NamespaceGone struct{ Name string }
	// ObjectSet: an object of one of the kinds that plugins read was added or
	// changed.
	ObjectSet struct{ Object object.Object }
	// ObjectGone: it was deleted.
	ObjectGone struct {
		Kind            object.Kind
		Namespace, Name string
	}
	// KindUnlisted: the objects of a kind that plugins read cannot be listed.
	// Pods about which such a plugin has a say are not placed until KindListed.
	KindUnlisted struct {
		Kind object.Kind
		Err  error
	}
	// KindListed: all objects of the kind have been told of after all.
	KindListed struct{ Kind object.Kind }
	// Rewound: what the API showed before may be undone, as etcd was restored
	// from a backup. What it shows from now on counts, however old.
	Rewound struct{}
	// Tick: time passed; timers that are due fire.
	Tick struct{}
	// Cycle: take the first pod of the queue and decide on it. Does nothing
	// when no pod is ready.
	Cycle struct{}

	// Bound is the outcome of a Bind effect.
	Bound struct {
		UID    types.UID
		Result BindResult
		Err    error // why not, for BindRefused and BindUnknown
	}
	// Written is the outcome of a Write effect. Err nil: all was written; else
	// the first Done writes were, and the others surely were not.
	Written struct {
		UID  types.UID
		Done int
		Err  error
		// Shown are the objects as the API has shown them after the writes.
		Shown []object.Object
	}
	// PodRead is the outcome of a Read effect: the pod as a consistent read of
	// the API shows it, nil when it does not exist. Err: the read failed and
	// is to be asked again.
	PodRead struct {
		UID types.UID
		Pod *object.Pod
		Err error
	}
	// Answered is the outcome of an Ask effect. What it says of nodes and pods
	// that were not asked about does not count. Err: there is no answer, or
	// none that could be used.
	Answered struct {
		UID      types.UID
		Question uint64
		Err      error
		// Filter: the nodes that pass, and why others do not.
		Passed               []string
		Failed, Unresolvable map[string]string
		// Prioritize: 0..10, by node; more is allowed, but not negative.
		Scores map[string]int64
		// Preempt: what is left of the candidates, each node once.
		Left []Left
	}
	// Evicted is the outcome of an Evict effect.
	Evicted struct {
		Victim, Preemptor types.UID
		Err               error
	}
)

// Left is what an extender leaves of a candidate. It may name other victims on
// the node than were offered.
type Left struct {
	Node       string
	Victims    []types.UID
	Violations int
}

// BindResult says what is known of a binding after the API was asked.
type BindResult uint8

const (
	// BindDone: the API accepted it.
	BindDone BindResult = iota
	// BindRefused: the API surely did not bind the pod to the node.
	BindRefused
	// BindUnknown: the reply was lost; it may have happened. The room stays
	// taken until a read settles it.
	BindUnknown
)

func (NodeSet) event()           {}
func (NodeGone) event()          {}
func (PodSet) event()            {}
func (PodGone) event()           {}
func (PodUnreadable) event()     {}
func (BudgetSet) event()         {}
func (BudgetGone) event()        {}
func (SelectorOwnerSet) event()  {}
func (SelectorOwnerGone) event() {}
func (NamespaceSet) event()      {}
func (NamespaceGone) event()     {}
func (ObjectSet) event()         {}
func (ObjectGone) event()        {}
func (KindUnlisted) event()      {}
func (KindListed) event()        {}
func (Rewound) event()           {}
func (Tick) event()              {}
func (Cycle) event()             {}
func (Bound) event()             {}
func (Written) event()           {}
func (PodRead) event()           {}
func (Evicted) event()           {}
func (Answered) event()          {}

// Effect is something for the edge to do. Each effect that changes the API
// and whose outcome matters comes back as an event.
type Effect interface{ effect() }

type (
	// Bind the pod to the node; answered by Bound.
	Bind struct {
		Pod  *object.Pod
		Node string
	}
	// BindBy has an extender bind the pod to the node; answered by Bound.
	BindBy struct {
		Pod      *object.Pod
		Node     string
		Extender int // its position
	}
	// Ask an extender; answered by Answered.
	Ask struct {
		Pod      *object.Pod
		Extender int // its position
		Question uint64
		Verb     Verb
		// Nodes to filter or to score.
		Nodes []*object.Node
		// Candidates for preemption.
		Candidates []framework.Candidate
	}
	// Write carries out a plugin's writes, in order; answered by Written, unless
	// nobody waits for that (Unanswered).
	Write struct {
		Pod        *object.Pod
		Writes     []framework.Write
		Unanswered bool
	}
	// Read the pod, consistently, not before the delay has passed; answered
	// by PodRead.
	Read struct {
		Pod   *object.Pod
		Delay time.Duration
	}
	// Patch the pod's status. Nil fields stay as they are.
	Patch struct {
		Pod       *object.Pod
		Condition *object.Condition // PodScheduled
		Nominated *string           // status.nominatedNodeName
	}
	// Evict deletes a victim on behalf of a preemptor (condition
	// DisruptionTarget first); answered by Evicted.
	Evict struct {
		Victim, Preemptor *object.Pod
		Node              string
	}
	// Announce publishes an API event about the pod.
	Announce struct {
		Pod     *object.Pod
		Warning bool
		Reason  string // Scheduled, FailedScheduling, Preempted, or a plugin's
		Action  string // Binding, Scheduling, Preempting, or a plugin's
		Note    string
		// Related is the preemptor, for Preempted.
		Related *object.Pod
	}
	// Decided hands out the record of an attempt. The record is the
	// receiver's to keep.
	Decided struct{ Decision *decision.Decision }
)

func (Bind) effect()     {}
func (BindBy) effect()   {}
func (Ask) effect()      {}
func (Write) effect()    {}
func (Read) effect()     {}
func (Patch) effect()    {}
func (Evict) effect()    {}
func (Announce) effect() {}
func (Decided) effect()  {}
