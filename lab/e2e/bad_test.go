package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// Objects that the API server takes and nobody can make sense of harm no other,
// and each that is to be scheduled gets its answer.
func TestBadObjects(t *testing.T) {
	f := newField(t, "bad")
	f.sameNodes(5, "10", 110)
	berth := f.berth(cluster.SchedulerOptions{})
	f.room(0, `{"cpu":null,"memory":null}`)
	f.room(1, `{"pods":null}`)
	f.room(2, `{"cpu":"9223372036854775807","memory":"9e99"}`)

	largest := resource.MustParse("9223372036854775807")
	var absurd []*corev1.Pod
	for i, cpu := range []string{"9223372036854775807", "9e99", "8Ei"} {
		pod := f.pod(fmt.Sprintf("absurd-%d", i), cpu)
		pod.Spec.Containers = append(pod.Spec.Containers, *pod.Spec.Containers[0].DeepCopy()) // a sum that overflows
		pod.Spec.Containers[1].Name = "second"
		resources := &pod.Spec.Containers[0].Resources
		resources.Requests["example.com/absurd"] = largest
		resources.Limits = corev1.ResourceList{"example.com/absurd": largest}
		absurd = append(absurd, pod)
	}
	unparsable := []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "size", Operator: corev1.NodeSelectorOpGt, Values: []string{"large"}}}}}
	required, preferred, ghost := f.pod("required", "1"), f.pod("preferred", "1"), f.pod("ghost", "1")
	required.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: unparsable}}}
	preferred.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: unparsable[0]}}}}
	ghost.Spec.NodeName = "no-such-node"
	f.create(append(absurd, required, preferred, ghost)...)

	for i := range absurd {
		f.awaitReason(absurd[i].Name, corev1.PodReasonUnschedulable)
	}
	f.awaitReason("required", corev1.PodReasonUnschedulable)
	f.awaitReason("preferred", corev1.PodReasonSchedulerError)

	f.create(f.podsOf("good", 30, "500m")...)
	f.awaitBound(30 + 1)
	f.checkRoom()
	for i, why := range []string{"no CPU", "no room for pods"} {
		if n := f.on(f.nodeName(i)); n != 0 {
			t.Errorf("%d pods on the node that has %s", n, why)
		}
	}
	if n := f.metric(berth, "berth_panics_total"); n != 0 {
		t.Errorf("%d panics", n)
	}
}

// room changes what node i says that it has.
func (f *field) room(i int, change string) {
	f.Helper()
	patch := fmt.Sprintf(`{"status":{"capacity":%s,"allocatable":%s}}`, change, change)
	_, err := f.client.CoreV1().Nodes().Patch(f.Context(), f.nodeName(i), types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		f.Fatal(err)
	}
}

// awaitReason waits until the scheduler has said of the pod why it has no node.
func (f *field) awaitReason(name, reason string) {
	f.Helper()
	f.await("pod "+name+" to be refused", func() string {
		pod := f.get(name)
		if pod == nil {
			return "it is not there"
		}
		c := condition(pod, corev1.PodScheduled)
		if c == nil || c.Status != corev1.ConditionFalse || c.Reason != reason || c.Message == "" {
			return fmt.Sprintf("the condition is %v, want %s and a message", c, reason)
		}
		if len(f.eventsOn("FailedScheduling")[name]) == 0 {
			return "no event"
		}
		return ""
	})
}
