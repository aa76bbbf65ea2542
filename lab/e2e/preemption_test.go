package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// Two nodes are full, one of them with pods under a disruption budget that
// allows none. A pod of higher priority takes the other node from its pods, and
// all who are concerned are told.
func TestPreemption(t *testing.T) {
	f := newField(t, "preemption")
	f.sameNodes(2, "2", 110)
	f.priority("urgent", 1000)
	f.berth(cluster.SchedulerOptions{})

	protected, exposed := f.nodeName(0), f.nodeName(1)
	for node, app := range map[string]string{protected: "protected", exposed: "exposed"} {
		for _, pod := range f.podsOf(app, 2, "1") {
			pod.Labels["app"] = app
			pod.Spec.NodeSelector[corev1.LabelHostname] = node
			f.create(pod)
		}
	}
	f.awaitBound(4)
	f.protect("protected")

	urgent := f.pod("urgent", "2")
	urgent.Spec.PriorityClassName = f.name + "-urgent"
	f.create(urgent)
	f.await("the urgent pod to be bound", func() string {
		if pod := f.get("urgent"); pod == nil || pod.Spec.NodeName == "" {
			return "it is not"
		}
		return ""
	})
	pod := f.get("urgent")
	if pod.Spec.NodeName != exposed {
		t.Errorf("the urgent pod is on node %s, want %s", pod.Spec.NodeName, exposed)
	}
	f.await("two victims to go and to be told of", func() string {
		f.mu.Lock()
		defer f.mu.Unlock()
		return missing(len(f.gone)+len(f.eventsOn("Preempted")), 2+2)
	})
	for i := range 2 {
		f.checkVictim(fmt.Sprintf("exposed-%d", i), pod, exposed)
	}
	const why = "0/2 nodes are available: 2 Insufficient cpu."
	if failed := f.eventsOn("FailedScheduling")["urgent"]; len(failed) != 1 || failed[0].Note != why {
		t.Errorf("FailedScheduling events of the urgent pod: %v, want one that says %q", failed, why)
	}
	if n := f.on(protected); n != 2 {
		t.Errorf("%d pods are left on the protected node", n)
	}
	f.awaitScheduledOnce()
	f.checkRoom()
}

// checkVictim: the pod was marked as disrupted before it went, and an event
// says who took its place.
func (f *field) checkVictim(name string, preemptor *corev1.Pod, node string) {
	f.Helper()
	victim := f.get(name)
	c := condition(victim, corev1.DisruptionTarget)
	if c == nil || c.Status != corev1.ConditionTrue || c.Reason != corev1.PodReasonPreemptionByScheduler ||
		c.Message != "default-scheduler: preempting to accommodate a higher priority pod" {
		f.Errorf("victim %s: the condition is %v", name, c)
	}
	events := f.eventsOn("Preempted")[name]
	want := fmt.Sprintf("Preempted by pod %s on node %s", preemptor.UID, node)
	if len(events) != 1 || events[0].Note != want || events[0].Related == nil || events[0].Related.UID != preemptor.UID {
		f.Errorf("victim %s: events %v, want one that says %q", name, events, want)
	}
}

// priority creates the priority class FIELD-NAME.
func (f *field) priority(name string, value int32) {
	f.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: f.name + "-" + name}, Value: value}
	if _, err := f.client.SchedulingV1().PriorityClasses().Create(f.Context(), class, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

// protect makes a disruption budget that lets no pod of the app be disrupted,
// and waits until it is in force.
func (f *field) protect(app string) {
	f.Helper()
	most := intstr.FromInt32(0)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: &most,
		Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	}}
	budgets := f.client.PolicyV1().PodDisruptionBudgets(f.name)
	if _, err := budgets.Create(f.Context(), budget, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	f.await("the disruption budget", func() string {
		budget, err := budgets.Get(f.Context(), app, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		return missing(int(budget.Status.ObservedGeneration), 1)
	})
}
