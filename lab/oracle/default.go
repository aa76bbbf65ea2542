package oracle

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/berth-scheduler/berth/sim/generate"
)

// DefaultScheduler is kube-scheduler as it comes (a sample of the nodes is scored,
// 16 workers), deciding in process without an API server.
type DefaultScheduler struct {
	s *Scheduler
	// unbound are decisions for pods with claims, which are yet to be written.
	unbound []choice
	// evicting hands evictions over, nil where nobody preempts; victims are
	// those that have yet to go.
	evicting chan *extenderv1.Victims
	victims  []*v1.Pod
}

// choice is a decision.
type choice struct {
	framework framework.Framework
	state     *framework.CycleState
	pod       *v1.Pod // with its node
}

// NewDefaultScheduler starts it on a cluster, with its default configuration; every bound
// pod names a node in its spec.
func NewDefaultScheduler(nodes []*v1.Node, bound []*v1.Pod) (*DefaultScheduler, error) {
	return NewDefaultSchedulerOn(generate.World{Nodes: nodes, Bound: bound})
}

// NewDefaultSchedulerOn starts it on the cluster of a world, with its configuration.
func NewDefaultSchedulerOn(w generate.World, options ...scheduler.Option) (*DefaultScheduler, error) {
	cfg, err := load(w.Config)
	if err != nil {
		return nil, err
	}
	s, err := start(cfg.Profiles, w, options...)
	if err != nil {
		return nil, err
	}
	s.showCreated()
	return &DefaultScheduler{s: s}, nil
}

// Decide chooses a node for the pod and assumes the pod there: snapshot,
// filters, scores, the cache's assumption, Reserve and Permit. The error says
// why there is none.
func (r *DefaultScheduler) Decide(pod *v1.Pod) (node string, err error) {
	s := r.s
	f, err := s.framework(pod)
	if err != nil {
		return "", err
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return "", err
	}
	if r.evicting != nil { // preemption reads the pod
		if err := s.listed.Add(pod); err != nil {
			return "", err
		}
	}
	if err := s.Cache.UpdateSnapshot(s.logger, s.snapshot); err != nil {
		return "", err
	}
	state := framework.NewCycleState()
	state.Write(framework.PodsToActivateKey, framework.NewPodsToActivate())
	queued := &framework.QueuedPodInfo{PodInfo: info, PodSignature: f.SignPod(s.ctx, pod)}
	result, err := s.SchedulePod(s.ctx, f, state, queued)
	if err != nil {
		return "", r.makeRoom(f, state, info, err)
	}
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = result.SuggestedHost
	if err := s.Cache.AssumePod(s.logger, assumed); err != nil {
		return "", fmt.Errorf("pod %s/%s: assume: %w", pod.Namespace, pod.Name, err)
	}
	if status := f.RunReservePluginsReserve(s.ctx, state, assumed, result.SuggestedHost); !status.IsSuccess() {
		return "", status.AsError()
	}
	if _, status := f.RunPermitPlugins(s.ctx, state, assumed, result.SuggestedHost); !status.IsSuccess() {
		return "", status.AsError()
	}
	if pod.Status.NominatedNodeName != "" {
		s.SchedulingQueue.DeleteNominatedPodIfExists(pod)
	}
	if s.devices() {
		r.unbound = append(r.unbound, choice{f, state, assumed})
	}
	return result.SuggestedHost, nil
}

// Settle has the decisions since be written, as far as they are about devices
// (PreBind), and shows what came of it. Victims are gone after it.
func (r *DefaultScheduler) Settle() error {
	for _, c := range r.unbound {
		if err := r.s.writeClaims(c); err != nil {
			return fmt.Errorf("pod %s/%s: %w", c.pod.Namespace, c.pod.Name, err)
		}
	}
	clear(r.unbound)
	r.unbound = r.unbound[:0]
	return r.evict()
}

// Stop ends the scheduler's background work.
func (r *DefaultScheduler) Stop() { r.s.Stop() }
