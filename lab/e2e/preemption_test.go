package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/proxy"
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
	f.protect("protected", 2, 0)

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
	why := "0/2 nodes are available: 2 Insufficient cpu. preemption: found a potential placement for pod on node " + exposed + ", preempting 2 victims"
	if failed := f.eventsOn("FailedScheduling")["urgent"]; len(failed) != 1 || failed[0].Note != why {
		t.Errorf("FailedScheduling events of the urgent pod: %v, want one that says %q", failed, why)
	}
	if n := f.on(protected); n != 2 {
		t.Errorf("%d pods are left on the protected node", n)
	}
	f.awaitScheduledOnce()
	f.checkRoom()
}

// Four nodes are full: with pods of which none may go, of which one may, of a
// little more importance but without a budget, and as important as those that
// come. Urgent pods come one by one, and each takes the place that costs least,
// by what the disruption controller says at that time.
func TestPreemptionInTurn(t *testing.T) {
	f := newField(t, "preemption-in-turn")
	f.sameNodes(4, "2", 110)
	f.priority("low", 10)
	f.priority("urgent", 1000)
	p, _ := f.proxied()
	apps := []string{"protected", "spare", "exposed", "equal"} // by node
	for i, app := range apps {
		for _, pod := range f.podsOf(app, 2, "1") {
			pod.Labels["app"] = app
			pod.Spec.NodeSelector[corev1.LabelHostname] = f.nodeName(i)
			pod.Spec.PriorityClassName = map[string]string{"exposed": f.name + "-low", "equal": f.name + "-urgent"}[app]
			pod.Finalizers = map[string][]string{"spare": {"e2e.example.com/stay"}}[app]
			f.create(pod)
		}
	}
	f.awaitBound(8)
	f.protect("spare", 1, 1) // first, so that the scheduler knows its status when the other is there
	f.protect("protected", 2, 0)

	// The one that may go takes its time. Meanwhile its place is kept, and
	// nobody else has to go.
	f.urgent("first", "1")
	f.await("a victim to be on its way out", func() string { return missing(len(f.leaving()), 1) })
	f.await("the nomination", func() string {
		if node := f.get("first").Status.NominatedNodeName; node != f.nodeName(1) {
			return fmt.Sprintf("it is %q", node)
		}
		return ""
	})
	f.create(f.pod("modest", "1"))
	f.awaitRejected("modest", "0/4 nodes are available: 4 Insufficient cpu. "+
		"preemption: 0/4 nodes are available: 4 No preemption victims found for incoming pod.")
	for _, pod := range f.leaving() {
		f.release(pod.Name)
	}
	f.awaitNode("first", 1)
	f.awaitAllowed("spare", 1, 0)

	f.urgent("second", "1") // the other spare one may not go any more
	f.awaitNode("second", 2)
	f.urgent("third", "1")
	f.awaitNode("third", 2)
	f.urgent("fourth", "2") // two that are protected, where there is no other way
	f.awaitNode("fourth", 0)

	var victims []string
	f.await("five victims to go and to be told of", func() string {
		f.mu.Lock()
		defer f.mu.Unlock()
		victims = slices.Collect(maps.Keys(f.gone))
		return missing(len(victims)+len(f.eventsOn("Preempted")), 5+5)
	})
	f.checkVictim("protected-0", f.get("fourth"), f.nodeName(0))
	f.checkVictim("protected-1", f.get("fourth"), f.nodeName(0))
	for preemptor, plan := range map[string]struct{ node, victims int }{"first": {1, 1}, "second": {2, 1}, "third": {2, 1}, "fourth": {0, 2}} {
		why := fmt.Sprintf("0/4 nodes are available: 4 Insufficient cpu. preemption: found a potential placement for pod on node %s, preempting %d victims", f.nodeName(plan.node), plan.victims)
		if failed := f.eventsOn("FailedScheduling")[preemptor]; len(failed) != 1 || failed[0].Note != why {
			t.Errorf("FailedScheduling events of %s: %v, want one that says %q", preemptor, failed, why)
		}
	}
	for _, name := range victims {
		if c := condition(f.get(name), corev1.DisruptionTarget); c == nil || c.Status != corev1.ConditionTrue {
			t.Errorf("victim %s: the condition is %v", name, c)
		}
		path := "/api/v1/namespaces/" + f.name + "/pods/" + name
		if n := p.Count(func(e proxy.Exchange) bool { return e.Method == http.MethodDelete && e.Path == path }); n != 1 {
			t.Errorf("victim %s was deleted %d times", name, n)
		}
	}
	for app, want := range map[string]int{"protected": 0, "spare": 1, "exposed": 0, "equal": 2} {
		if n := len(f.seen("app=" + app)); n != want {
			t.Errorf("%d pods of %s are left, want %d", n, app, want)
		}
	}
	f.release("spare-0")
	f.release("spare-1")
	f.checkRoom()
}

// A pod preempts a replica that its required anti-affinity keeps it away from. The victim takes
// its time. The replica that its Deployment makes again waits meanwhile, and is not killed in its
// turn (tool/testdata/cases, nominated-anti-affinity.yaml).
func TestNominatedAntiAffinity(t *testing.T) {
	f := newField(t, "nominated-anti-affinity")
	f.sameNodes(1, "4", 110)
	f.priority("urgent", 1000)
	f.berth(cluster.SchedulerOptions{})

	low := f.template("low", "100m", nil, corev1.RestartPolicyAlways)
	low.Finalizers = []string{"e2e.example.com/stay"}
	replicas := int32(1)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: low.Labels}, Template: low,
	}}
	if _, err := f.client.AppsV1().Deployments(f.name).Create(f.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.awaitBound(1)
	victim := f.seen("app=low")[0].Name

	away := f.pod("away", "100m")
	away.Spec.PriorityClassName = f.name + "-urgent"
	away.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: low.Labels},
	}}}}
	f.create(away)
	again := ""
	f.await("the replica that is made again", func() string {
		for _, pod := range f.seen("app=low") {
			if pod.Name != victim {
				again = pod.Name
			}
		}
		return missing(len(f.seen("app=low")), 2)
	})
	const why = "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules. " +
		"preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
	f.awaitRejected(again, why)
	f.release(victim)
	f.awaitNode("away", 0)
	f.await("the victim to go", func() string {
		f.mu.Lock()
		defer f.mu.Unlock()
		return missing(len(f.gone), 1)
	})
	left := f.seen("app=low")
	if len(left) != 1 || left[0].Name != again || left[0].Spec.NodeName != "" || left[0].DeletionTimestamp != nil {
		t.Errorf("beside the pod that preempted %s: %v", victim, left)
	}
	if events := f.eventsOn("Preempted"); len(events) != 1 || len(events[victim]) != 1 {
		t.Errorf("events Preempted: %v", events)
	}
	f.release(again)
}

// urgent creates a pod with the field's priority class "urgent".
func (f *field) urgent(name, cpu string) {
	f.Helper()
	pod := f.pod(name, cpu)
	pod.Spec.PriorityClassName = f.name + "-urgent"
	f.create(pod)
}

// awaitNode waits until the pod is bound, which has to be to node i.
func (f *field) awaitNode(name string, i int) {
	f.Helper()
	f.await("pod "+name+" to be bound", func() string {
		if pod := f.get(name); pod == nil || pod.Spec.NodeName == "" {
			return "it is not"
		}
		return ""
	})
	if node := f.get(name).Spec.NodeName; node != f.nodeName(i) {
		f.Errorf("pod %s is on node %s, want %s", name, node, f.nodeName(i))
	}
}

// leaving is the pods that are on their way out.
func (f *field) leaving() []*corev1.Pod {
	return slices.DeleteFunc(f.seen(""), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil })
}

// release takes the finalizers from a pod, if it is there.
func (f *field) release(name string) {
	f.Helper()
	_, err := f.client.CoreV1().Pods(f.name).Patch(f.Context(), name, types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		f.Fatal(err)
	}
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

// protect makes a disruption budget that keeps that many pods of the app, and
// waits until the disruption controller says how many may go.
func (f *field) protect(app string, keep int32, allowed int) {
	f.Helper()
	least := intstr.FromInt32(keep)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &least,
		Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	}}
	if _, err := f.client.PolicyV1().PodDisruptionBudgets(f.name).Create(f.Context(), budget, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	f.awaitAllowed(app, 2, allowed)
}

// awaitAllowed waits until the disruption controller says that so many of the
// app's pods are healthy, and how many of them may go.
func (f *field) awaitAllowed(app string, healthy int32, allowed int) {
	f.Helper()
	f.await("the disruption budget of "+app, func() string {
		budget, err := f.client.PolicyV1().PodDisruptionBudgets(f.name).Get(f.Context(), app, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if status := budget.Status; status.ObservedGeneration != budget.Generation || status.CurrentHealthy != healthy || status.DisruptionsAllowed != int32(allowed) {
			return fmt.Sprintf("the status is %+v", status)
		}
		return ""
	})
}
