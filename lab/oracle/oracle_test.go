package oracle

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/sim/generate"
)

func node(name, cpu string, taints ...v1.Taint) *v1.Node {
	l := v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("8Gi"),
		v1.ResourcePods: resource.MustParse("110")}
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}, Spec: v1.NodeSpec{Taints: taints},
		Status: v1.NodeStatus{Allocatable: l, Capacity: l}}
}

func pod(name, cpu string) *v1.Pod {
	policy := v1.PreemptLowerPriority
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
		Spec: v1.PodSpec{SchedulerName: "default-scheduler", PreemptionPolicy: &policy, Priority: new(int32),
			Containers: []v1.Container{{Name: "c",
				Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}}}}}}
}

// The record has the best nodes, and for each other node the plugin, the code
// and the reasons.
func TestDecide(t *testing.T) {
	taint := v1.Taint{Key: "team", Effect: v1.TaintEffectNoSchedule}
	s, err := New(generate.World{Nodes: []*v1.Node{node("a", "2"), node("b", "2"), node("c", "4", taint), node("d", "1")}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()

	rec := s.Decide(pod("fits", "1500m"))
	if rec.Result != Scheduled || !slices.Equal(rec.Best, []string{"a", "b"}) {
		t.Fatalf("want a tie of a and b, got %+v", rec)
	}
	if c := rec.Nodes[2]; c.Plugin != "TaintToleration" || c.Code != "UnschedulableAndUnresolvable" {
		t.Errorf("node c: %+v", c)
	}
	if err := s.Assume(pod("fits", "1500m"), "a"); err != nil {
		t.Fatal(err)
	}
	if rec := s.Decide(pod("next", "1500m")); !slices.Equal(rec.Best, []string{"b"}) {
		t.Errorf("with a taken only b is left, got %v", rec.Best)
	}

	rec = s.Decide(pod("big", "3"))
	want := "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 Insufficient cpu. " +
		"preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
	if rec.Result != Unschedulable || rec.Message != want {
		t.Errorf("%s: %q\nwant %q", rec.Result, rec.Message, want)
	}
	if !slices.Equal(rec.Plugins, []string{"NodeResourcesFit", "TaintToleration"}) {
		t.Errorf("rejected by %v", rec.Plugins)
	}
}

// A change requeues the pods that it may help, and no gated pod.
func TestApplyRequeues(t *testing.T) {
	s, err := New(generate.World{Nodes: []*v1.Node{node("a", "2")}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	gated := pod("gated", "1")
	gated.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "g"}}
	waiting := []Rejected{
		{Pod: pod("big", "3"), Plugins: []string{"NodeResourcesFit"}},
		{Pod: pod("bigger", "5"), Plugins: []string{"NodeResourcesFit"}},
		{Pod: gated, Plugins: []string{"SchedulingGates"}, Gated: true},
	}
	grown := node("a", "4")
	opened := pod("gated", "1")
	for _, tt := range []struct {
		change generate.Change
		want   []bool
	}{
		{generate.Change{Verb: generate.Update, Node: grown}, []bool{true, false, false}},
		{generate.Change{Verb: generate.Add, Node: node("z", "8")}, []bool{true, true, false}},
		{generate.Change{Verb: generate.Update, Pod: opened}, []bool{false, false, true}},
		{generate.Change{Verb: generate.Delete, Node: grown}, []bool{false, false, false}},
	} {
		requeued, err := s.Apply(tt.change, waiting)
		if err != nil || !slices.Equal(requeued, tt.want) {
			t.Errorf("%s requeues %v, want %v (%v)", tt.change, requeued, tt.want, err)
		}
	}
}

// Pods leave the queue by priority and then by arrival, and a gated pod does
// not.
func TestOrder(t *testing.T) {
	s, err := New(generate.World{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	first, second, urgent, gated := pod("first", "1"), pod("second", "1"), pod("urgent", "1"), pod("gated", "1")
	urgent.Spec.Priority = new(int32)
	*urgent.Spec.Priority = 5
	gated.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "g"}}
	for range 2 { // the queue is empty again in between
		order, err := s.Order([]*v1.Pod{first, gated, second, urgent})
		if err != nil || len(order) != 3 || order[0].Name != "urgent" || order[1].Name != "first" || order[2].Name != "second" {
			t.Errorf("got %v, %v", order, err)
		}
	}
}

// Without a node the message is kube-scheduler's.
func TestNoNodes(t *testing.T) {
	s, err := New(generate.World{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if rec := s.Decide(pod("p", "1")); rec.Message != "no nodes available to schedule pods" {
		t.Errorf("got %+v", rec)
	}
}

// A configuration that cannot be read is an error.
func TestBadConfiguration(t *testing.T) {
	if _, err := New(generate.World{Config: "nonsense: 1"}); err == nil {
		t.Error("no error")
	}
}

// A decision takes the node's room from the next pod.
func TestDefaultScheduler(t *testing.T) {
	r, err := NewDefaultScheduler([]*v1.Node{node("a", "2"), node("b", "1")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	if n, err := r.Decide(pod("p", "1500m")); err != nil || n != "a" {
		t.Errorf("%q, %v", n, err)
	}
	if n, err := r.Decide(pod("q", "1500m")); err == nil {
		t.Errorf("the room on a is taken, yet got %q", n)
	}
}

// Requeues that kube-scheduler misses, found by comparing worlds and from outside: if
// one of these ever fails, a line of docs/deviations.md is out of date.
func TestRequeuesThatKubeSchedulerMisses(t *testing.T) {
	profile := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- pluginConfig:\n"
	small := []*v1.Node{node("a", "2")}
	t.Run("a node comes to match addedAffinity", func(t *testing.T) {
		added := profile + "  - name: NodeAffinity\n    args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " +
			"{nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: Exists}]}]}}}\n"
		changed := node("a", "2")
		changed.Labels = map[string]string{"pool": "x"}
		misses(t, generate.World{Config: added, Nodes: small}, pod("p", "1"), generate.Change{Verb: generate.Update, Node: changed})
	})
	t.Run("a node comes for a pod with an ignored resource", func(t *testing.T) {
		ignoring := profile + "  - name: NodeResourcesFit\n    args: {ignoredResources: [example.com/license]}\n"
		p := pod("p", "3")
		p.Spec.Containers[0].Resources.Requests["example.com/license"] = resource.MustParse("1")
		misses(t, generate.World{Config: ignoring, Nodes: small}, p, generate.Change{Verb: generate.Add, Node: node("z", "8")})
	})
	t.Run("R1: a namespace's labels change", func(t *testing.T) {
		w := generate.World{Nodes: small, Namespaces: []*v1.Namespace{team("other", "")}, Bound: []*v1.Pod{partner("other", "a")}}
		misses(t, w, wanting(pod("p", "1"), "partner"), generate.Change{Verb: generate.Update, Namespace: team("other", "x")})
	})
	t.Run("R2: a partner goes from a namespace that is selected", func(t *testing.T) {
		w := generate.World{Nodes: small, Namespaces: []*v1.Namespace{team("other", "x")}, Bound: []*v1.Pod{partner("other", "a")}}
		p := wanting(pod("p", "1"), "partner")
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution}}
		misses(t, w, p, generate.Change{Verb: generate.Delete, Pod: partner("other", "a")})
	})
	t.Run("R3: the last of the group goes", func(t *testing.T) {
		w := generate.World{Nodes: []*v1.Node{node("a", "2", v1.Taint{Key: "kept", Effect: v1.TaintEffectNoSchedule}), node("b", "2")},
			Namespaces: []*v1.Namespace{team("default", "x")}, Bound: []*v1.Pod{partner("default", "a")}}
		p := wanting(pod("p", "1"), "partner")
		p.Labels = map[string]string{"app": "partner"}
		misses(t, w, p, generate.Change{Verb: generate.Delete, Pod: partner("default", "a")})
	})
}

func team(namespace, name string) *v1.Namespace {
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"team": name}}}
}

// partner is a pod on the node that others may want to be with.
func partner(namespace, node string) *v1.Pod {
	p := pod("partner", "100m")
	p.Namespace, p.Labels, p.Spec.NodeName = namespace, map[string]string{"app": "partner"}, node
	return p
}

// wanting has the pod want to be on the node of a pod of the app, in a
// namespace of team x.
func wanting(p *v1.Pod, app string) *v1.Pod {
	p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
		TopologyKey:       v1.LabelHostname,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}},
	}}}}
	return p
}

// misses has a pod rejected in a world, and then fit after the change, which
// does not requeue it.
func misses(t *testing.T, w generate.World, p *v1.Pod, c generate.Change) {
	t.Helper()
	s, err := New(w)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	before := s.Decide(p)
	requeued, err := s.Apply(c, []Rejected{{Pod: p, Plugins: before.Plugins}})
	if err != nil {
		t.Fatal(err)
	}
	if after := s.Decide(p); before.Result != Unschedulable || after.Result != Scheduled || requeued[0] {
		t.Errorf("%s, then %s; requeued: %v", before.Result, after.Result, requeued[0])
	}
}
