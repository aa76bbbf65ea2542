package decode

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// Only an owner reference of a known controller counts as the pod's controller. Whatever
// controls a pod makes another one in its place, a DaemonSet and a kubelet on the same node.
func TestController(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		owner metav1.OwnerReference
		want  object.Controller
	}{
		{metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "x", Controller: &yes}, object.Controller{Kind: object.ReplicaSet, Name: "x", Replacement: object.AnyNode}},
		{metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "x", Controller: &yes}, object.Controller{Kind: object.StatefulSet, Name: "x", Replacement: object.AnyNode}},
		{metav1.OwnerReference{APIVersion: "v1", Kind: "ReplicationController", Name: "x", Controller: &yes}, object.Controller{Kind: object.ReplicationController, Name: "x", Replacement: object.AnyNode}},
		{metav1.OwnerReference{APIVersion: "extensions/v1beta1", Kind: "ReplicaSet", Name: "x", Controller: &yes}, object.Controller{Replacement: object.AnyNode}},
		{metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "x", Controller: &yes}, object.Controller{Replacement: object.AnyNode}},
		{metav1.OwnerReference{APIVersion: "a/b/c", Kind: "ReplicaSet", Name: "x", Controller: &yes}, object.Controller{Replacement: object.AnyNode}},
		{metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "x", Controller: &yes}, object.Controller{Replacement: object.SameNode}},
		{metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "x", Controller: &yes}, object.Controller{Replacement: object.SameNode}},
		{metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "x", Controller: &no}, object.Controller{}},
	} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{c.owner}}}
		if got := Pod(p).Controller; got != c.want {
			t.Errorf("owner %s %s: %v, want %v", c.owner.APIVersion, c.owner.Kind, got, c.want)
		}
	}
}

// The selectors of Services and controllers are decoded, and one that does not
// parse selects nothing.
func TestSelectorOwner(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "a", Name: "x"}
	byLabel := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	for _, c := range []struct {
		name                 string
		in                   any
		kind                 object.SelectorOwnerKind
		labels, requirements int
	}{
		{"Service", &v1.Service{ObjectMeta: meta, Spec: v1.ServiceSpec{Selector: byLabel.MatchLabels}}, object.Service, 1, 0},
		{"headless Service", &v1.Service{ObjectMeta: meta}, object.Service, 0, 0},
		{"ReplicationController", &v1.ReplicationController{ObjectMeta: meta, Spec: v1.ReplicationControllerSpec{Selector: byLabel.MatchLabels}}, object.ReplicationController, 1, 0},
		{"ReplicaSet", &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: byLabel}}, object.ReplicaSet, 0, 1},
		{"StatefulSet", &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: byLabel}}, object.StatefulSet, 0, 1},
		{"without selector", &appsv1.StatefulSet{ObjectMeta: meta}, object.StatefulSet, 0, 0},
		{"broken selector", &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: broken}}, object.ReplicaSet, 0, 0},
	} {
		f := SelectorOwner(c.in)
		if f == nil || f.Kind != c.kind || f.Namespace != "a" || f.Name != "x" || len(f.Labels) != c.labels || len(f.Requirements) != c.requirements {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
	if f := SelectorOwner(&v1.Pod{ObjectMeta: meta}); f != nil {
		t.Errorf("a pod is no selector owner: %+v", f)
	}
}
