package workload_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/edge/workload"
)

var now = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

func pods(t *testing.T, texts ...string) (all []*v1.Pod) {
	t.Helper()
	for _, text := range texts {
		p := &v1.Pod{}
		if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		all = append(all, p)
	}
	return all
}

func names(pods []*v1.Pod) string {
	var all []string
	for _, p := range pods {
		all = append(all, p.Name)
	}
	return strings.Join(all, " ")
}

const (
	ready   = "phase: Running, conditions: [{type: Ready, status: 'True', lastTransitionTime: %s}]"
	running = "spec: {nodeName: %s, containers: []}\nstatus: {phase: Running, conditions: [{type: Ready, status: '%s'}]}"
)

// Of two pods the first one goes first, whatever their order, for the reason that names the
// case: each reason counts before those that follow.
func TestSortForDeletion(t *testing.T) {
	on := func(name, meta, node, status string) string {
		return "metadata: {name: " + name + ", uid: " + name + meta + "}\nspec: {nodeName: '" + node + "', containers: []}\nstatus: {" + status + "}"
	}
	since := func(text string) string { return strings.Replace(ready, "%s", text, 1) }
	const cost = ", annotations: {controller.kubernetes.io/pod-deletion-cost: '%s'}"
	costs := func(n string) string { return strings.Replace(cost, "%s", n, 1) }
	restarted := func(name, policy string) string {
		return "metadata: {name: " + name + ", uid: " + name + "}\nspec: {nodeName: n, containers: [], initContainers: [{name: s" + policy + "}]}\n" +
			"status: {phase: Running, initContainerStatuses: [{name: s, restartCount: 2, ready: true, image: i, imageID: i}]}"
	}
	deployment, _ := workload.Of(&appsv1.Deployment{})
	job, _ := workload.Of(&batchv1.Job{})
	set, _ := workload.Of(&appsv1.StatefulSet{})
	for name, c := range map[string]struct {
		of   *workload.Workload
		pods []string
		want string
	}{
		"no node":               {deployment, []string{on("z", "", "", "phase: Running"), on("a", "", "n", "phase: Pending")}, "z a"},
		"phase":                 {deployment, []string{on("z", "", "n", "phase: Pending"), on("m", "", "n", "phase: Unknown"), on("a", "", "n", "phase: Running")}, "z m a"},
		"not ready":             {deployment, []string{on("z", costs("9"), "n", "phase: Running, conditions: [{type: Ready, status: 'False'}]"), on("a", "", "n", since("2026-01-01T00:00:00Z"))}, "z a"},
		"cost":                  {deployment, []string{on("z", costs("-1"), "m", since("2026-01-01T00:00:00Z")), on("a", "", "n", since("2026-01-01T00:00:00Z")), on("b", "", "n", since("2026-01-01T00:00:00Z"))}, "z a b"},
		"neighbours":            {deployment, []string{on("m", "", "n", since("2026-01-01T00:00:00Z")), on("z", "", "n", since("2026-01-01T00:00:00Z")), on("a", "", "m", since("2026-01-01T23:00:00Z"))}, "m z a"},
		"ready for less time":   {deployment, []string{on("z", "", "n", since("2026-01-01T23:00:00Z")), on("a", "", "n", since("2026-01-01T00:00:00Z"))}, "z a"},
		"about the same time":   {deployment, []string{on("a", "", "n", since("2026-01-01T00:00:00Z")), on("z", "", "n", since("2026-01-01T01:00:00Z"))}, "a z"},
		"a Job, to the second":  {job, []string{on("z", "", "n", since("2026-01-01T01:00:00Z")), on("a", "", "n", since("2026-01-01T00:00:00Z"))}, "z a"},
		"a Job, without cost":   {job, []string{on("a", "", "n", since("2026-01-01T01:00:00Z")), on("z", costs("-1"), "n", since("2026-01-01T00:00:00Z"))}, "a z"},
		"restarts":              {deployment, []string{on("z", ", creationTimestamp: 2026-01-01T00:00:00Z", "n", "phase: Running, containerStatuses: [{name: c, restartCount: 2, ready: true, image: i, imageID: i}]"), on("a", ", creationTimestamp: 2026-01-01T23:00:00Z", "n", "phase: Running")}, "z a"},
		"sidecar's restarts":    {deployment, []string{restarted("z", ", restartPolicy: Always"), restarted("a", "")}, "z a"},
		"younger":               {deployment, []string{on("z", ", creationTimestamp: 2026-01-01T23:00:00Z", "n", "phase: Running"), on("a", ", creationTimestamp: 2026-01-01T00:00:00Z", "n", "phase: Running")}, "z a"},
		"the highest number":    {set, []string{on("s-10", "", "n", since("2026-01-01T00:00:00Z")), on("s-9", "", "", "phase: Pending"), on("s-2", "", "n", "phase: Running")}, "s-10 s-9 s-2"},
		"no age before any age": {deployment, []string{on("z", "", "n", "phase: Running"), on("a", ", creationTimestamp: 2026-01-01T23:00:00Z", "n", "phase: Running")}, "z a"},
	} {
		list := pods(t, c.pods...)
		c.of.SortForDeletion(list, now)
		got := names(list)
		for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
			list[i], list[j] = list[j], list[i]
		}
		c.of.SortForDeletion(list, now)
		again := names(list)
		if name == "cost" || name == "neighbours" { // those that are alike stay as they were
			again = strings.NewReplacer("b a", "a b", "z m", "m z").Replace(again)
		}
		if got != c.want || again != c.want {
			t.Errorf("%s: got %s, and %s of the other order; want %s", name, got, again, c.want)
		}
	}
}

// A pod that is being deleted is one of a StatefulSet still, and none of a Deployment any
// more. One that has ended is none of either.
func TestActive(t *testing.T) {
	list := pods(t, "metadata: {name: a}", "metadata: {name: b, deletionTimestamp: 2026-01-01T00:00:00Z}", "metadata: {name: c}\nstatus: {phase: Failed}")
	for want, o := range map[string]metav1.Object{"a": &appsv1.Deployment{}, "a b": &appsv1.StatefulSet{}} {
		if w, _ := workload.Of(o); names(w.Active(list)) != want {
			t.Errorf("got %s, want %s", names(w.Active(list)), want)
		}
	}
}

// A budget that has no status gets one: pods that are ready count as healthy, and one that
// somebody wrote without conditions counts as ready.
func TestFillBudget(t *testing.T) {
	const labels = "metadata: {name: p, labels: {app: a}}\n"
	unready := strings.NewReplacer("{nodeName: %s", "{nodeName: n", "'%s'", "'False'").Replace(running)
	list := pods(t, labels+unready, labels+strings.Replace(unready, "False", "True", 1), labels+"spec: {nodeName: n, containers: []}\nstatus: {phase: Running}", labels+"spec: {containers: []}", "metadata: {name: other}")
	two := intstr.FromInt32(2)
	b := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &two, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}}
	if !workload.FillBudget(b, list) {
		t.Fatal("the status was not filled in")
	}
	if s := b.Status; s.ExpectedPods != 4 || s.CurrentHealthy != 2 || s.DesiredHealthy != 2 || s.DisruptionsAllowed != 0 {
		t.Errorf("status %+v", s)
	}
}

// A pod is terminating since its grace period began. One that is absurd, which somebody wrote, does
// not count.
func TestTermination(t *testing.T) {
	due := metav1.NewTime(now)
	for grace, want := range map[int64]time.Duration{0: 0, 3600: time.Hour, -5: 0, 1 << 60: 0} {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &due, DeletionGracePeriodSeconds: &grace}}
		if since, ends, terminating := workload.Termination(p); !terminating || !ends.Equal(now) || ends.Sub(since) != want {
			t.Errorf("%d s: since %s until %s (%t)", grace, since, ends, terminating)
		}
	}
	if _, _, terminating := workload.Termination(&v1.Pod{}); terminating {
		t.Error("a pod that is not deleted is terminating")
	}
}
