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
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.NodeSpec{Taints: taints},
		Status: v1.NodeStatus{Allocatable: l, Capacity: l}}
}

func pod(name, cpu string) *v1.Pod {
	policy := v1.PreemptLowerPriority
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
		Spec: v1.PodSpec{SchedulerName: "default-scheduler", PreemptionPolicy: &policy, Priority: new(int32),
			Containers: []v1.Container{{Name: "c",
				Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}}}}}}
}

func TestDecide(t *testing.T) {
	taint := v1.Taint{Key: "team", Effect: v1.TaintEffectNoSchedule}
	s, err := New("", []*v1.Node{node("a", "2"), node("b", "2"), node("c", "4", taint), node("d", "1")}, nil)
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
		"no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
	if rec.Result != Unschedulable || rec.Message != want {
		t.Errorf("%s: %q\nwant %q", rec.Result, rec.Message, want)
	}
	if !slices.Equal(rec.Plugins, []string{"NodeResourcesFit", "TaintToleration"}) {
		t.Errorf("rejected by %v", rec.Plugins)
	}
}

func TestApplyWakes(t *testing.T) {
	s, err := New("", []*v1.Node{node("a", "2")}, nil)
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
		woken, err := s.Apply(tt.change, waiting)
		if err != nil || !slices.Equal(woken, tt.want) {
			t.Errorf("%s wakes %v, want %v (%v)", tt.change, woken, tt.want, err)
		}
	}
}

func TestNoNodes(t *testing.T) {
	s, err := New("", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if rec := s.Decide(pod("p", "1")); rec.Message != "no nodes available to schedule pods" {
		t.Errorf("got %+v", rec)
	}
}

func TestBadConfiguration(t *testing.T) {
	if _, err := New("nonsense: 1", nil, nil); err == nil {
		t.Error("no error")
	}
}

func TestRival(t *testing.T) {
	r, err := NewRival([]*v1.Node{node("a", "2"), node("b", "1")}, nil)
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
