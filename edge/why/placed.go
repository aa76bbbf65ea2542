package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/edge/decode"
)

// OnNode says how it stands with a pod that has a node: whether it runs there, has not started,
// or has ended.
func OnNode(p *v1.Pod) string {
	name, node := p.Namespace+"/"+p.Name, p.Spec.NodeName
	switch p.Status.Phase {
	case v1.PodSucceeded:
		return fmt.Sprintf("%s has ended on %s: its phase is %s.", name, node, p.Status.Phase)
	case v1.PodFailed:
		return name + " has failed on " + node + failedText(p)
	}
	leaves := ""
	if l := leavingOf(p); l.known {
		leaves = " and is " + l.brief()
	}
	switch waits := NotRunning(p); {
	case waits == "":
		return name + " runs on " + node + leaves + "."
	case p.Status.Phase == v1.PodPending:
		return fmt.Sprintf("%s is placed on %s and has not started%s: %s. The scheduler is done with it; `kubectl describe pod %s -n %s` shows what its kubelet does.",
			name, node, leaves, waits, word(p.Name), word(p.Namespace))
	default:
		return fmt.Sprintf("%s has started on %s%s, and %s.", name, node, leaves, waits)
	}
}

// NotRunning says what a pod that has a node waits for there, or why it failed; "" if it runs.
func NotRunning(p *v1.Pod) string {
	if p.Status.Phase == v1.PodFailed {
		return cmp.Or(failureOf(p), "it has failed")
	}
	if decode.Ended(p) {
		return ""
	}
	for _, of := range []struct {
		kind     string
		statuses []v1.ContainerStatus
	}{{"init container", p.Status.InitContainerStatuses}, {"container", p.Status.ContainerStatuses}} {
		var waiting []string
		for i := range of.statuses {
			if w := of.statuses[i].State.Waiting; w != nil && w.Reason != "PodInitializing" {
				waiting = append(waiting, fmt.Sprintf("%s %s waits%s", of.kind, of.statuses[i].Name, inBrackets(w.Reason, w.Message)))
			}
		}
		if len(waiting) > 0 {
			return list(waiting, shortNames)
		}
	}
	switch {
	case p.Status.Phase != v1.PodPending:
		return ""
	case len(p.Status.InitContainerStatuses) > 0:
		return "its init containers come first"
	case len(p.Status.ContainerStatuses) > 0:
		return "its kubelet starts its containers"
	}
	return "its kubelet has said nothing of its containers yet"
}

// inBrackets is a reason and a message as texts quote them, "" where there is neither.
func inBrackets(reason, message string) string {
	if reason == "" || message == "" {
		reason, message = reason+message, ""
	}
	switch message = strings.TrimSpace(bounded(message)); {
	case reason == "":
		return ""
	case message == "":
		return " (" + bounded(reason) + ")"
	}
	return " (" + reason + ": " + message + ")"
}

// failedText says why a pod failed, and what comes of that.
func failedText(p *v1.Pod) string {
	text := ""
	if why := failureOf(p); why != "" {
		text = ": " + why
	}
	switch by := kubeletReason(p.Status.Reason); by {
	case "":
		return text + "; the scheduler does not try it again."
	default:
		return text + ". Its kubelet " + by + " it; the scheduler does not try it again."
	}
}

// failureOf is why the pod failed, as its status says it.
func failureOf(p *v1.Pod) string {
	if p.Status.Reason == "" {
		return bounded(p.Status.Message)
	}
	return p.Status.Reason + inBrackets("", p.Status.Message)
}

// kubeletReason says what a kubelet did that gives a failed pod this reason, "" for one that is
// not known. A kubelet admits a pod by itself: it may know of more than the scheduler did.
func kubeletReason(reason string) string {
	refusals := []string{"NodeAffinity", "NodeName", "NodePorts", "Taint", "UnexpectedAdmissionError", "TopologyAffinityError", "SMTAlignmentError",
		"AppArmor", "SysctlForbidden", "PodOSNotSupported", "PodOSSelectorNodeLabelDoesNotMatch", "PodFeatureUnsupported"}
	switch {
	case strings.HasPrefix(reason, "OutOf"), slices.Contains(refusals, reason):
		return "refused"
	case slices.Contains([]string{"Evicted", "Preempting", "Terminated", "NodeShutdown", "DeadlineExceeded"}, reason):
		return "ended"
	}
	return ""
}

// placedText says how it stands with the pod on its node, and who evicts it.
func (a *Answer) placedText() string {
	text := OnNode(a.facts.api)
	if _, known := a.facts.cluster.Machine.Table().Find(a.Node); !known && !a.facts.pod.Terminal {
		text = fmt.Sprintf("%s is bound to %s, and there is no such node.", a.Pod, a.Node)
	}
	if len(a.EvictedBy) > 0 {
		text += fmt.Sprintf(" It is evicted for %s. %s", list(a.EvictedBy, shortNames), a.Evicted)
	}
	return text + a.margin()
}
