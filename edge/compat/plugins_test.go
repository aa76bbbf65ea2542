package compat_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

// named is the name of a plugin; a test embeds it in a type with the points that it
// needs.
type named string

func (n named) Name() string { return string(n) }

// with returns a factory of the plugin that f makes.
func with(f func(h fwk.Handle) fwk.Plugin) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) { return f(h), nil }
}

type filter struct {
	named
	filter func(state fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) *fwk.Status
}

func (f *filter) Filter(_ context.Context, state fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
	return f.filter(state, p, n)
}

func filtering(f func(p *v1.Pod, n fwk.NodeInfo) *fwk.Status) Option {
	return WithPlugin("F", with(func(fwk.Handle) fwk.Plugin {
		return &filter{"F", func(_ fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) *fwk.Status { return f(p, n) }}
	}))
}

// A hosted filter keeps pods off the nodes that it rejects, and its reasons are in the
// record.
func TestFilterRejectsNodes(t *testing.T) {
	c := New(t, filtering(func(p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
		if p.Labels["team"] == n.Node().Labels["team"] {
			return nil
		}
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "another team's node")
	}))
	c.Add(Node("a", "team", "red"), Node("b", "team", "blue"), Node("c"))
	c.Add(Pod("p", "team", "blue"), Pod("q", "team", "green"))
	if node := c.NodeOf("p"); node != "b" {
		t.Errorf("got %s", node)
	}
	d := c.Decision("q", 0)
	if d.Result != decision.ResultUnschedulable || len(d.Tallies) != 1 || d.Tallies[0].Nodes != 3 || d.Tallies[0].Plugin != "F" ||
		d.Tallies[0].Code != decision.UnschedulableAndUnresolvable || fmt.Sprint(d.Tallies[0].Reasons) != "[another team's node]" {
		t.Errorf("got %+v", d)
	}
}

// Pods on nodes, assumed ones too, are in the NodeInfo with what they request.
func TestNodeInfoHasThePodsOnTheNode(t *testing.T) {
	c := New(t, filtering(func(p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
		if n.GetRequested().GetMilliCPU() != int64(100*len(n.GetPods())) {
			return fwk.AsStatus(fmt.Errorf("%d pods request %d", len(n.GetPods()), n.GetRequested().GetMilliCPU()))
		}
		for _, on := range n.GetPods() {
			if on.GetPod().Spec.NodeName != n.Node().Name {
				return fwk.AsStatus(fmt.Errorf("pod %s is on %q", on.GetPod().Name, on.GetPod().Spec.NodeName))
			}
		}
		if len(n.GetPods()) >= 2 {
			return fwk.NewStatus(fwk.Unschedulable, "two are enough")
		}
		return nil
	}))
	c.Add(Node("a"), Node("b"))
	count := map[string]int{}
	for i := range 4 {
		c.Add(Pod(fmt.Sprint("p", i)))
		count[c.NodeOf(fmt.Sprint("p", i))]++
	}
	if count["a"] != 2 || count["b"] != 2 {
		t.Errorf("got %v", count)
	}
	c.Add(Pod("last"))
	if d := c.Decision("last", 0); d.Result != decision.ResultUnschedulable || fmt.Sprint(d.Tallies[0].Reasons) != "[two are enough]" {
		t.Errorf("got %+v", d)
	}
}

type scorer struct {
	named
	score     func(n fwk.NodeInfo) int64
	normalize func(fwk.NodeScoreList)
}

func (s *scorer) Score(_ context.Context, _ fwk.CycleState, _ *v1.Pod, n fwk.NodeInfo) (int64, *fwk.Status) {
	return s.score(n), nil
}

func (s *scorer) ScoreExtensions() fwk.ScoreExtensions {
	if s.normalize == nil {
		return nil
	}
	return s
}

func (s *scorer) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, list fwk.NodeScoreList) *fwk.Status {
	s.normalize(list)
	return nil
}

func scoring(weight int32, s scorer) []Option {
	s.named = "S"
	return []Option{WithPlugin("S", with(func(fwk.Handle) fwk.Plugin { return &s })), WithConfig(func(c *configv1.KubeSchedulerConfiguration) {
		c.Profiles[0].Plugins.MultiPoint.Enabled[0].Weight = &weight
	})}
}

// A plugin sees what the API shows of pods on nodes, annotations included, which no plugin
// of Berth's own reads.
func TestNodeInfoHasUpdatesOfPods(t *testing.T) {
	c := New(t, filtering(func(p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
		if p.Name == "nowhere" {
			return fwk.NewStatus(fwk.Unschedulable, "no")
		}
		for _, on := range n.GetPods() {
			if on.GetPod().Annotations["busy"] != "" && p.Name == "q" {
				return fwk.NewStatus(fwk.Unschedulable, "busy")
			}
		}
		return nil
	}))
	c.Add(Node("a"), Pod("p"))
	c.NodeOf("p")
	c.Add(Pod("nowhere"))
	c.Failure("nowhere") // it has seen p on the node
	busy := c.Pod("p").DeepCopy()
	busy.Annotations = map[string]string{"busy": "yes"}
	c.Update(busy)
	c.Add(Pod("q"))
	if d := c.Decision("q", 0); d.Result != decision.ResultUnschedulable {
		t.Errorf("got %v", d.Result)
	}
}

// Scores decide, weighted; NormalizeScore sees the feasible nodes and what it writes
// counts.
func TestScoresDecide(t *testing.T) {
	byName := func(n fwk.NodeInfo) int64 { return int64(n.Node().Name[0] - 'a') }
	for _, tc := range []struct {
		name string
		s    scorer
		want string
	}{
		{"without normalising", scorer{score: byName}, "c"},
		{"normalised the other way round", scorer{score: byName, normalize: func(list fwk.NodeScoreList) {
			for i := range list {
				list[i].Score = 100 - 50*list[i].Score
			}
		}}, "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := New(t, scoring(100, tc.s)...)
			c.Add(Node("a"), Node("b"), Node("c"), Pod("p"))
			if node := c.NodeOf("p"); node != tc.want {
				t.Errorf("got %s", node)
			}
		})
	}
}

// Misbehaviour of a plugin is an error of that pod's attempt; others go on.
func TestMisbehaviourIsContained(t *testing.T) {
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	evil := func(p *v1.Pod) bool { return p.Labels["evil"] != "" }
	for _, tc := range []struct {
		name, want string
		option     []Option
	}{
		{"a panic in Filter", `running "F" filter plugin: panicked: boom`, []Option{filtering(func(p *v1.Pod, _ fwk.NodeInfo) *fwk.Status {
			if evil(p) {
				panic("boom")
			}
			return nil
		})}},
		{"an error in Filter", `running "F" filter plugin: no idea`, []Option{filtering(func(p *v1.Pod, _ fwk.NodeInfo) *fwk.Status {
			if evil(p) {
				return fwk.AsStatus(errors.New("no idea"))
			}
			return nil
		})}},
		// The attempt after the first says that it "has not returned from Filter for this pod".
		{"a hang in Filter", "from Filter", []Option{WithTimeout(50 * time.Millisecond), filtering(func(p *v1.Pod, _ fwk.NodeInfo) *fwk.Status {
			if evil(p) {
				<-hang
			}
			return nil
		})}},
		{"a goroutine that ends", "it called runtime.Goexit", []Option{filtering(func(p *v1.Pod, _ fwk.NodeInfo) *fwk.Status {
			if evil(p) {
				(&testing.T{}).Skip() // runtime.Goexit
			}
			return nil
		})}},
		{"a score out of range", `plugin "S" returns an invalid score 101, it should in the range of [0, 100] after normalizing`,
			scoring(1, scorer{score: func(fwk.NodeInfo) int64 { return 101 }})},
		{"a panic in Score", "panicked", scoring(1, scorer{score: func(fwk.NodeInfo) int64 { panic("boom") }})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := New(t, tc.option...)
			c.Add(Node("a"), Node("b"), Pod("evil", "evil", "yes"))
			d := c.Decision("evil", 0)
			if d.Result != decision.ResultError || !strings.Contains(fmt.Sprint(d.Err), tc.want) {
				t.Errorf("got %s: %v", d.Result, d.Err)
			}
			c.Delete(c.Pod("evil"))
			if !strings.HasSuffix(tc.name, "Score") && tc.name != "a score out of range" {
				c.Add(Pod("good"))
				c.NodeOf("good")
			}
		})
	}
}

// What a plugin changes of what it was lent changes nothing that Berth decides on.
func TestLentObjectsAreNotBerths(t *testing.T) {
	c := New(t, filtering(func(p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
		n.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Node().Name}})
		if len(n.GetPods()) > 0 {
			_ = n.RemovePod(klog.Background(), n.GetPods()[0].GetPod())
		}
		p.Spec.NodeSelector = map[string]string{"no": "node"}
		return nil
	}))
	c.Add(Node("a"), Pod("p"))
	c.NodeOf("p")
	c.Add(Pod("q"))
	c.NodeOf("q")
	c.Add(Node("b"), Pod("r"))
	c.NodeOf("r")
}

// quota is a plugin that counts the pods of a team over all nodes. Preemption tells it
// of pods that come and go.
type quota struct {
	named
	limit int
	mu    sync.Mutex
	log   []string
}

type quotaState struct{ used int }

func (s *quotaState) Clone() fwk.StateData { c := *s; return &c }

const quotaKey fwk.StateKey = "quota"

func (q *quota) PreFilter(_ context.Context, state fwk.CycleState, p *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	s := &quotaState{}
	for _, n := range nodes {
		for _, on := range n.GetPods() {
			if on.GetPod().Labels["team"] == p.Labels["team"] {
				s.used++
			}
		}
	}
	state.Write(quotaKey, s)
	return nil, nil
}

func (q *quota) PreFilterExtensions() fwk.PreFilterExtensions { return q }

func (q *quota) change(state fwk.CycleState, p *v1.Pod, other fwk.PodInfo, by int) *fwk.Status {
	v, err := state.Read(quotaKey)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if other.GetPod().Labels["team"] == p.Labels["team"] {
		v.(*quotaState).used += by
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.log = append(q.log, fmt.Sprintf("%+d %s", by, other.GetPod().Name))
	return nil
}

func (q *quota) AddPod(_ context.Context, state fwk.CycleState, p *v1.Pod, added fwk.PodInfo, _ fwk.NodeInfo) *fwk.Status {
	return q.change(state, p, added, 1)
}

func (q *quota) RemovePod(_ context.Context, state fwk.CycleState, p *v1.Pod, removed fwk.PodInfo, _ fwk.NodeInfo) *fwk.Status {
	return q.change(state, p, removed, -1)
}

func (q *quota) Filter(_ context.Context, state fwk.CycleState, p *v1.Pod, n fwk.NodeInfo) *fwk.Status {
	v, err := state.Read(quotaKey)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if v.(*quotaState).used >= q.limit {
		return fwk.NewStatus(fwk.Unschedulable, "the team's quota is used up")
	}
	return nil
}

// Preemption finds victims by a hosted quota: RemovePod and AddPod keep its state up.
func TestQuotaPreempts(t *testing.T) {
	q := &quota{named: "Quota", limit: 2}
	c := New(t, WithPlugin("Quota", with(func(fwk.Handle) fwk.Plugin { return q })))
	c.Add(Node("a"), Pod("x", "team", "red"), Pod("y", "team", "red"), Pod("other", "team", "blue"))
	c.NodeOf("x")
	c.NodeOf("y")
	c.NodeOf("other")
	high := Pod("high", "team", "red")
	priority := int32(1000)
	high.Spec.Priority = &priority
	c.Add(high)
	if node := c.NodeOf("high"); node != "a" {
		t.Errorf("got %s", node)
	}
	if c.Pod("other") == nil {
		t.Error("the pod of another team had to go")
	}
	if (c.Pod("x") == nil) == (c.Pod("y") == nil) {
		t.Errorf("one of x and y has to go: %v", q.log)
	}
}

// narrowing is a PreFilter plugin that names nodes.
type narrowing struct {
	named
	names []string
}

func (n *narrowing) PreFilter(context.Context, fwk.CycleState, *v1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	return &fwk.PreFilterResult{NodeNames: sets.New(n.names...)}, nil
}
func (n *narrowing) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// PreFilter narrows pods to nodes; one that does not exist is none.
func TestPreFilterNamesNodes(t *testing.T) {
	n := &narrowing{"N", []string{"b", "no-such-node"}}
	c := New(t, WithPlugin("N", with(func(fwk.Handle) fwk.Plugin { return n })))
	c.Add(Node("a"), Node("b"), Node("c"), Pod("p"))
	if node := c.NodeOf("p"); node != "b" {
		t.Errorf("got %s", node)
	}
	n.names = nil
	c.Add(Pod("q"))
	if d := c.Decision("q", 0); d.Result != decision.ResultUnschedulable || fmt.Sprint(d.Tallies[0].Reasons) != "[node(s) didn't satisfy plugin N]" {
		t.Errorf("got %+v", d)
	}
	n.names = []string{"no-such-node"}
	c.Add(Pod("r"))
	if d := c.Decision("r", 0); d.Result != decision.ResultUnschedulable || fmt.Sprint(d.Tallies[0].Reasons) != "[node(s) didn't satisfy plugin(s) [N]]" {
		t.Errorf("got %+v", d)
	}
}

type postFilter struct {
	named
	handle fwk.Handle
	seen   chan string
}

// PostFilter evicts the first pod without which the pod fits.
func (f *postFilter) PostFilter(ctx context.Context, state fwk.CycleState, p *v1.Pod, m fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	nodes, err := m.NodesForStatusCode(f.handle.SnapshotSharedLister().NodeInfos(), fwk.Unschedulable)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	for _, n := range nodes {
		select {
		case f.seen <- m.Get(n.Node().Name).Message():
		default:
		}
		without := n.Snapshot()
		victim := without.GetPods()[0]
		if err := without.RemovePod(klog.FromContext(ctx), victim.GetPod()); err != nil {
			return nil, fwk.AsStatus(err)
		}
		if s := f.handle.RunPreFilterExtensionRemovePod(ctx, state, p, victim, without); !s.IsSuccess() {
			return nil, s
		}
		if s := f.handle.RunFilterPluginsWithNominatedPods(ctx, state, p, without); !s.IsSuccess() {
			continue
		}
		if err := f.handle.ClientSet().CoreV1().Pods("default").Delete(ctx, victim.GetPod().Name, metav1.DeleteOptions{}); err != nil {
			return nil, fwk.AsStatus(err)
		}
		return &fwk.PostFilterResult{NominatingInfo: &fwk.NominatingInfo{NominatedNodeName: n.Node().Name, NominatingMode: fwk.ModeOverride}}, nil
	}
	return nil, fwk.NewStatus(fwk.Unschedulable, "nobody can go")
}

// A PostFilter of its own makes room, with what the other filters say.
func TestOwnPostFilter(t *testing.T) {
	f := &postFilter{named: "P", seen: make(chan string, 1)}
	c := New(t, WithPlugin("P", with(func(h fwk.Handle) fwk.Plugin { f.handle = h; return f })),
		WithConfig(func(c *configv1.KubeSchedulerConfiguration) {
			c.Profiles[0].Plugins.PostFilter.Disabled = []configv1.Plugin{{Name: "DefaultPreemption"}}
		}))
	small := Node("a")
	small.Status.Allocatable[v1.ResourceCPU] = Pod("x").Spec.Containers[0].Resources.Requests[v1.ResourceCPU]
	c.Add(small, Pod("x"))
	c.NodeOf("x")
	c.Add(Pod("y"))
	if node := c.NodeOf("y"); node != "a" || c.Pod("x") != nil {
		t.Errorf("got %s", node)
	}
	if got := <-f.seen; got != "Insufficient cpu" {
		t.Errorf("got %q", got)
	}
}

// Plugins that cannot be made are refused by name.
func TestRefusedPlugins(t *testing.T) {
	factory := func(pl fwk.Plugin, err error) Option {
		return WithPlugin("X", func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return pl, err })
	}
	for _, tc := range []struct {
		want   string
		option Option
	}{
		{`initializing plugin "X": bad args`, factory(nil, errors.New("bad args"))},
		{`initializing plugin "X": its factory returned no plugin`, factory(nil, nil)},
		{`initializing plugin "X": its factory returned no plugin`, factory((*filter)(nil), nil)},
		{`initializing plugin "X": its factory panicked: boom`, WithPlugin("X", with(func(fwk.Handle) fwk.Plugin { panic("boom") }))},
		{`does not exist`, WithConfig(func(c *configv1.KubeSchedulerConfiguration) {
			c.Profiles[0].Plugins.Filter.Enabled = []configv1.Plugin{{Name: "Nobody"}}
		})},
	} {
		if _, err := Start(t, tc.option); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("want %s, got %v", tc.want, err)
		}
	}
}

// A lister that a factory kept shows each attempt the cluster of now.
func TestListerMayBeKept(t *testing.T) {
	c := New(t, WithPlugin("F", with(func(h fwk.Handle) fwk.Plugin {
		kept := h.SnapshotSharedLister().NodeInfos()
		return &filter{"F", func(_ fwk.CycleState, _ *v1.Pod, n fwk.NodeInfo) *fwk.Status {
			again, err := kept.Get(n.Node().Name)
			if err != nil {
				return fwk.AsStatus(err)
			}
			if all, err := kept.List(); err != nil || len(all) != 2 || len(again.GetPods()) != len(n.GetPods()) {
				return fwk.AsStatus(fmt.Errorf("%d nodes, %d pods, not %d (%v)", len(all), len(again.GetPods()), len(n.GetPods()), err))
			}
			return nil
		}}
	})))
	c.Add(Node("a"), Node("b"))
	for _, p := range []string{"p", "q", "r"} {
		c.Add(Pod(p))
		if d := c.Decision(p, 0); d.Result != decision.ResultScheduled {
			t.Errorf("got %+v", d)
		}
	}
}

// The required anti-affinity of a pod that is nominated to a node keeps a pod without terms from
// there, also where a hosted filter looks at the node with the nominated pods on it.
func TestNominatedAntiAffinityBesideAHostedFilter(t *testing.T) {
	c := New(t, filtering(func(*v1.Pod, fwk.NodeInfo) *fwk.Status { return nil }))
	c.Add(Node("a", v1.LabelHostname, "a"))
	victim, first := Pod("victim", "app", "low"), Pod("first")
	victim.Spec.NodeName = "a"
	victim.DeletionTimestamp = &metav1.Time{Time: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}
	victim.Finalizers = []string{"example.com/hold"}
	victim.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler}}
	priority := int32(100)
	first.Spec.Priority, first.Status.NominatedNodeName = &priority, "a"
	first.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
		{TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "low"}}}}}}
	c.Add(victim, first)
	if d := c.Decision("first", 0); d.Result != decision.ResultUnschedulable {
		t.Fatalf("first: %+v", d)
	}
	c.Add(Pod("low", "app", "low"), Pod("other"))
	if d := c.Decision("low", 0); d.Result != decision.ResultUnschedulable || len(d.Tallies) != 1 || d.Tallies[0].Plugin != "InterPodAffinity" {
		t.Errorf("low: %+v", d)
	}
	if node := c.NodeOf("other"); node != "a" {
		t.Errorf("other is on %q", node)
	}
}
