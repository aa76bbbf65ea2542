package sim_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim"
)

// A pod that names its node and has pod affinity, as a DaemonSet's may, is rejected where
// an extender refuses the node.
func TestExtenderRefusesThePinnedNode(t *testing.T) {
	options, err := sim.Options(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	options.Extenders = []machine.Extender{{Name: "e", Filter: true, Limit: 1, Timeout: time.Second}}
	m, now := machine.New(options), time.Unix(0, 0)
	for _, name := range []string{"a", "b"} {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": "z"}}}
		n.Status.Allocatable = v1.ResourceList{v1.ResourcePods: resource.MustParse("110"), v1.ResourceCPU: resource.MustParse("4")}
		m.Step(now, machine.NodeSet{Node: decode.Node(n)})
	}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "d", UID: "p", Labels: map[string]string{"app": "x"}}}
	p.Spec.SchedulerName = "default-scheduler"
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "i"}}
	p.Spec.Affinity = &v1.Affinity{
		NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{"a"}}}}}}},
		PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}}},
	}
	pod := decode.Pod(p)
	pod.API = p // extenders are told of it
	m.Step(now, machine.PodSet{Pod: pod})
	var ended *decision.Decision
	effects := m.Step(now, machine.ScheduleOne{})
	for len(effects) > 0 {
		e := effects[0]
		effects = effects[1:]
		switch e := e.(type) {
		case machine.CallExtender:
			effects = append(effects, m.Step(now, machine.ExtenderReply{UID: "p", Call: e.Call, Passed: []string{},
				Failed: map[string]string{"a": "no"}})...)
		case machine.AttemptDone:
			ended = e.Decision
		}
	}
	if ended == nil || ended.Result != decision.ResultUnschedulable || ended.Err != nil {
		t.Errorf("ended as %+v", ended)
	}
}

// A pod that an extender refuses with a reason that varies is tried once, though its
// condition changes each time, and once more for each real change. The condition is what the
// watch shows next.
func TestExtenderWithAVaryingReason(t *testing.T) {
	options, err := sim.Options(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	options.Extenders = []machine.Extender{{Name: "e", Filter: true, Limit: 1, Timeout: time.Second}}
	m, now, attempts := machine.New(options), time.Unix(0, 0), 0
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourcePods: resource.MustParse("110")}
	m.Step(now, machine.NodeSet{Node: decode.Node(n)})
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "d", UID: "p", ResourceVersion: "1"}}
	p.Spec.SchedulerName = "default-scheduler"
	show := func(change func(*v1.Pod)) []machine.Effect {
		p = p.DeepCopy()
		change(p)
		p.ResourceVersion += "1"
		pod := decode.Pod(p)
		pod.API = p // extenders are told of it
		return m.Step(now, machine.PodSet{Pod: pod})
	}
	settle := func(effects []machine.Effect) int {
		for range 100 {
			for len(effects) > 0 {
				e := effects[0]
				effects = effects[1:]
				switch e := e.(type) {
				case machine.CallExtender:
					attempts++
					effects = append(effects, m.Step(now, machine.ExtenderReply{UID: "p", Call: e.Call, Passed: []string{},
						Failed: map[string]string{"a": fmt.Sprintf("no, for the %dth time", attempts)}})...)
				case machine.PatchStatus:
					effects = append(effects, show(func(p *v1.Pod) {
						p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: e.Condition.Status, Reason: e.Condition.Reason, Message: e.Condition.Message}}
					})...)
				}
			}
			effects = m.Step(now, machine.ScheduleOne{})
		}
		return attempts
	}
	if n := settle(show(func(*v1.Pod) {})); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
	if n := settle(show(func(p *v1.Pod) { p.Annotations = map[string]string{"a": "b"} })); n != 2 {
		t.Errorf("%d attempts after an annotation, want 2", n)
	}
}
