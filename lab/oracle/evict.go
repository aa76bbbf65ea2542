package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// Nominated is why a pod found no node yet: others go from one for its sake.
type Nominated struct{ Node string }

func (n Nominated) Error() string { return "nominated to node " + n.Node }

// Preempting has Decide make room for pods that find no node, by PostFilter as
// it comes. Evictions are handed over and not carried out: Evict does.
func (r *DefaultScheduler) Preempting() error {
	r.evicting = make(chan *extenderv1.Victims, 1<<10)
	for _, profile := range r.s.profiles { // any order: they do not depend on each other
		i := slices.IndexFunc(profile.PreEnqueuePlugins(), func(p fwk.PreEnqueuePlugin) bool { return p.Name() == defaultpreemption.Name })
		if i < 0 {
			return errors.New("DefaultPreemption is not enabled")
		}
		plugin := profile.PreEnqueuePlugins()[i].(*defaultpreemption.DefaultPreemption)
		plugin.Executor.PreemptPod = func(_ context.Context, c preemption.Candidate, _ preemption.ExecutorPreemptor, _ *v1.Pod, _ string) (bool, error) {
			r.evicting <- c.Victims()
			return false, nil
		}
	}
	return nil
}

// makeRoom is PostFilter for a pod that found no node, and its nomination.
func (r *DefaultScheduler) makeRoom(f framework.Framework, state fwk.CycleState, info *framework.PodInfo, cause error) error {
	fit := (*framework.FitError)(nil)
	if r.evicting == nil || !errors.As(cause, &fit) {
		return cause
	}
	result, _ := f.RunPostFilterPlugins(r.s.ctx, state, info.Pod, fit.Diagnosis.NodeToStatus)
	if result == nil || result.NominatingInfo == nil || result.NominatedNodeName == "" {
		return cause
	}
	r.s.SchedulingQueue.AddNominatedPod(r.s.logger, info, result.NominatingInfo)
	first := <-r.evicting // every eviction names all victims
	for range len(first.Pods) - 1 {
		<-r.evicting
	}
	r.victims = append(r.victims, first.Pods...)
	return Nominated{result.NominatedNodeName}
}

// evict has the victims go.
func (r *DefaultScheduler) evict() error {
	for _, v := range r.victims {
		if err := r.s.Cache.RemovePod(r.s.logger, v); err != nil {
			return fmt.Errorf("pod %s/%s: remove: %w", v.Namespace, v.Name, err)
		}
		if err := r.s.listed.Delete(v); err != nil {
			return err
		}
		delete(r.s.placed, v.UID)
	}
	clear(r.victims)
	r.victims = r.victims[:0]
	return nil
}
