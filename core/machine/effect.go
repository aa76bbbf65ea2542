package machine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// Effect is something for the edge to do. Each effect that changes the API
// and whose outcome matters comes back as an event.
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
	// RunPlugins runs hosted plugins of one point outside of the machine, since they may
	// block. It is replied to by PreBindReply at PreBind and by BindReply at Bind, where
	// Plugins is one; at PostBind there is no reply.
	RunPlugins struct {
		Pod           *object.Pod
		Node, Profile string
		Point         string
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
		// Call is the number of the call of PostFilter that writes, 0 for PreBind.
		Call uint64
	}
	// ReadPod reads the pod, consistently, not before the delay has passed;
	// replied to by ReadReply.
	ReadPod struct {
		Pod   *object.Pod
		Delay time.Duration
		// Ended: only how the pod ended is asked for, which others need not wait for.
		Ended bool
	}
	// PatchStatus patches the pod's status. Nil fields stay as they are.
	PatchStatus struct {
		Pod       *object.Pod
		Condition *object.Condition // PodScheduled
		Nominated *string           // status.nominatedNodeName
	}
	// Evict sets the DisruptionTarget condition of a victim and deletes it; replied to by
	// EvictReply.
	Evict struct {
		Victim, Preemptor *object.Pod
		// Group is the preemptor's PodGroup if the victim goes for the whole group, else
		// nil.
		Group *object.PodGroup
		Node  string
		// Reclaims is set if the victim used what is guaranteed to the preemptor: both have an
		// ElasticQuota, each its own.
		Reclaims bool
	}
	// PublishEvent publishes an event (of the Events API) about the pod.
	PublishEvent struct {
		Pod     *object.Pod
		Warning bool
		Reason  EventReason
		Action  string // Binding, Scheduling, Preempting, or a plugin's
		Note    string
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
	// PatchQuotaStatus writes what the queue of the ElasticQuota uses to its status.
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
	// PodGroupDone reports the end of a scheduling cycle of a pod group, after the effects
	// of its pods. Result is the group's: Preempting if it waits for victims to leave.
	PodGroupDone struct {
		Group           types.NamespacedName
		Placement       string // name of the chosen placement; "" for all nodes
		Order           string // in which its pods fit, by name; "" for the queue's
		Profile         string
		Result          decision.Result
		Pods, Scheduled int           // pods that were tried; those of them that are assumed now
		Victims         []*object.Pod // pods preempted for the group as a whole
		// Waited is the time from when one of these pods could first be tried, if the group is
		// placed and no pod of it was placed before; else 0.
		Waited time.Duration
		Err    error // set with ResultError
	}
	// AttemptDone publishes the record of an attempt. The receiver may keep it; the machine
	// does not change it any more.
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
	// ReasonOtherPodGroup: the pod names two groups, of which one counts.
	ReasonOtherPodGroup EventReason = "OtherPodGroupIgnored"
)
