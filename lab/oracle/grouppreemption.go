package oracle

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// PodGroupPostFilterPlugins are the profile's, and say whom they evict. Nobody is evicted.
func (f groupFramework) PodGroupPostFilterPlugins() []framework.PodGroupPostFilterPlugin {
	var plugins []framework.PodGroupPostFilterPlugin
	for _, p := range f.Framework.PodGroupPostFilterPlugins() {
		plugins = append(plugins, groupPostFilter{p.(*defaultpreemption.DefaultPreemption), f.cycle})
	}
	return plugins
}

type groupPostFilter struct {
	*defaultpreemption.DefaultPreemption
	cycle *groupCycle
}

func (p groupPostFilter) PodGroupPostFilter(ctx context.Context, group *schedulingv1alpha2.PodGroup, pods []*v1.Pod, try func(context.Context) *fwk.Status) *fwk.Status {
	evict := p.Executor.PreemptPod
	defer func() { p.Executor.PreemptPod = evict }()
	var mu sync.Mutex
	p.Executor.PreemptPod = func(_ context.Context, c preemption.Candidate, _ preemption.ExecutorPreemptor, _ *v1.Pod, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		p.cycle.victims = c.Victims().Pods // every eviction names all
		return nil
	}
	p.cycle.trial = true
	status := p.DefaultPreemption.PodGroupPostFilter(ctx, group, pods, try)
	p.cycle.trial = false
	for start := time.Now(); p.Executor.IsPodGroupRunningPreemption(group.UID) && time.Since(start) < evictionTimeout; {
		time.Sleep(time.Millisecond)
	}
	mu.Lock()
	defer mu.Unlock()
	return status
}
