package workload

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An index has the pods of a workload that Owns has, whoever controls them and whatever the
// selector asks for.
func TestIndexHasWhatWorkloadsOwn(t *testing.T) {
	pod := func(name, kind, controller string, labels map[string]string) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels}}
		if kind != "" {
			p.OwnerReferences = []metav1.OwnerReference{controllerRef(v1.SchemeGroupVersion.WithKind(kind), controller, "u")}
		}
		return p
	}
	web, other := map[string]string{"app": "web", "tier": "front"}, map[string]string{"app": "other"}
	pods := []*v1.Pod{
		pod("0", "ReplicaSet", "web-abc", web), pod("1", "ReplicaSet", "web-1-abc", web), pod("2", "ReplicaSet", "web", web), pod("3", "Job", "web-28", nil),
		pod("4", "StatefulSet", "web", nil), pod("5", "", "", web), pod("6", "", "", other), pod("7", "", "", nil), pod("8", "ReplicaSet", "web-", web),
		{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "9", Labels: web}},
	}
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web"}
	selects := func(s *metav1.LabelSelector) metav1.Object {
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: s}}
	}
	in := func(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: operator, Values: values}}}
	}
	x := NewIndex(pods)
	for name, test := range map[string]struct {
		object metav1.Object
		want   string
	}{
		"Deployment":   {selects(&metav1.LabelSelector{MatchLabels: web}), "05"},
		"two values":   {selects(in(metav1.LabelSelectorOpIn, "web", "other")), "056"},
		"no value":     {selects(in(metav1.LabelSelectorOpDoesNotExist)), "07"},
		"not a value":  {selects(in(metav1.LabelSelectorOpNotIn, "web")), "067"},
		"no selector":  {selects(nil), "0"},
		"ReplicaSet":   {&appsv1.ReplicaSet{ObjectMeta: meta}, "2"},
		"StatefulSet":  {&appsv1.StatefulSet{ObjectMeta: meta}, "4"},
		"CronJob":      {&batchv1.CronJob{ObjectMeta: meta}, "3"},
		"none of them": {&appsv1.DaemonSet{ObjectMeta: meta}, ""},
	} {
		w, _ := Of(test.object)
		got := ""
		for _, p := range x.PodsOf(w) {
			got += p.Name
		}
		owned := ""
		for _, p := range pods {
			if w.Owns(p) {
				owned += p.Name
			}
		}
		sorted := []byte(got)
		slices.Sort(sorted)
		if string(sorted) != owned || owned != test.want {
			t.Errorf("%s: %q, by Owns %q, want %q", name, sorted, owned, test.want)
		}
	}
}
