package logs

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/recovered"
)

// attempted logs the record of an attempt.
func (l *Logger) attempted(r *decision.Decision) {
	pod := named(r.Pod)
	if l.level >= 10 {
		l.nodes(r, pod)
	}
	if r.Result != decision.ResultScheduled && r.Result != decision.ResultWaiting {
		l.ended = append(l.ended, r.UID)
	}
	switch r.Result {
	case decision.ResultError:
		l.failed(r, pod)
	case decision.ResultScheduled, decision.ResultWaiting:
		if l.level >= 2 {
			l.chosen(r, pod)
		}
	case decision.ResultGated:
		if l.level >= 4 {
			l.logger.V(4).Info("Status after running PreEnqueue plugin", "pod", pod, "plugin", r.PreEnqueueStatus.Plugin, "status", explain.Message(r))
		}
	default:
		if l.level >= 2 || r.Err != nil {
			l.unschedulable(r, pod)
		}
	}
}

// failed logs an attempt that ended with an error. The first line is of the
// plugin, as far as one failed after the pod was assumed.
func (l *Logger) failed(r *decision.Decision, pod klog.ObjectRef) {
	var p *recovered.Panic
	if errors.As(r.Err, &p) {
		l.panicked(r, pod, p)
		return
	}
	switch r.FailedPoint {
	case "Reserve", "Permit", "PreBind":
		l.logger.Error(r.Err, "Plugin failed", "plugin", r.FailedPlugin, "pod", pod, "operation", r.FailedPoint)
	}
	l.logger.Error(r.Err, "Error scheduling pod; retrying", "pod", pod, "attempt", r.Attempt)
}

// chosen logs that a node was found.
func (l *Logger) chosen(r *decision.Decision, pod klog.ObjectRef) {
	p := placed{record: r}
	if s, ok := l.flushed[r.UID]; ok {
		p.state = &s
		delete(l.flushed, r.UID)
	}
	l.placed[r.UID] = p
	if l.level < 4 {
		return
	}
	l.logger.V(4).Info("Chose node for pod", "pod", pod, "node", r.Node, "score", r.Score, "ties", r.Ties, "attempt", r.Attempt)
	if r.Result == decision.ResultWaiting {
		l.logger.V(4).Info("One or more plugins asked to wait and no plugin rejected pod", "pod", pod)
		l.logger.V(4).Info("Pod waiting on permit", "pod", pod)
	}
}

// unschedulable logs that no node was found, or that the pod was rejected on the
// node that was.
func (l *Logger) unschedulable(r *decision.Decision, pod klog.ObjectRef) {
	if r.PreFilter != nil && l.level >= 5 {
		l.logger.V(5).Info("Status after running PreFilter plugins for pod", "pod", pod, "status", strings.Join(r.PreFilter.Reasons, ", "))
	}
	switch {
	case r.Result == decision.ResultPreempting:
		l.logger.V(2).Info("the target node for the preemption is determined", "node", r.NominatedNode, "pod", pod)
		l.logger.V(2).Info("Start the preemption asynchronously", "preemptor", pod, "node", r.NominatedNode,
			"numVictims", len(r.Victims), "numVictimsToDelete", len(r.Victims))
	case r.PreemptionTried:
		l.logger.V(2).Info("No preemption candidate is found; preemption is not helpful for scheduling", "pod", pod)
	}
	if len(r.PostFilter) > 0 && l.level >= 5 {
		l.logger.V(5).Info("Status after running PostFilter plugins for pod", "pod", pod, "status", strings.Join(r.PostFilter, ", "))
	}
	if r.NodesTotal == 0 {
		l.logger.V(2).Info("Unable to schedule pod; no nodes are registered to the cluster; waiting", "pod", pod)
		return
	}
	if r.Err != nil { // PreBind or Bind rejected it
		l.logger.Error(r.Err, "Error scheduling pod; retrying", "pod", pod, "attempt", r.Attempt)
		return
	}
	if r.GroupStatus != nil {
		l.logger.V(2).Info("Unable to schedule pod belonging to a pod group; waiting", "pod", pod, "err", explain.Message(r), "attempt", r.Attempt)
		return
	}
	l.logger.V(2).Info("Unable to schedule pod; no fit; waiting", "pod", pod, "err", explain.Message(r), "attempt", r.Attempt)
}

// nodes logs what filters and scores said about each node. As in kube-scheduler nothing is
// scored when only one node is left.
func (l *Logger) nodes(r *decision.Decision, pod klog.ObjectRef) {
	v := l.logger.V(10)
	for i := range r.Nodes {
		n := &r.Nodes[i]
		for _, b := range n.Blockers {
			v.Info("Plugin rejected node for pod", "pod", pod, "plugin", b.Plugin, "node", n.Name, "code", b.Code.String(), "reasons", b.Reasons)
		}
		if !n.Feasible || r.NodesFeasible == 1 {
			continue
		}
		for _, s := range n.Scores {
			v.Info("Plugin scored node for pod", "pod", pod, "plugin", s.Plugin, "node", n.Name, "score", s.Score*s.Weight)
		}
		v.Info("Calculated node's final score for pod", "pod", pod, "node", n.Name, "score", n.Total)
	}
}

// bound logs that a pod is bound.
func (l *Logger) bound(p *object.Pod) {
	was, ok := l.placed[p.UID]
	if !ok {
		return // it was placed before the verbosity was raised
	}
	delete(l.placed, p.UID)
	r := was.record
	l.logger.V(2).Info("Successfully bound pod to node", "pod", ref(p), "node", r.Node,
		"evaluatedNodes", r.NodesTotal, "feasibleNodes", r.NodesFeasible)
	if s := was.state; s != nil && l.level >= 4 {
		l.logger.V(4).Info("Pod scheduled after flush from unschedulableEntities", "pod", ref(p),
			"unschedulablePlugins", s.RejectedBy, "pendingPlugins", s.PendingBy)
	}
}

// bindReplied logs a binding that was refused, or whose reply was lost.
func (l *Logger) bindReplied(e machine.BindReply) {
	switch e.Result {
	case machine.BindRefused:
		if l.level >= 1 {
			l.logger.V(1).Info("Failed to bind pod", "pod", l.nameOf(e), "err", e.Err)
		}
	case machine.BindUnknown:
		l.logger.Info("The result of a binding is unknown; reading the pod", "pod", l.nameOf(e), "podUID", e.UID, "err", e.Err)
	}
}

func (l *Logger) nameOf(e machine.BindReply) klog.ObjectRef {
	if p, ok := l.placed[e.UID]; ok {
		return named(p.record.Pod)
	}
	return klog.ObjectRef{}
}

func named(pod types.NamespacedName) klog.ObjectRef { return klog.KRef(pod.Namespace, pod.Name) }
