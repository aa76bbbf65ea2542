package machine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// Effect is a request to the edge. An event reports the outcome if the machine depends on it.
type Effect interface{ effect() }

type (
	// Bind binds the pod to the node; replied to by BindReply.
	Bind struct {
		Pod  *object.Pod
		Node string
	}
	// BindByExtender lets an extender bind the pod to the node; replied to by BindReply.
	BindByExtender struct {
		Pod      *object.Pod
		Node     string
		Extender int // index in Options.Extenders
	}
	// CallExtender calls an extender; replied to by ExtenderReply.
	CallExtender struct {
		Pod      *object.Pod
		Extender int    // index in Options.Extenders
		Call     uint64 // to be returned in the reply
		Verb     Verb
		// Nodes to filter or to score.
		Nodes []*object.Node
		// Candidates for preemption.
		Candidates []framework.Candidate
	}
	// RunPlugins runs hosted plugins of one point outside of the machine, since they may block. At
	// PreBind it is replied to by PreBindReply. At Bind it runs one plugin and is replied to by
	// BindReply. At PostBind there is no reply.
	RunPlugins struct {
		Pod           *object.Pod
		Node, Profile string
		Point         string // PreBind, Bind or PostBind
		Plugins       []string
		Attempt       any // Host.Attempt of the pod
	}
	// CancelPlugins cancels the context of the pod's PreBind plugins, as the attempt has
	// failed. Their PreBindReply comes all the same.
	CancelPlugins struct {
		Pod *object.Pod
		Why error
	}
	// Write carries out a plugin's writes, in order; replied to by WriteReply.
	Write struct {
		Pod    *object.Pod
		Writes []framework.Write
		// Call is the number of the call of PostFilter that writes; 0 for what PreBind plugins
		// write, and for what reverts that.
		Call uint64
	}
	// ReadPod reads the pod, consistently, not before the delay has passed;
	// replied to by ReadReply.
	ReadPod struct {
		Pod   *object.Pod
		Delay time.Duration
		// Ended is set if the read is only to show how the pod ended, for the status of its group.
		// Such a read must not delay others.
		Ended bool
	}
	// PatchStatus patches the pod's status. Nil fields stay as they are.
	PatchStatus struct {
		Pod       *object.Pod
		Condition *object.Condition // PodScheduled
		Nominated *string           // status.nominatedNodeName; "" removes it
	}
	// Evict sets the DisruptionTarget condition of a victim and deletes it; replied to by
	// EvictReply.
	Evict struct {
		Victim, Preemptor *object.Pod
		// Group is the preemptor's PodGroup of scheduling.k8s.io if the victim goes for the
		// whole group, else nil.
		Group *object.PodGroup
		Node  string // that the preemptor is nominated to; AnyNode for a group
		// Reclaims is set if victim and preemptor have different ElasticQuotas: the victim used
		// what is guaranteed to the preemptor.
		Reclaims bool
	}
	// PublishEvent publishes an event (of the Events API) about the pod.
	PublishEvent struct {
		Pod     *object.Pod
		Warning bool // type Warning; else Normal
		Reason  EventReason
		Action  string // Binding, Scheduling, Preempting, or a plugin's
		Note    string // in full: the edge cuts it (explain.Note)
		// Related is the preemptor, for Preempted; RelatedGroup is its PodGroup if the
		// victim goes for the whole group.
		Related      *object.Pod
		RelatedGroup *object.PodGroup
		// WaitedDevices are the devices that the pod waits for from now on, for metrics.
		WaitedDevices []framework.WaitedDevice
	}
	// PatchGroupStatus writes the condition PodGroupInitiallyScheduled of the PodGroup.
	PatchGroupStatus struct {
		Group     *object.PodGroup
		Condition object.GroupCondition
	}
	// PatchGroupPhase writes the status of a PodGroup of scheduler-plugins.
	PatchGroupPhase struct {
		Group  *object.PodGroup
		Status object.GroupStatus
	}
	// PatchQuotaStatus writes status.used of the ElasticQuota: what the pods that it counts
	// request.
	PatchQuotaStatus struct {
		Quota *object.ElasticQuota
		Used  object.Amounts
	}
	// ReportQuotaFaults says what of the ElasticQuota does not count as it is written, and
	// what counts instead.
	ReportQuotaFaults struct {
		Quota  *object.ElasticQuota
		Faults string
	}
	// PodGroupDone reports the end of a scheduling cycle of a pod group, after the effects of its
	// pods. Result is the group's: Preempting if it waits for victims to leave. A group that cannot
	// be tried at all has none.
	PodGroupDone struct {
		Group           types.NamespacedName
		Placement       string // name of the chosen placement; "" for all nodes
		Order           string // in which its pods fit, such as LargestFirst; "" for the queue's
		Profile         string
		Result          decision.Result
		Pods, Scheduled int           // pods that were tried; those of them that are assumed now
		Victims         []*object.Pod // pods preempted for the group as a whole
		// Waited is the time since the first of the pods could first be tried, if the group is
		// placed and no pod of it was placed before; else 0.
		Waited time.Duration
		Err    error // set with ResultError
	}
	// AttemptDone publishes the record of an attempt, once the pod is assumed or goes back to the
	// queue. If an assumed pod is not bound after all, a second record of the attempt follows. Pods
	// that PreEnqueue gates and pods that cannot be decoded have a record, too. The receiver may
	// keep the record: the machine does not change it any more.
	AttemptDone struct{ Decision *decision.Decision }
)

// The effect methods mark these types as Effects.
func (Bind) effect()              {}
func (BindByExtender) effect()    {}
func (CallExtender) effect()      {}
func (RunPlugins) effect()        {}
func (CancelPlugins) effect()     {}
func (Write) effect()             {}
func (ReadPod) effect()           {}
func (PatchStatus) effect()       {}
func (Evict) effect()             {}
func (PublishEvent) effect()      {}
func (PatchGroupStatus) effect()  {}
func (PatchGroupPhase) effect()   {}
func (PatchQuotaStatus) effect()  {}
func (ReportQuotaFaults) effect() {}
func (PodGroupDone) effect()      {}
func (AttemptDone) effect()       {}

// EventReason is the reason of an Event: one of these, or a plugin's own.
type EventReason string

const (
	ReasonScheduled        EventReason = "Scheduled" // the pod is bound
	ReasonFailedScheduling EventReason = "FailedScheduling"
	ReasonPreempted        EventReason = "Preempted" // the pod is a victim
	// ReasonOtherPodGroup: the pod names one group in its spec and another by its labels. Only the
	// first counts.
	ReasonOtherPodGroup EventReason = "OtherPodGroupIgnored"
)
