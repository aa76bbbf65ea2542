package conform

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"github.com/berth-scheduler/berth/lab/oracle"
	"github.com/berth-scheduler/berth/scheduler/schedulertest"
)

// groupProbe is a plugin that notes what Handle and the CycleState show of pod groups, and
// of the node.
type groupProbe struct {
	handle fwk.Handle
	mu     sync.Mutex
	said   []string
}

func (p *groupProbe) new(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	p.handle = h
	return p, nil
}

func (*groupProbe) Name() string                                 { return "GroupProbe" }
func (*groupProbe) PreFilterExtensions() fwk.PreFilterExtensions { return nil }
func (p *groupProbe) PreFilter(_ context.Context, s fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	p.note("PreFilter", s, pod)
	return nil, nil
}
func (p *groupProbe) Reserve(_ context.Context, s fwk.CycleState, pod *v1.Pod, _ string) *fwk.Status {
	p.note("Reserve", s, pod)
	return nil
}
func (p *groupProbe) Unreserve(_ context.Context, s fwk.CycleState, pod *v1.Pod, _ string) {
	p.note("Unreserve", s, pod)
}
func (p *groupProbe) Permit(_ context.Context, s fwk.CycleState, pod *v1.Pod, _ string) (*fwk.Status, time.Duration) {
	p.note("Permit", s, pod)
	return nil, 0
}

// calls counts the calls in a cycle of a group, in the state that its pods share.
type calls struct{ n int }

func (c *calls) Clone() fwk.StateData { return c }

func (p *groupProbe) note(point string, s fwk.CycleState, pod *v1.Pod) {
	shared := "none"
	if s.IsPodGroupSchedulingCycle() {
		of := s.GetPodGroupSchedulingCycle()
		if _, err := of.Read("calls"); err != nil {
			of.Write("calls", &calls{})
		}
		data, _ := of.Read("calls")
		data.(*calls).n++
		shared = fmt.Sprint(data.(*calls).n)
	}
	group := *pod.Spec.SchedulingGroup.PodGroupName
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, fmt.Sprintf("%s %s on %q, call %s of the cycle: node %s; snapshot %s; now %s", point, pod.Name, pod.Spec.NodeName, shared,
		nodeShown(p.handle.SnapshotSharedLister().NodeInfos()), groupShown(p.handle.SnapshotSharedLister().PodGroupStates(), group), groupShown(p.handle.PodGroupManager().PodGroupStates(), group)))
}

// nodeShown writes the node down.
func nodeShown(l fwk.NodeInfoLister) string {
	n, err := l.Get("n")
	if err != nil {
		return err.Error()
	}
	var pods []string
	for _, p := range n.GetPods() {
		pods = append(pods, p.GetPod().Name+"@"+p.GetPod().Spec.NodeName)
	}
	slices.Sort(pods)
	return fmt.Sprint(pods, n.GetRequested().GetMilliCPU())
}

// groupShown writes a group down. Whether a scheduled pod is assumed or bound by then is a
// matter of time.
func groupShown(l fwk.PodGroupStateLister, group string) string {
	g, err := l.Get("default", group)
	if err != nil {
		return err.Error()
	}
	var scheduled, unscheduled, all []string
	for _, p := range g.ScheduledPods() {
		scheduled = append(scheduled, p.Name+"@"+p.Spec.NodeName)
	}
	for name, p := range g.UnscheduledPods() { // any order: sorted below
		unscheduled = append(unscheduled, name+"@"+p.Spec.NodeName)
	}
	for uid := range g.AllPods() { // any order: sorted below
		all = append(all, string(uid))
	}
	for _, list := range [][]string{scheduled, unscheduled, all} {
		slices.Sort(list)
	}
	return fmt.Sprint(all, g.AllPodsCount(), " scheduled ", scheduled, g.ScheduledPodsCount(), len(g.AssumedPods())+len(g.AssignedPods()), " unscheduled ", unscheduled)
}

func (p *groupProbe) notes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.said)
}

// groupOf is a gang that needs all its three pods, the more important first.
func groupOf(name, cpu string) []runtime.Object {
	objects := []runtime.Object{}
	for i := range int32(3) {
		p, priority := schedulertest.Pod(fmt.Sprintf("%s-%d", name, i)), 3-i
		p.Spec.Priority, p.Spec.SchedulingGroup = &priority, &v1.PodSchedulingGroup{PodGroupName: &name}
		p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse(cpu)
		objects = append(objects, p)
	}
	return append(objects, &schedulingv1alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
		Spec: schedulingv1alpha2.PodGroupSpec{SchedulingPolicy: schedulingv1alpha2.PodGroupSchedulingPolicy{Gang: &schedulingv1alpha2.GangSchedulingPolicy{MinCount: 3}}}})
}

// A plugin sees the same of pod groups and of their node in Berth as in kube-scheduler, call by call: while a
// group is tried that fits, while its pods are assumed for good, and while one is tried that
// does not fit.
func TestPodGroupsOfHandle(t *testing.T) {
	silence()
	want, got := &groupProbe{}, &groupProbe{}
	berth := schedulertest.New(t, schedulertest.WithPodGroups(), schedulertest.WithPlugin("GroupProbe", got.new))
	kube := startKube(t, want)
	for _, objects := range [][]runtime.Object{append([]runtime.Object{schedulertest.Node("n")}, groupOf("fits", "1")...), groupOf("large", "500m")} {
		berth.Add(objects...)
		for _, o := range objects {
			if err := kube.Tracker().Add(o); err != nil {
				t.Fatal(err)
			}
		}
		if len(objects) == 5 { // the node and the group that fits
			for i := range 3 {
				name := fmt.Sprintf("fits-%d", i)
				berth.NodeOf(name)
				berth.Until("kube-scheduler binds "+name, func() bool {
					p, err := kube.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
					return err == nil && p.Spec.NodeName != ""
				})
			}
		}
	}
	var said []string // until the first cycle of the last group is undone
	berth.Until("Berth tries the group that does not fit", func() bool {
		all := got.notes()
		end := slices.IndexFunc(all, func(note string) bool { return strings.HasPrefix(note, "Unreserve large-0") })
		said = all[:end+1]
		return end >= 0
	})
	berth.Until("kube-scheduler tries the group that does not fit", func() bool { return len(want.notes()) >= len(said) })
	if w := want.notes()[:len(said)]; !slices.Equal(said, w) {
		t.Errorf("Berth:\n%s\nkube-scheduler:\n%s", strings.Join(said, "\n"), strings.Join(w, "\n"))
	}
	for _, ask := range []func(fwk.Handle) error{
		func(h fwk.Handle) error {
			_, err := h.PodGroupManager().PodGroupStates().Get("default", "none")
			return err
		},
		func(h fwk.Handle) error {
			_, err := h.SharedDRAManager().PodGroups().Get("default", "fits")
			return err
		},
	} {
		if w, g := ask(want.handle), ask(got.handle); w == nil || g == nil || w.Error() != g.Error() {
			t.Errorf("kube-scheduler says %v, Berth %v", w, g)
		}
	}
	for _, h := range []fwk.Handle{want.handle, got.handle} {
		berth.Until("all pods are shown as bound", func() bool {
			g, err := h.PodGroupManager().PodGroupStates().Get("default", "fits")
			return err == nil && len(g.AssignedPods()) == 3 && len(g.AssumedPods()) == 0
		})
	}
}

// startKube runs kube-scheduler with the plugin over objects in memory, until the test ends.
func startKube(t *testing.T, probe *groupProbe) *fake.Clientset {
	t.Helper()
	t.Cleanup(oracle.Under(map[string]bool{"GenericWorkload": true, "GangScheduling": true}))
	client := fake.NewClientset()
	client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		b, ok := a.(clienttesting.CreateAction).GetObject().(*v1.Binding)
		if !ok {
			return false, nil, nil
		}
		pods := v1.SchemeGroupVersion.WithResource("pods")
		o, err := client.Tracker().Get(pods, b.Namespace, b.Name) // the client waits for this reactor
		if err != nil {
			return true, nil, err
		}
		p := o.DeepCopyObject().(*v1.Pod)
		p.Spec.NodeName = b.Target.Name
		return true, b, client.Tracker().Update(pods, p, b.Namespace)
	})
	var versioned configv1.KubeSchedulerConfiguration
	versioned.Profiles = []configv1.KubeSchedulerProfile{{Plugins: &configv1.Plugins{MultiPoint: configv1.PluginSet{Enabled: []configv1.Plugin{{Name: "GroupProbe"}}}}}}
	scheme.Scheme.Default(&versioned)
	cfg := &config.KubeSchedulerConfiguration{}
	if err := scheme.Scheme.Convert(&versioned, cfg, nil); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactory(client, 0)
	s, err := scheduler.New(ctx, client, factory, nil, func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithProfiles(cfg.Profiles...), scheduler.WithFrameworkOutOfTreeRegistry(map[string]func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error){"GroupProbe": probe.new}))
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := s.WaitForHandlersSync(ctx); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); s.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended; factory.Shutdown() })
	return client
}
