package e2e

import (
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/proxy"
)

// Room beside kube-scheduler: nodes of four CPUs for pods of one.
const (
	besideNodes = 200
	besideRoom  = 4
)

var besideConfig = []byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: berth}]
`)

// kube-scheduler and Berth each get half of more pods than 200 nodes have room for, at
// once. What fits is bound, whatever was given away twice is counted, no pod is put
// onto a node that has no room left, and then there is silence.
func TestBesideKubeScheduler(t *testing.T) {
	t.Setenv("BERTH_CHECK", "") // at the speed at which races happen
	f := newField(t, "beside")
	f.besideNodes()
	berth := f.berth(cluster.SchedulerOptions{Config: besideConfig})
	other := f.kubeScheduler()

	const half = besideNodes*besideRoom/2 + 50
	ours, theirs := f.ours("ours", half), f.podsOf("theirs", half, "1")
	var all []*corev1.Pod
	for i := range half {
		all = append(all, ours[i], theirs[i])
	}
	f.create(all...)
	f.awaitSettled(len(all), berth, other)
	t.Logf("%d of %d pods are bound, %d of them where there was no room", bound(f.seen("")), len(all), f.checkOvercommits(berth))

	f.awaitSilence(berth, other)
	f.checkOvercommits(berth)
}

// Berth's watch is frozen while kube-scheduler fills the nodes: it gives room away a
// second time. When the watch goes on, each such pod is counted and none follows.
func TestOvercommitsAreCounted(t *testing.T) {
	t.Setenv("BERTH_CHECK", "")
	f := newField(t, "overcommits")
	f.besideNodes()
	p := f.proxy()
	berth := f.berth(cluster.SchedulerOptions{Config: besideConfig, Flags: []string{"--master=" + p.URL}})
	other := f.kubeScheduler()

	const ours, theirs = 2 * besideNodes, 3 * besideNodes
	waiting := f.ours("ours", ours)
	for _, pod := range waiting {
		pod.Spec.NodeSelector["open"] = "yes"
	}
	f.create(waiting...)
	f.await("Berth to know its pods", func() string { return missing(rejected(f.seen("")), ours) })

	thaw := p.Inject(proxy.Fault{Freeze: true, On: func(r *http.Request) bool {
		return r.URL.Path == "/api/v1/pods" && r.URL.Query().Has("watch")
	}})
	defer thaw()
	f.create(f.podsOf("theirs", theirs, "1")...)
	f.awaitBound(theirs)
	for i := range besideNodes {
		if _, err := f.client.CoreV1().Nodes().Patch(t.Context(), f.nodeName(i), types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"open":"yes"}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.awaitBound(ours + theirs)
	if n := f.metric(berth, "berth_overcommits_total"); n != 0 {
		t.Errorf("%d over-commits are counted that the watch has not shown", n)
	}
	thaw()

	f.create(f.ours("late", besideNodes)...)
	f.awaitSettled(ours+theirs+besideNodes, berth, other)
	n := f.checkOvercommits(berth)
	if least := ours + theirs - besideNodes*besideRoom; n < least {
		t.Errorf("%d pods have no room, want at least %d", n, least)
	}
	f.awaitSilence(berth, other)
	if again := f.checkOvercommits(berth); again != n {
		t.Errorf("%d pods have no room, which were %d", again, n)
	}
}

// besideNodes makes the nodes, and one without CPU for awaitSilence.
func (f *field) besideNodes() {
	f.Helper()
	f.sameNodes(besideNodes, fmt.Sprint(besideRoom), 110)
	marker := f.node(besideNodes, "0", 110)
	marker.Labels["marker"] = "yes"
	f.addNodes(marker)
}

// kubeScheduler starts kube-scheduler, which ends with the test.
func (f *field) kubeScheduler(flags ...string) *cluster.Scheduler {
	f.Helper()
	s, err := f.cluster.StartScheduler(f.Context(), cluster.SchedulerOptions{Kind: cluster.KubeScheduler, Flags: flags})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Kill)
	return s
}

// ours are pods of one CPU that Berth is to schedule.
func (f *field) ours(prefix string, n int) []*corev1.Pod {
	pods := f.podsOf(prefix, n, "1")
	for _, pod := range pods {
		pod.Spec.SchedulerName = "berth"
	}
	return pods
}

// awaitSettled waits until each of n pods is bound or rejected, nobody tries one, and
// Berth knows all bindings. No pod waits while there is room for it.
func (f *field) awaitSettled(n int, schedulers ...*cluster.Scheduler) {
	f.Helper()
	f.await("every pod to be bound or rejected", func() string {
		pods := f.seen("")
		at := bound(pods)
		free := 0
		for _, taken := range f.taken() {
			free += max(besideRoom-taken, 0)
		}
		free += besideRoom * (besideNodes - len(f.taken()))
		if waiting := n - at; min(waiting, free) > 0 {
			return fmt.Sprintf("%d pods wait and there is room for %d", waiting, free)
		}
		return missing(at+rejected(pods), n)
	})
	for _, s := range schedulers {
		f.await(s.Kind+"'s queue", func() string {
			if n := f.metric(s, "scheduler_pending_pods", `queue="active"`) + f.metric(s, "scheduler_pending_pods", `queue="backoff"`); n > 0 {
				return fmt.Sprintf("%d pods are to be tried", n)
			}
			return ""
		})
	}
}

// taken is how many pods are on each node that has any.
func (f *field) taken() map[string]int {
	taken := map[string]int{}
	for _, pod := range f.seen("") {
		if pod.Spec.NodeName != "" {
			taken[pod.Spec.NodeName]++
		}
	}
	return taken
}

// checkOvercommits compares what Berth counts with what the API shows, and returns how
// many pods have no room on their node.
func (f *field) checkOvercommits(berth *cluster.Scheduler) (pods int) {
	f.Helper()
	nodes := 0
	for _, n := range f.taken() {
		if n > besideRoom {
			nodes++
			pods += n - besideRoom
		}
	}
	f.await("the over-commits to be counted", func() string {
		counted, on := f.metric(berth, "berth_overcommits_total"), f.metric(berth, "berth_overcommitted_nodes")
		if counted != pods || on != nodes {
			return fmt.Sprintf("%d on %d nodes are counted, there are %d on %d", counted, on, pods, nodes)
		}
		return ""
	})
	return pods
}

// awaitSilence has each scheduler place one pod more, on a node of their own, and checks
// that meanwhile neither tried another, and nobody wrote one that waits.
func (f *field) awaitSilence(schedulers ...*cluster.Scheduler) {
	f.Helper()
	before := map[string]string{}
	for _, pod := range f.seen("") {
		before[pod.Name] = pod.ResourceVersion
	}
	attempts := make([]int, len(schedulers))
	for i, s := range schedulers {
		attempts[i] = f.metric(s, "scheduler_schedule_attempts_total")
	}
	for _, pod := range append(f.ours("marker-ours", 1), f.podsOf("marker-theirs", 1, "1")...) {
		pod.Spec.NodeSelector["marker"] = "yes"
		pod.Spec.Containers[0].Resources.Requests = nil
		f.create(pod)
		f.await("the marker", func() string { return missing(bound(f.seen("pod="+pod.Name)), 1) })
	}
	for i, s := range schedulers {
		n := 0
		f.await("the marker's attempt to be counted", func() string { // after the pod is bound
			n = f.metric(s, "scheduler_schedule_attempts_total") - attempts[i]
			return missing(min(n, 1), 1)
		})
		if n != 1 {
			f.Errorf("%s made %d attempts for one pod", s.Kind, n)
		}
	}
	for _, pod := range f.seen("") {
		if version, ok := before[pod.Name]; ok && pod.Spec.NodeName == "" && version != pod.ResourceVersion {
			f.Errorf("pod %s was written: %s, then %s", pod.Name, version, pod.ResourceVersion)
		}
	}
}
