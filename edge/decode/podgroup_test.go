package decode

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// Of a group that counts which says how many of its pods must be placed, and its condition.
func TestPodGroup(t *testing.T) {
	g := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "g", UID: "u", ResourceVersion: "3", Generation: 2,
			Annotations: map[string]string{object.RequiredTopology: "zone", object.PreferredTopology: "rack"}},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 4}}},
		Status: schedulingv1beta1.PodGroupStatus{Conditions: []metav1.Condition{
			{Type: "Other", Status: metav1.ConditionTrue, Reason: "No"},
			{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionFalse, Reason: "Unschedulable", Message: "no room", ObservedGeneration: 2},
		}},
	}
	want := object.PodGroup{
		Meta:       object.Meta{Kind: object.PodGroups, Namespace: "d", Name: "g", UID: "u", Version: "3"},
		Generation: 2, Gang: true, MinCount: 4, Required: "zone", Preferred: "rack",
		Scheduled: object.GroupCondition{Status: v1.ConditionFalse, Reason: "Unschedulable", Message: "no room", ObservedGeneration: 2},
	}
	if got := *Object(g).(*object.PodGroup); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	g.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}
	if got := Object(g).(*object.PodGroup); got.Gang || got.MinCount != 0 {
		t.Errorf("a group with the basic policy is %+v", got)
	}
}

// A pod has the group that it names.
func TestPodGroupOfAPod(t *testing.T) {
	name := "g"
	for _, tc := range []struct {
		group *v1.PodSchedulingGroup
		want  string
	}{{nil, ""}, {&v1.PodSchedulingGroup{}, ""}, {&v1.PodSchedulingGroup{PodGroupName: &name}, "g"}} {
		if got := Pod(&v1.Pod{Spec: v1.PodSpec{SchedulingGroup: tc.group}}).PodGroup(); got != tc.want {
			t.Errorf("%+v: got %q, want %q", tc.group, got, tc.want)
		}
	}
}
