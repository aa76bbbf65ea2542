package machine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
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
		UID             types.UID // "": the pod is found by its name
		Namespace, Name string
	}
	// PodDecodeFailed: the pod cannot be decoded as it is now. A pending pod leaves the queue until
	// the next PodSet. A pod that has a node is read from the API.
	PodDecodeFailed struct {
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
	// ObjectGone: an object of one of the kinds that plugins read was deleted.
	ObjectGone struct {
		Kind            object.Kind
		Namespace, Name string
	}
	// KindUnlisted: the objects of a kind that plugins read cannot be listed. Until KindListed no
	// pod is scheduled for which a plugin needs the kind, except if the plugin's PreFilter skips
	// the pod.
	KindUnlisted struct {
		Kind object.Kind
		Err  error
	}
	// KindListed: all objects of the kind, which was unlisted, have been set.
	KindListed struct{ Kind object.Kind }
	// Rewound: the API went back to an older state, as etcd was restored from a backup.
	// What it shows from now on counts, even if older.
	Rewound struct{}
	// Reconfigured replaces all profiles. Each new one has the name of an old one.
	// Workers and backoffs are as in Options.
	Reconfigured struct {
		Profiles                   []*profile.Profile
		Workers                    int
		InitialBackoff, MaxBackoff time.Duration
	}
	// Tick: time passed; timers that are due fire.
	Tick struct{}
	// ScheduleOne runs a scheduling cycle for the first pod of the queue, or for its pod group. It
	// does nothing if no pod is ready. The first ScheduleOne tells the machine that this process
	// leads.
	ScheduleOne struct{}

	// BindReply is the outcome of a Bind or BindByExtender effect, or of a RunPlugins effect at
	// Bind.
	BindReply struct {
		UID    types.UID
		Result BindResult
		Err    error // with BindRefused and BindUnknown; a *Rejection if a plugin rejected the pod
	}
	// PreBindReply is the outcome of a RunPlugins effect at PreBind. Status is that of the
	// plugin that failed or rejected the pod; nil if none did.
	PreBindReply struct {
		UID    types.UID
		Status *decision.Status
	}
	// PreBindBegins: of the PreBind plugins that a RunPlugins effect runs, at least one has
	// something to do.
	PreBindBegins struct{ UID types.UID }
	// PostFilterReply is the result of a PostFilter plugin that returned Pending to the
	// call with this number.
	PostFilterReply struct {
		UID    types.UID
		Call   uint64
		Result framework.PostFilterResult
	}
	// PermitReply is the answer of a Permit plugin about a pod that it holds: it allows it,
	// preempts it (the attempt fails with an error), or, with neither set, rejects it.
	PermitReply struct {
		UID types.UID
		// Attempt is the number of the pod's attempt that the answer is for; 0 for any.
		Attempt        int
		Plugin         string
		Allow, Preempt bool
		Message        string
	}
	// Activate moves the pods to the active queue, except for those that a PreEnqueue
	// plugin gates.
	Activate struct{ UIDs []types.UID }
	// AskGatedAgain runs PreEnqueue again for the pods that are gated by an error. The host had
	// refused the call: an earlier call was overdue, or the step had no time left.
	AskGatedAgain struct{}
	// NominationSet nominates a pod in the queue to a node; "" ends its nomination.
	NominationSet struct {
		UID  types.UID
		Node string
	}
	// HostedObjectChanged: an object of a kind that only hosted plugins read was added,
	// changed or deleted. Old and New are API objects, for their queueing hints.
	HostedObjectChanged struct {
		Resource   string
		ActionType framework.ActionType
		Old, New   any
	}
	// WriteReply is the outcome of a Write effect. If Err is nil all was written; else the
	// first Done writes were, and the others surely were not.
	WriteReply struct {
		UID  types.UID
		Call uint64 // as in the Write
		Done int
		Err  error
		// Shown are the objects as the API has shown them after the writes.
		Shown []object.Object
	}
	// ReadReply is the outcome of a ReadPod effect: the pod as the API server has it, nil if it
	// does not exist or cannot be decoded. Err is set if the read failed.
	ReadReply struct {
		UID types.UID
		Pod *object.Pod
		Err error
	}
	// ExtenderReply is the outcome of a CallExtender effect. Err is set if there is no usable
	// reply. Nodes that the call was not about are ignored for Filter and Prioritize, and are an
	// error for Preempt.
	ExtenderReply struct {
		UID  types.UID
		Call uint64
		Err  error
		// For Filter: the nodes that pass, and the reasons of others by node. Preemption cannot
		// help on Unresolvable ones.
		Passed               []string
		Failed, Unresolvable map[string]string
		// For Prioritize: scores by node, normally 0 to 10, never negative.
		Scores map[string]int64
		// For Preempt: the candidates that it accepts, each node once.
		Victims []NodeVictims
	}
	// EvictReply is the outcome of an Evict effect.
	EvictReply struct {
		Victim, Preemptor types.UID
		Err               error
	}
)

// NodeVictims are the victims on a node that an extender accepts as a candidate for
// preemption. They may differ from those that were offered.
type NodeVictims struct {
	Node       string
	Victims    []types.UID
	Violations int // of PodDisruptionBudgets
}

// BindResult is what is known of a binding after it was sent.
type BindResult uint8

const (
	// BindDone: the API accepted the binding, or an extender or a hosted plugin says that it did.
	BindDone BindResult = iota
	// BindRefused: the API surely did not bind the pod to the node. From an extender or a hosted
	// plugin it only means that the call failed: a read of the pod decides.
	BindRefused
	// BindUnknown: the reply was lost, so the pod may be bound. Its resources stay reserved
	// until a read settles it.
	BindUnknown
	// BindSkipped: the hosted Bind plugin leaves the pod to the next one.
	BindSkipped
)

// The event methods mark these types as Events.
func (NodeSet) event()             {}
func (NodeGone) event()            {}
func (PodSet) event()              {}
func (PodGone) event()             {}
func (PodDecodeFailed) event()     {}
func (BudgetSet) event()           {}
func (BudgetGone) event()          {}
func (SelectorOwnerSet) event()    {}
func (SelectorOwnerGone) event()   {}
func (NamespaceSet) event()        {}
func (NamespaceGone) event()       {}
func (ObjectSet) event()           {}
func (ObjectGone) event()          {}
func (KindUnlisted) event()        {}
func (KindListed) event()          {}
func (Rewound) event()             {}
func (Reconfigured) event()        {}
func (Tick) event()                {}
func (ScheduleOne) event()         {}
func (BindReply) event()           {}
func (PreBindReply) event()        {}
func (PreBindBegins) event()       {}
func (PostFilterReply) event()     {}
func (PermitReply) event()         {}
func (Activate) event()            {}
func (AskGatedAgain) event()       {}
func (NominationSet) event()       {}
func (HostedObjectChanged) event() {}
func (WriteReply) event()          {}
func (ReadReply) event()           {}
func (EvictReply) event()          {}
func (ExtenderReply) event()       {}
