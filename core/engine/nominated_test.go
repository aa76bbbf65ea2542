package engine_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/decode"
)

// A selector that selects all counts a pod only while that is added for a trial, as a nominated
// pod is. It counts so, too, where all pods are counted anew because a node has gone.
func TestNominatedPodCountsAfterANodeHasGone(t *testing.T) {
	tb := table.New()
	for name, zone := range map[string]string{"n": "a", "m": "b", "gone": "c"} { // any order: one row each
		tb.SetNode(decode.Node(&v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelTopologyZone: zone}},
			Status:     v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourcePods: resource.MustParse("10")}},
		}))
	}
	spread := decode.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", UID: "p"}, Spec: v1.PodSpec{
		TopologySpreadConstraints: []v1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{},
		}},
	}})
	waiting := &nominations{byNode: map[string][]*object.Pod{}}
	alone := &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
		TopologyKey: "rack", LabelSelector: &metav1.LabelSelector{},
	}}}} // what it forbids only a try tells: the second profile asks for that before it asks for spread
	waiting.add(decode.Pod(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "q", UID: "q"}, Spec: v1.PodSpec{Affinity: alone}}), "m")
	p := profiles(t, "")[1]
	kept, plain := engine.New(tb, 1, 1), engine.NewPlain(tb, 1)
	kept.Decide(engine.For(p, spread), waiting)
	tb.RemoveNode("gone")
	for name, e := range map[string]*engine.Engine{"kept": kept, "plain": plain} { // any order: each by itself
		if o := e.Decide(engine.For(p, spread), waiting); o.Feasible != 1 || tb.Name(o.Row) != "n" {
			t.Errorf("%s: %d feasible, row %d", name, o.Feasible, o.Row)
		}
	}
}
