package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// The workload of TestPlacement, 2,000 pods.
const (
	webPods, cachePods = 700, 300 // of Deployments
	jobPods            = 300
	barePods           = 700
	fittingPods        = webPods + cachePods + jobPods + barePods
)

// Deployments, a Job and bare pods, 2,000 together, on the lab's mixed fleet of
// 200 nodes; beside them pods of another scheduler, and one that cannot fit
// until a node comes.
func TestPlacement(t *testing.T) {
	t.Setenv("BERTH_CHECK", "") // at the speed that users see
	f := newField(t, "placement")
	nodes := cluster.Nodes(200)
	for _, node := range nodes {
		node.Labels[fieldLabel] = f.name
	}
	f.addNodes(nodes...)
	f.berth(cluster.SchedulerOptions{})

	f.deploy("web", webPods, "250m", nil)
	f.deploy("cache", cachePods, "1", map[string]string{cluster.DiskLabel: "ssd"})
	f.job("report", jobPods, "500m")
	f.create(f.podsOf("bare", barePods, "100m")...)
	strangers := f.podsOf("stranger", 20, "100m")
	for _, pod := range strangers {
		pod.Labels["scheduler"] = "other"
		pod.Spec.SchedulerName = "other"
	}
	f.create(strangers...)
	f.create(f.pod("giant", "64"))

	f.awaitBound(fittingPods)
	f.awaitScheduledOnce()
	f.checkRoom()
	for _, pod := range f.seen("app=cache") {
		node, err := f.client.CoreV1().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil || node.Labels[cluster.DiskLabel] != "ssd" {
			t.Errorf("pod %s is on node %s, which has no SSD (%v)", pod.Name, pod.Spec.NodeName, err)
		}
	}
	f.checkStrangers()

	const why = "0/200 nodes are available: 180 Insufficient cpu, 20 node(s) had untolerated taint(s). " +
		"preemption: 0/200 nodes are available: 200 Preemption is not helpful for scheduling."
	f.awaitRejected("giant", why)

	large := f.node(0, "80", 110)
	f.addNodes(large)
	f.awaitBound(fittingPods + 1)
	if giant := f.get("giant"); giant.Spec.NodeName != large.Name {
		t.Errorf("the giant is on node %q", giant.Spec.NodeName)
	}
	f.awaitScheduledOnce()
}

// awaitRejected waits until the pod's condition and an event about it say why
// it cannot be placed.
func (f *field) awaitRejected(name, why string) {
	f.Helper()
	f.await("pod "+name+" to be rejected", func() string {
		pod := f.get(name)
		if pod == nil {
			return "it is not there"
		}
		c := condition(pod, corev1.PodScheduled)
		if c == nil || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable || c.Message != why {
			return fmt.Sprintf("the condition is %v,\nwant the message %q", c, why)
		}
		for _, e := range f.eventsOn("FailedScheduling")[name] {
			if e.Note == why && e.Type == corev1.EventTypeWarning && e.ReportingController == "default-scheduler" {
				return ""
			}
		}
		return "no event says so"
	})
}

// checkStrangers: nobody has touched the pods of another scheduler.
func (f *field) checkStrangers() {
	f.Helper()
	strangers := f.seen("scheduler=other")
	if len(strangers) != 20 {
		f.Errorf("%d pods of another scheduler, want 20", len(strangers))
	}
	for _, pod := range strangers {
		if pod.Spec.NodeName != "" || len(pod.Status.Conditions) > 0 || pod.Status.NominatedNodeName != "" {
			f.Errorf("pod %s of another scheduler was touched: node %q, status %v", pod.Name, pod.Spec.NodeName, pod.Status)
		}
		for _, obj := range f.events.GetStore().List() {
			if e := obj.(*eventsv1.Event); e.Regarding.Name == pod.Name {
				f.Errorf("event about pod %s of another scheduler: %v", pod.Name, e)
			}
		}
	}
}

func (f *field) template(app, cpu string, selector map[string]string, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	spec := f.spec(cpu)
	spec.RestartPolicy = restart
	for key, value := range selector {
		spec.NodeSelector[key] = value
	}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}}, Spec: spec}
}

func (f *field) deploy(app string, replicas int32, cpu string, selector map[string]string) {
	f.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		Template: f.template(app, cpu, selector, corev1.RestartPolicyAlways),
	}}
	if _, err := f.client.AppsV1().Deployments(f.name).Create(f.Context(), deployment, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

func (f *field) job(app string, completions int32, cpu string) {
	f.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: batchv1.JobSpec{
		Completions: &completions, Parallelism: &completions,
		Template: f.template(app, cpu, nil, corev1.RestartPolicyNever),
	}}
	if _, err := f.client.BatchV1().Jobs(f.name).Create(f.Context(), job, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

// A node goes and comes back under its name while pods keep coming: the pods
// that stayed bound to it still take their room. Another is cordoned, and is
// used once it no longer is.
func TestNodesGoAndReturn(t *testing.T) {
	const room = 10 // pods a node
	f := newField(t, "nodes")
	cordoned := f.node(5, "64", room)
	cordoned.Spec.Unschedulable = true
	f.sameNodes(5, "64", room)
	f.addNodes(cordoned)
	f.berth(cluster.SchedulerOptions{})

	// Half of the pods, then the node goes; a quarter while it is away.
	leaver := f.node(0, "64", room)
	f.create(f.podsOf("early", 25, "100m")...)
	f.await("pods on the node that is about to go", func() string {
		return missing(min(f.on(leaver.Name), 1), 1)
	})
	if err := f.client.CoreV1().Nodes().Delete(t.Context(), leaver.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.create(f.podsOf("meanwhile", 15, "100m")...)
	f.awaitBound(40)
	stayed := f.on(leaver.Name)
	f.addNodes(leaver)
	f.create(f.podsOf("late", 10, "100m")...)
	f.awaitBound(5 * room) // every place is taken, none twice
	f.checkRoom()
	if n := f.on(leaver.Name); n != room || stayed == 0 {
		t.Errorf("%d pods stayed with the node, %d are on it, want some and %d", stayed, n, room)
	}

	f.create(f.podsOf("after", room, "100m")...)
	f.await("the rest to be rejected", func() string { return missing(rejected(f.seen("")), room) })
	if n := f.on(cordoned.Name); n != 0 {
		t.Errorf("%d pods on the cordoned node", n)
	}
	f.awaitRejected("after-0", "0/6 nodes are available: 1 node(s) were unschedulable, 5 Too many pods. "+
		"preemption: 0/6 nodes are available: 1 Preemption is not helpful for scheduling, 5 No preemption victims found for incoming pod.")
	f.cordon(cordoned.Name, false)
	f.awaitBound(6 * room)
	f.checkRoom()
	f.awaitScheduledOnce()
}

// on counts the pods that are bound to a node.
func (f *field) on(node string) int {
	n := 0
	for _, pod := range f.seen("") {
		if pod.Spec.NodeName == node {
			n++
		}
	}
	return n
}

func (f *field) cordon(node string, unschedulable bool) {
	f.Helper()
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, unschedulable)
	if _, err := f.client.CoreV1().Nodes().Patch(f.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		f.Fatal(err)
	}
}

// A scheduler is killed while it binds and another starts: the pods fill the
// nodes to the last place, which they only can when none is counted twice or
// not at all.
func TestKilledAndRestarted(t *testing.T) {
	const nodes, room = 15, 40
	f := newField(t, "killed")
	f.sameNodes(nodes, "40", 110)
	first := f.berth(cluster.SchedulerOptions{})
	f.background("the first pods", f.podsOf("first", nodes*room/2, "1"))
	f.await("some pods to be bound", func() string { return missing(min(bound(f.seen("")), room), room) })
	first.Kill()

	f.background("the other pods", f.podsOf("second", nodes*room/2, "1"))
	f.berth(cluster.SchedulerOptions{})
	f.awaitBound(nodes * room)
	f.checkRoom()
	for name, events := range f.eventsOn("Scheduled") {
		if len(events) != 1 { // one that was bound just before the kill may have none
			t.Errorf("pod %s: %d Scheduled events", name, len(events))
		}
	}
	f.create(f.pod("one-too-many", "1"))
	f.awaitRejected("one-too-many", "0/15 nodes are available: 15 Insufficient cpu. "+
		"preemption: 0/15 nodes are available: 15 No preemption victims found for incoming pod.")
}

// background creates pods while the test goes on.
func (f *field) background(what string, pods []*corev1.Pod) {
	done := make(chan struct{})
	f.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		if err := f.tryCreate(pods...); err != nil {
			f.Errorf("%s: %v", what, err)
		}
	}()
}
