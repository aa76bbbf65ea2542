package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/why"
	"github.com/berth-scheduler/berth/sim"
)

// clusterOf is the cluster of the nodes and pods, with the pods as they were written.
func clusterOf(t testing.TB, nodes []*v1.Node, pods ...*v1.Pod) *why.Cluster {
	t.Helper()
	set := manifest.NewSet()
	set.KeepWritten = true
	in := sim.Input{}
	for _, n := range nodes {
		if err := set.Add(n, "v1/Node", "the test"); err != nil {
			t.Fatal(err)
		}
		in.Nodes = append(in.Nodes, decode.Node(n))
	}
	for _, p := range pods {
		if err := set.Add(p, "v1/Pod", "the test"); err != nil {
			t.Fatal(err)
		}
	}
	if err := set.Resolve(); err != nil {
		t.Fatal(err)
	}
	for _, p := range set.Pods {
		in.Pods = append(in.Pods, decode.Pod(p))
	}
	var err error
	if in.Machine, err = sim.Options(config.Default()); err != nil {
		t.Fatal(err)
	}
	w, err := sim.Load(in)
	if err != nil {
		t.Fatal(err)
	}
	return &why.Cluster{Machine: w.Machine, Set: set}
}

func plainNode(name string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourcePods: resource.MustParse("110")}}}
}

func plainPod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}
}

// manyKeys is a pod whose node selector has many keys.
func manyKeys(keys int) *v1.Pod {
	p := plainPod("p")
	p.Spec.NodeSelector = map[string]string{}
	for i := range keys {
		p.Spec.NodeSelector[fmt.Sprintf("example.com/key-%d", i)] = "v"
	}
	return p
}

func required(terms ...v1.NodeSelectorTerm) *v1.Affinity {
	return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: terms}}}
}

// A pod as large as the API takes it, and nodes that are as bad, have an answer. What is
// in the way in more places than a fix may have parts is dropped at once.
func TestWhyOfLargeObjects(t *testing.T) {
	for name, test := range map[string]struct {
		change func(p, runs *v1.Pod, n *v1.Node)
		fix    string // in the summary of one of the fixes
	}{
		"node selector": {func(p, _ *v1.Pod, _ *v1.Node) { p.Spec = manyKeys(2000).Spec }, "drop the node selector"},
		"expressions": {func(p, _ *v1.Pod, _ *v1.Node) {
			term := v1.NodeSelectorTerm{}
			for i := range 2000 {
				term.MatchExpressions = append(term.MatchExpressions, v1.NodeSelectorRequirement{Key: fmt.Sprint("k", i), Operator: v1.NodeSelectorOpExists})
			}
			p.Spec.Affinity = required(term)
		}, "drop the required node affinity"},
		"terms": {func(p, _ *v1.Pod, _ *v1.Node) {
			var terms []v1.NodeSelectorTerm
			for i := range 2000 {
				terms = append(terms, v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
					{Key: fmt.Sprint("k", i), Operator: v1.NodeSelectorOpExists}, {Key: v1.LabelHostname, Operator: v1.NodeSelectorOpExists}}})
			}
			p.Spec.Affinity = required(terms...)
		}, "from the required node affinity"},
		"anti-affinity": {func(p, runs *v1.Pod, _ *v1.Node) {
			runs.Labels = map[string]string{"app": "x"}
			p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{}}
			for i := range 5000 {
				p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
					v1.PodAffinityTerm{TopologyKey: v1.LabelHostname, Namespaces: []string{"default", fmt.Sprint("n", i)}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}})
			}
		}, "drop the required pod anti-affinity"},
		"spread": {func(p, _ *v1.Pod, _ *v1.Node) {
			for i := range 1000 {
				p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints,
					v1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: fmt.Sprint("t", i), WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{}})
			}
		}, "drop all topology spread constraints"},
		"taints": {func(_, _ *v1.Pod, n *v1.Node) {
			for i := range 2000 {
				n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: fmt.Sprint("t", i), Effect: v1.TaintEffectNoSchedule})
			}
		}, "tolerate every taint"},
		"host ports": {func(p, runs *v1.Pod, _ *v1.Node) {
			for i := range int32(10_000) {
				p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, v1.ContainerPort{ContainerPort: i + 1, HostPort: i + 1})
			}
			runs.Spec.Containers[0].Ports = p.Spec.Containers[0].Ports
		}, "add a node like n"},
		"gates": {func(p, _ *v1.Pod, _ *v1.Node) {
			for i := range 3000 {
				p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, v1.PodSchedulingGate{Name: fmt.Sprint("example.com/g", i)})
			}
		}, "and 2990 more"},
		"claims": {func(p, _ *v1.Pod, _ *v1.Node) {
			for i := range 1000 {
				p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: fmt.Sprint("v", i), VolumeSource: v1.VolumeSource{
					PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprint("c", i)}}})
			}
		}, ""},
		"containers": {func(p, _ *v1.Pod, _ *v1.Node) {
			p.Spec.Containers = nil
			for i := range 1000 {
				p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: fmt.Sprint("c", i), Resources: v1.ResourceRequirements{
					Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}}})
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, runs, n := plainPod("p"), plainPod("runs"), plainNode("n")
			runs.Spec.NodeName = "n"
			test.change(p, runs, n)
			a := clusterOf(t, []*v1.Node{n}, runs, p).Why(t.Context(), p)
			if a.Cut != "" {
				t.Errorf("the answer is cut: %s", a.Cut)
			}
			if text, _ := json.Marshal(a.Fixes); !strings.Contains(string(text), test.fix) {
				t.Errorf("no fix says %q: %.2000s", test.fix, text)
			}
		})
	}
}

// countdown is a context whose time is up when it was asked that often.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// An answer whose time is up says so, wherever that is. It has only fixes that the whole
// answer has, or that hold in part of it, and the cluster is as it was.
func TestWhyIsCut(t *testing.T) {
	p := manyKeys(3)
	c := clusterOf(t, []*v1.Node{plainNode("n"), plainNode("m")}, p)
	whole := c.Why(t.Context(), p)
	if whole.Cut != "" || len(whole.Fixes) == 0 {
		t.Fatalf("the whole answer: %+v", whole)
	}
	known := map[string]bool{}
	for _, f := range whole.Fixes {
		known[f.Summary] = true
	}
	for asked := 0; ; asked++ {
		ctx := &countdown{t.Context(), asked}
		a := c.Why(ctx, p)
		if ctx.left >= 0 {
			if asked < 5 {
				t.Errorf("the context was asked %d times only", asked)
			}
			break
		}
		var text strings.Builder
		if err := a.Text(&text, false); err != nil {
			t.Fatal(err)
		}
		if a.Cut == "" || !strings.Contains(text.String(), a.Cut) {
			t.Fatalf("cut at %d, and it is not said: %s", asked, text.String())
		}
		for _, f := range a.Fixes {
			if !known[f.Summary] {
				t.Errorf("cut at %d: %s is no fix of the whole answer", asked, f.Summary)
			}
		}
	}
	before, _ := json.Marshal(whole)
	after, _ := json.Marshal(c.Why(t.Context(), p))
	if string(before) != string(after) {
		t.Errorf("after cut searches the answer differs: %s, was %s", after, before)
	}
}

// A list whose time is up has what was looked at, and says how much that is.
func TestWhyAllIsCut(t *testing.T) {
	pods := []*v1.Pod{manyKeys(1), manyKeys(2), manyKeys(3)}
	for i, p := range pods {
		p.Name = fmt.Sprint("p", i)
	}
	c := clusterOf(t, []*v1.Node{plainNode("n")}, pods...)
	ctx, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	r, err := c.All(ctx, why.Scope{})
	if err != nil || r.Pods != 3 || r.Cut != "the time was up when 0 of 3 pending pods had been looked at" {
		t.Errorf("got %+v, %v", r, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.All(gone, why.Scope{}); err == nil {
		t.Error("a question that was withdrawn has an answer")
	}
}

// The cost of an answer against the size of the pod.
func BenchmarkWhyOfManyKeys(b *testing.B) {
	for _, keys := range []int{100, 200, 400, 2000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			p := manyKeys(keys)
			c := clusterOf(b, []*v1.Node{plainNode("n")}, p)
			for b.Loop() {
				c.Why(b.Context(), p)
			}
		})
	}
}

// Of terminating pods the first are listed, each with what is known of it. Once the time is up
// none are looked for, and the answer says so.
func TestLeavingIsBounded(t *testing.T) {
	now := metav1.Unix(1, 0)
	var pods []*v1.Pod
	for i := range 60 {
		p := plainPod(fmt.Sprintf("old-%02d", i))
		p.Spec.NodeName, p.DeletionTimestamp, p.Finalizers = "n", &now, []string{"example.com/f"}
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("60m")}
		pods = append(pods, p)
	}
	waits := plainPod("waits")
	waits.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("4")}
	c := clusterOf(t, []*v1.Node{plainNode("n")}, append(pods, waits)...)
	a := c.Why(t.Context(), waits)
	if n := len(a.Leaving); n != 50 || a.Leaving[0].Pod != "default/old-00" || a.Leaving[49].Pod != "default/old-49" || a.Leaving[49].Since == nil || len(a.Leaving[49].Finalizers) != 1 || len(a.Leaving[49].Holds) != 1 {
		t.Errorf("%d are listed: %+v", n, a.Leaving)
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if a = c.Why(late, waits); len(a.Leaving) > 0 || !strings.Contains(a.Cut, "no fix or terminating pod was looked for") {
		t.Errorf("when the time is up %d are listed, %q", len(a.Leaving), a.Cut)
	}
}
