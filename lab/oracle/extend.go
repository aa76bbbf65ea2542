package oracle

import (
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// extended notes what extenders made of the nodes that the plugins let pass.
// Why they refused some is known only of a pod that got none. Where one of them
// failed, nothing is said of any node.
func extended(rec *Record, l *listener, result scheduler.ScheduleResult, err error) {
	var fit *framework.FitError
	if err != nil && !errors.As(err, &fit) {
		rec.Nodes = nil
		return
	}
	left := map[string]bool{}
	if err == nil {
		left[result.SuggestedHost] = true
	}
	for _, n := range l.scored {
		left[n.Name] = true
	}
	for i := range rec.Nodes {
		n := &rec.Nodes[i]
		if !n.Feasible || left[n.Name] {
			continue
		}
		n.Feasible, n.Plugin = false, framework.ExtenderName
		if fit != nil {
			status := fit.Diagnosis.NodeToStatus.Get(n.Name)
			n.Code, n.Reasons = status.Code().String(), status.Reasons()
		}
	}
}

// reviewed is what extenders leave of candidates for preemption.
func (s *Scheduler) reviewed(pod *v1.Pod, candidates []preemption.Candidate, of *preemption.Evaluator) ([]preemption.Candidate, error) {
	left := of.CandidatesToVictimsMap(candidates)
	for _, x := range s.Extenders {
		if !x.SupportsPreemption() || !x.IsInterested(pod) || len(left) == 0 {
			continue
		}
		reply, err := x.ProcessPreemption(pod, left, s.snapshot.NodeInfos())
		if err != nil && !x.IsIgnorable() {
			return nil, err
		}
		if err == nil {
			left = reply
		}
	}
	var kept []preemption.Candidate
	for _, c := range candidates {
		if v := left[c.Name()]; v != nil && len(v.Pods) > 0 {
			kept = append(kept, c)
		}
	}
	return kept, nil
}
