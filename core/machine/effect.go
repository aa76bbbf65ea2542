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
	// Bind the pod to the node; replied to by
	// BindReply.
	Bind struct {
		Pod  *object.Pod
		Node string
	}
	// BindByExtender has an extender bind the pod to the node; replied to by
	// BindReply.
	BindByExtender struct {
		Pod      *object.Pod
		Node     string
		Extender int // its position
	}
	// CallExtender calls an extender; replied to by ExtenderReply.
	CallExtender struct {
		Pod      *object.Pod
		Extender int // its position
		Call     uint64
		Verb     Verb
		// Nodes to filter or to score.
		Nodes []*object.Node
		// Candidates for preemption.
		Candidates []framework.Candidate
	}
	// RunPlugins has plugins run that may block, one after the other. At PreBind it
	// is replied to by PreBindReply, at Bind, where it is one plugin, by BindReply;
	// at PostBind nobody waits.
	RunPlugins struct {
		Pod           *object.Pod
		Node, Profile string
		Point         string
		Plugins       []string
		Attempt       any // of the profile's Host
	}
	// CancelPlugins cancels the context of the pod's PreBind plugins, as the attempt has
	// failed. They reply all the same.
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
	}
	// PatchStatus patches the pod's status. Nil fields stay as they are.
	PatchStatus struct {
		Pod       *object.Pod
		Condition *object.Condition // PodScheduled
		Nominated *string           // status.nominatedNodeName
	}
	// Evict deletes a victim on behalf of a preemptor (condition
	// DisruptionTarget first); replied to by EvictReply.
	Evict struct {
		Victim, Preemptor *object.Pod
		// Group is the preemptor's where the victim goes for all of it, nil else.
		Group *object.PodGroup
		Node  string
	}
	// PublishEvent publishes an event (of the Events API) about the pod.
	PublishEvent struct {
		Pod     *object.Pod
		Warning bool
		Reason  EventReason
		Action  string // Binding, Scheduling, Preempting, or a plugin's
		Note    string
		// Related is the preemptor, for Preempted, and RelatedGroup its group, where the
		// victim goes for all of it.
		Related      *object.Pod
		RelatedGroup *object.PodGroup
		// WaitedDevices are the devices that the pod waits for from now on, for metrics.
		WaitedDevices []framework.WaitedDevice
	}
	// PatchGroupStatus writes the condition PodGroupScheduled of the PodGroup.
	PatchGroupStatus struct {
		Group     *object.PodGroup
		Condition object.GroupCondition
	}
	// PodGroupDone reports how the cycle of a pod group ended. Result is that of the
	// group: Preempting if it waits for victims to leave. The effects of its pods come
	// before.
	PodGroupDone struct {
		Group           types.NamespacedName
		Placement       string // the name of the one chosen, "" for all nodes
		Profile         string
		Result          decision.Result
		Pods, Scheduled int           // that were tried; that are assumed now
		Victims         []*object.Pod // that go for the group as a whole
		Err             error         // with ResultError
	}
	// AttemptDone hands out the record of an attempt. The record is the
	// receiver's to keep.
	AttemptDone struct{ Decision *decision.Decision }
)

func (Bind) effect()             {}
func (BindByExtender) effect()   {}
func (CallExtender) effect()     {}
func (RunPlugins) effect()       {}
func (CancelPlugins) effect()    {}
func (Write) effect()            {}
func (ReadPod) effect()          {}
func (PatchStatus) effect()      {}
func (Evict) effect()            {}
func (PublishEvent) effect()     {}
func (PatchGroupStatus) effect() {}
func (PodGroupDone) effect()     {}
func (AttemptDone) effect()      {}

// EventReason says what an event is about: one of these, or a plugin's own.
type EventReason string

const (
	ReasonScheduled        EventReason = "Scheduled" // the pod is bound
	ReasonFailedScheduling EventReason = "FailedScheduling"
	ReasonPreempted        EventReason = "Preempted" // the pod is a victim
)
