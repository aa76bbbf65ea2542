package preemption

import (
	"context"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// kube is kube-scheduler's answer for the case.
func kube(t *testing.T, c *testCase) *outcome {
	metrics.Register()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	objects := []runtime.Object{c.pod}
	for _, p := range slices.Concat(c.placed, c.nominated) {
		objects = append(objects, p)
	}
	for _, b := range c.budgets {
		objects = append(objects, b)
	}
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	snapshot := cache.NewSnapshot(c.placed, c.nodes)
	waiting := queue.NewTestQueueWithInformerFactory(ctx, func(a, b fwk.QueuedEntityInfo) bool { return false }, factory)
	out := &outcome{plans: map[string]plan{}}
	registry := plugins.NewInTreeRegistry()
	registry[defaultpreemption.Name] = func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		pl, err := defaultpreemption.New(ctx, args, h, feature.Features{})
		if err != nil {
			return nil, err
		}
		pl.Evaluator.Interface = &spy{pl, out}
		pl.Executor.PreemptPod = func(_ context.Context, _ preemption.Candidate, _ preemption.ExecutorPreemptor, victim *v1.Pod, _ string) (bool, error) {
			out.lock.Lock()
			defer out.lock.Unlock()
			out.evicted = append(out.evicted, victim.Name)
			return false, nil
		}
		return pl, nil
	}
	f, err := frameworkruntime.NewFramework(ctx, registry, profileOf(t),
		frameworkruntime.WithClientSet(client), frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(snapshot), frameworkruntime.WithMutableSnapshotLister(snapshot), frameworkruntime.WithPodNominator(waiting),
		frameworkruntime.WithEventRecorder(&events.FakeRecorder{}), frameworkruntime.WithParallelism(1))
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done()) // what the plugins asked for
	factory.WaitForCacheSync(ctx.Done())
	for _, p := range c.nominated {
		waiting.Add(ctx, p)
	}
	out.decide(t, ctx, f, snapshot, c.pod)
	for _, a := range client.Actions() {
		if p, ok := a.(clienttesting.PatchAction); ok {
			out.cleared = append(out.cleared, p.GetName())
		}
	}
	slices.Sort(out.cleared)
	slices.Sort(out.evicted)
	return out
}

// spy notes who would have to go from each node.
type spy struct {
	*defaultpreemption.DefaultPreemption
	out *outcome
}

func (s *spy) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo, possible []*preemption.DomainVictim, budgets []*policyv1.PodDisruptionBudget) ([]*v1.Pod, int, *fwk.Status) {
	pods, violations, status := s.DefaultPreemption.SelectVictimsOnNode(ctx, state, pod, node, possible, budgets)
	if status.IsSuccess() {
		s.out.lock.Lock()
		defer s.out.lock.Unlock()
		s.out.plans[node.Node().Name] = plan{pods, violations}
	}
	return pods, violations, status
}

// decide runs the filters on every node, then PostFilter.
func (out *outcome) decide(t *testing.T, ctx context.Context, f framework.Framework, snapshot *cache.Snapshot, pod *v1.Pod) {
	state := framework.NewCycleState()
	if _, status, _ := f.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		t.Fatalf("PreFilter: %v", status)
	}
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	statuses := framework.NewDefaultNodeToStatus()
	for _, n := range nodes {
		status := f.RunFilterPluginsWithNominatedPods(ctx, state, pod, n)
		if status.IsSuccess() {
			out.fits = true
			return
		}
		statuses.Set(n.Node().Name, status)
	}
	result, status := f.RunPostFilterPlugins(ctx, state, pod, statuses)
	fit := framework.FitError{Pod: pod, NumAllNodes: len(nodes), Diagnosis: framework.Diagnosis{NodeToStatus: statuses, PostFilterMsg: status.Message()}}
	out.message = fit.Error()
	out.nominated = pod.Status.NominatedNodeName
	if result != nil && result.NominatingInfo != nil && result.Mode() == fwk.ModeOverride {
		out.nominated = result.NominatedNodeName
	}
}

// profileOf is the profile of the configuration that both sides run.
func profileOf(t *testing.T) *config.KubeSchedulerProfile {
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(configuration), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &obj.(*config.KubeSchedulerConfiguration).Profiles[0]
}
