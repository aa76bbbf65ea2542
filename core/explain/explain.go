package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
)

// NoNodes is the message of a pod when the cluster has no node at all.
const NoNodes = "no nodes available to schedule pods"

// noteLimit is the longest note of an event that the API accepts, in bytes.
const noteLimit = 1024

// Message returns why the decision did not place the pod: the whole message of its PodScheduled
// condition or, for a gated pod, what the PreEnqueue plugin says. It is "" for a pod that was
// placed or waits.
func Message(d *decision.Decision) string {
	switch d.Result {
	case decision.ResultUnschedulable, decision.ResultPreempting:
		if d.GroupStatus != nil {
			return Status(d.GroupStatus)
		}
		if d.Err != nil {
			return d.Err.Error()
		}
		return fit(d)
	case decision.ResultGated:
		return Status(d.PreEnqueueStatus)
	case decision.ResultError:
		if d.Err != nil {
			return d.Err.Error()
		}
	}
	return ""
}

// Reason returns the reason of the PodScheduled condition, "" where the scheduler
// writes no condition (Scheduled, Waiting and Gated).
func Reason(d *decision.Decision) string {
	switch d.Result {
	case decision.ResultUnschedulable, decision.ResultPreempting:
		return v1.PodReasonUnschedulable
	case decision.ResultError:
		return v1.PodReasonSchedulerError
	}
	return ""
}

// Condition returns the PodScheduled condition to write for the decision, nil if the
// scheduler writes none.
func Condition(d *decision.Decision) *object.Condition {
	reason := Reason(d)
	if reason == "" {
		return nil
	}
	return &object.Condition{Status: v1.ConditionFalse, Reason: reason, Message: Message(d)}
}

// Note returns the message cut to the longest note of an event, with " ..." at the end if it was
// cut, as kube-scheduler does. It may cut a character in two.
func Note(message string) string {
	if len(message) <= noteLimit {
		return message
	}
	const rest = " ..."
	return message[:noteLimit-len(rest)] + rest
}

// Assigned returns the note of the Scheduled event of a pod that was bound to the node.
func Assigned(p *object.Pod, node string) string {
	return fmt.Sprintf("Successfully assigned %s to %s", p.Key(), node)
}

// Deleting returns the note of the FailedScheduling event of a pod that is not
// tried because it is being deleted.
func Deleting(p *object.Pod) string { return "skip schedule deleting pod: " + p.Key() }

// NoProfile returns the reason for which a pod with this spec.schedulerName is never tried.
func NoProfile(schedulerName string) string {
	return fmt.Sprintf("no profile has the schedulerName %q", schedulerName)
}

// Preempted returns the note of the Preempted event on a victim. preemptor is the UID of a
// pod, or of a pod group if byGroup is true.
func Preempted(byGroup bool, preemptor types.UID, node string) string {
	return fmt.Sprintf("Preempted by %s %s on node %s", preemptorType(byGroup), preemptor, node)
}

// Disrupted returns the message of a victim's DisruptionTarget condition. byGroup is set if a pod
// group preempted it. scheduler is the preemptor's schedulerName.
func Disrupted(byGroup bool, scheduler string) string {
	return scheduler + ": preempting to accommodate a higher priority " + preemptorType(byGroup)
}

// preemptorType returns kube-scheduler's word for a pod or a pod group that preempts.
func preemptorType(group bool) string {
	if group {
		return "podgroup"
	}
	return "pod"
}

// fit returns the message for a pod that no node took: "0/N nodes are available:" with
// PreFilter's message, or else the number of nodes by reason; then the messages of the
// PostFilter plugins. The nodes are "of" the decision's domain if it has one.
func fit(d *decision.Decision) string {
	nodes, of := d.NodesTotal, ""
	if nodes == 0 {
		return NoNodes
	}
	if d.Domain != "" {
		of = " of " + d.Domain
	}
	// The pod had a node, and a Reserve or Permit plugin rejected it there:
	// kube-scheduler then counts that node alone.
	if d.NodesFeasible > 0 {
		nodes, of = 1, ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "0/%d nodes%s are available:", nodes, of)
	said := Status(d.PreFilter)
	if said == "" {
		said = histogram(d.Tallies)
	}
	if said != "" {
		fmt.Fprintf(&b, " %s.", said)
	}
	if post := strings.Join(d.PostFilter, ", "); post != "" {
		b.WriteString(" " + post)
	}
	return b.String()
}

// histogram counts reasons over nodes: "1 a, 10 b", sorted as strings, so that
// 10 stands before 2. A node with two reasons counts for both.
func histogram(tallies []decision.Tally) string {
	counts := map[string]int{}
	for _, t := range tallies {
		for _, reason := range t.Reasons {
			counts[reason] += t.Nodes
		}
	}
	parts := make([]string, 0, len(counts))
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[reason], reason))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// Status returns the text of a status: its error, if any, and its reasons, separated by
// commas; "" for nil.
func Status(s *decision.Status) string {
	if s == nil {
		return ""
	}
	var parts []string
	if s.Err != nil {
		parts = append(parts, s.Err.Error())
	}
	return strings.Join(append(parts, s.Reasons...), ", ")
}
