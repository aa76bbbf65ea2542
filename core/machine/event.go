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
		UID             types.UID
		Namespace, Name string
	}
	// PodDecodeFailed: the pod waits for its scheduler and changed to something
	// that nobody can make sense of. It is out of the queue until the next
	// PodSet.
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
	// KindListed: all objects of the kind, which was unlisted, have been set.
	KindListed struct{ Kind object.Kind }
	// Rewound: what the API showed before may be undone, as etcd was restored
	// from a backup. What it shows from now on counts, however old.
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
	// ScheduleOne runs a scheduling cycle for the first pod of the queue. It does nothing
	// if no pod is ready.
	ScheduleOne struct{}

	// BindReply is the outcome of a Bind or BindByExtender effect.
	BindReply struct {
		UID    types.UID
		Result BindResult
		Err    error // why not, for BindRefused and BindUnknown; a Rejection of a plugin
	}
	// PreBindReply is the outcome of a RunPlugins effect at PreBind. Status: how a
	// plugin failed; nil: none did.
	PreBindReply struct {
		UID    types.UID
		Status *decision.Status
	}
	// PreBindBegins: of the PreBind plugins of a RunPlugins effect one has something to do.
	PreBindBegins struct{ UID types.UID }
	// PostFilterReply is the result of a PostFilter plugin that answered Pending to the
	// call of the number.
	PostFilterReply struct {
		UID    types.UID
		Call   uint64
		Result framework.PostFilterResult
	}
	// PermitReply is the answer of a Permit plugin for a pod that it holds. It lets the
	// pod go, rejects it with the message, or preempts it, which ends the attempt with an
	// error.
	PermitReply struct {
		UID types.UID
		// Attempt is the pod's attempt that is meant, 0 for any.
		Attempt        int
		Plugin         string
		Allow, Preempt bool
		Message        string
	}
	// Activate makes the pods active now, unless a PreEnqueue plugin gates them.
	Activate struct{ UIDs []types.UID }
	// AskGatedAgain runs PreEnqueue again for the pods that are gated because the host
	// refused to call it while another call had not returned. That call has returned.
	AskGatedAgain struct{}
	// NominationSet: a pod in the queue is nominated to a node, "" for none.
	NominationSet struct {
		UID  types.UID
		Node string
	}
	// HostedObjectChanged: an object that only hosted plugins know came, changed or went.
	// Old and New are theirs.
	HostedObjectChanged struct {
		Resource   string
		ActionType framework.ActionType
		Old, New   any
	}
	// WriteReply is the outcome of a Write effect. Err nil: all was written; else
	// the first Done writes were, and the others surely were not.
	WriteReply struct {
		UID  types.UID
		Call uint64 // that of the Write
		Done int
		Err  error
		// Shown are the objects as the API has shown them after the writes.
		Shown []object.Object
	}
	// ReadReply is the outcome of a ReadPod effect: the pod as a consistent read
	// of the API shows it, nil when it does not exist. Err: the read failed.
	ReadReply struct {
		UID types.UID
		Pod *object.Pod
		Err error
	}
	// ExtenderReply is the outcome of a CallExtender effect. Nodes and pods that the call
	// was not about are ignored. Err is set if there is no usable reply.
	ExtenderReply struct {
		UID  types.UID
		Call uint64
		Err  error
		// Filter: the nodes that pass, and why others do not.
		Passed               []string
		Failed, Unresolvable map[string]string
		// Prioritize: 0..10, by node; more is allowed, but not negative.
		Scores map[string]int64
		// Preempt: the candidates that it accepts, each node once.
		Victims []NodeVictims
	}
	// EvictReply is the outcome of an Evict effect.
	EvictReply struct {
		Victim, Preemptor types.UID
		Err               error
	}
)

// NodeVictims are the victims on a node that an extender accepts as a candidate. It
// may name others than were offered.
type NodeVictims struct {
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
	// BindSkipped: the Bind plugin leaves the pod to the next.
	BindSkipped
)

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
