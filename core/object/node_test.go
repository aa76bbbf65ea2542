package object

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/resource"
)

// A node whose state changed is alike if nothing changed that plugins read: each
// other field counts, also one that is new.
func TestNodeEqualForScheduling(t *testing.T) {
	node := func() Node {
		return Node{
			Name: "n", Labels: map[string]string{"zone": "a"}, Taints: []v1.Taint{{Key: "k", Value: "v", Effect: v1.TaintEffectNoSchedule}},
			Images: []Image{{Names: []string{"i"}, Bytes: 1}}, Features: []string{"f"},
		}
	}
	read := map[string]any{
		"UID": "another", "Name": "m", "Labels": map[string]string{"zone": "b"}, "Unschedulable": true,
		"Taints": []v1.Taint{{Key: "k", Value: "v", Effect: v1.TaintEffectNoExecute}}, "Allocatable": resource.Vector{MilliCPU: 1},
		"AllowedPods": int64(1), "Images": []Image{{Names: []string{"i"}, Bytes: 2}}, "Features": []string{"g"}, "API": &v1.Node{},
	}
	unread := map[string]any{
		"Annotations": map[string]string{"a": "b"}, "Conditions": []NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}, "Recorded": "r",
		"PreemptionPolicy": &v1.NodePodPreemptionPolicy{DisableResizePreemption: []string{"o"}},
	}
	for i := range reflect.TypeFor[Node]().NumField() {
		name := reflect.TypeFor[Node]().Field(i).Name
		value, counts := read[name]
		if !counts {
			value = unread[name]
		}
		if value == nil {
			t.Errorf("field %s: does it count?", name)
			continue
		}
		a, b := node(), node()
		field := reflect.ValueOf(&b).Elem().Field(i)
		field.Set(reflect.ValueOf(value).Convert(field.Type()))
		if a.EqualForScheduling(&b) == counts {
			t.Errorf("with another %s: alike is %v", name, counts)
		}
	}
	a, b := node(), node()
	b.Taints[0].TimeAdded = &metav1.Time{}
	if !a.EqualForScheduling(&b) {
		t.Error("when a taint was added counts")
	}
}
