package decision

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Code is the kind of a Status, with kube-scheduler's meanings.
type Code uint8

const (
	// Success: go on.
	Success Code = iota
	// Error: something failed that says nothing about whether the pod fits.
	Error
	// Unschedulable: not now; preemption may help.
	Unschedulable
	// UnschedulableAndUnresolvable: not now, and preemption cannot help.
	UnschedulableAndUnresolvable
	// Wait: a Permit plugin holds the pod.
	Wait
	// Skip: the plugin has nothing to say about this pod.
	Skip
	// Pending: the pod is rejected until an event, without backoff then (PreEnqueue,
	// Reserve, PreBind).
	Pending
)

// String returns kube-scheduler's name of the code.
func (c Code) String() string {
	switch c {
	case Success:
		return "Success"
	case Error:
		return "Error"
	case Unschedulable:
		return "Unschedulable"
	case UnschedulableAndUnresolvable:
		return "UnschedulableAndUnresolvable"
	case Wait:
		return "Wait"
	case Skip:
		return "Skip"
	case Pending:
		return "Pending"
	}
	return "Unknown"
}

// Rejects reports whether the code rejects the pod (Unschedulable,
// UnschedulableAndUnresolvable or Pending), so that it waits for events. Success, Wait,
// Skip and Error do not.
func (c Code) Rejects() bool {
	return c == Unschedulable || c == UnschedulableAndUnresolvable || c == Pending
}

// Status is what a plugin returns at an extension point. A nil *Status is success.
type Status struct {
	Code    Code
	Plugin  string // set by the framework
	Reasons []string
	Point   string // the extension point; set by the framework, always with Code Error
	Err     error  // with Code Error: the cause
}

// Failed returns a Status with Code Error, and the formatted error as its cause.
func Failed(format string, args ...any) *Status {
	return &Status{Code: Error, Err: fmt.Errorf(format, args...)}
}

// String formats the status on one line, for logs.
func (s *Status) String() string {
	if s == nil {
		return "Success"
	}
	return fmt.Sprintf("%s by %q: %v %v", s.Code, s.Plugin, s.Reasons, s.Err)
}

// Blocker is the reason for which a plugin rejects a node.
type Blocker struct {
	Plugin  string
	Code    Code // Unschedulable or UnschedulableAndUnresolvable; Error if the plugin failed
	Reasons []string
	// Insufficient names the resources of which the node has too little free for the pod,
	// if that is the reason; "pods" if it runs as many as it may.
	Insufficient []v1.ResourceName
}

// Failure returns the error of a plugin whose Filter failed, in kube-scheduler's words, from Plugin
// and Reasons.
func (b *Blocker) Failure() error {
	return fmt.Errorf("running %q filter plugin: %s", b.Plugin, strings.Join(b.Reasons, ", "))
}

// Tally is the number of nodes whose first blocker is this one.
type Tally struct {
	Blocker
	Nodes int
}

// Score is the part of one plugin, or one extender, in a node's total score.
type Score struct {
	Plugin string
	Score  int64 // 0..100, normalised, before the weight
	Weight int64
}

// Node is the full answer for one node: all its blockers if it is infeasible, else its
// scores.
type Node struct {
	Name     string
	Feasible bool
	Total    int64     // sum of Score x Weight; feasible nodes only
	Scores   []Score   // in the profile's plugin order
	Blockers []Blocker // every filter that rejects it, in the profile's order
}

// Result is how a scheduling attempt ended, for reports and metrics.
type Result string

// How an attempt may end.
const (
	ResultScheduled     Result = "Scheduled"     // the pod is assumed on a node, not bound yet
	ResultUnschedulable Result = "Unschedulable" // plugins rejected the pod, or its group
	ResultPreempting    Result = "Preempting"    // victims were found, and the pod waits for them
	ResultGated         Result = "Gated"         // a PreEnqueue plugin gates the pod: no attempt
	ResultWaiting       Result = "Waiting"       // the pod is assumed, and a Permit plugin holds it
	ResultError         Result = "Error"         // something failed: Decision.Err
)

// Decision is the record of one scheduling attempt of one pod, or of a pod that is gated or cannot
// be decoded.
type Decision struct {
	UID     types.UID
	Pod     types.NamespacedName
	Profile string // the schedulerName
	Attempt int    // number of the attempt, from 1; 0 for a pod that was not tried
	// Flushed is set if the pod was tried only because it had waited for the longest time,
	// not for an event.
	Flushed bool
	Result  Result

	Node          string // the chosen node, with Result Scheduled or Waiting
	Score         int64  // the total of the chosen node; 0 if it was the only feasible one
	Ties          int    // number of feasible nodes with that total; 0 if one was feasible
	NodesTotal    int    // nodes considered; 1 if Reserve or Permit rejected the pod on its node
	NodesFeasible int    // 0 if GroupStatus is set
	// Domain is the domain of the profile's tree in which the pod was tried with its group, such
	// as "rack a/r1": NodesTotal counts its nodes. It is "" if all nodes were tried.
	Domain string

	// Tallies counts the rejected nodes by first blocker, in the profile's plugin order,
	// then by reasons.
	Tallies []Tally
	// PreEnqueueStatus is the status of the PreEnqueue plugin that gates the pod (Gated).
	PreEnqueueStatus *Status
	// PreFilter is set when a PreFilter plugin rejected the pod as a whole.
	PreFilter *Status
	// GroupStatus is why the pod's group could not be placed; set only if the pod fits by
	// itself, or would once its victims are gone.
	GroupStatus *Status
	// GroupNode is the node that the pod fits by itself, or would once its victims are
	// gone, if GroupStatus is set. It is "" if the pods of the group were counted, not tried.
	GroupNode string
	// PostFilter holds the messages of the PostFilter plugins, in order.
	PostFilter []string

	NominatedNode string                 // with Result Preempting
	Victims       []types.NamespacedName // sorted by namespace, then name

	// RejectedBy names the plugins that rejected the pod, sorted. Events for which one of
	// them registered may move the pod.
	RejectedBy []string
	// PendingBy names the plugins that answered Pending, sorted.
	PendingBy []string

	// Err is the cause when the attempt failed; FailedPoint and FailedPlugin are
	// the extension point and the plugin that failed, "" where none did.
	Err                       error
	FailedPoint, FailedPlugin string

	// Writing is set by Assessor alone: PostFilter plugins returned writes that may make the pod
	// schedulable.
	Writing bool
	// PreemptionTried is set if a PostFilter plugin searched for pods to preempt.
	PreemptionTried bool

	// Nodes is filled on demand (machine.Options.Explain): each node once, sorted by name.
	Nodes []Node
}
