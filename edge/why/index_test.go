package why

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/edge/manifest"
)

// watched counts how often it is looked at.
type watched struct {
	metav1.ObjectMeta
	looks int
}

func (w *watched) GetOwnerReferences() []metav1.OwnerReference { w.looks++; return nil }
func (w *watched) GetNamespace() string                        { w.looks++; return "shop" }

func controlled(kind, name string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{Kind: kind, Name: name, Controller: &yes}}
}

// withControllers returns a cluster of that many Deployments whose ReplicaSets make no third pod,
// and Jobs of a CronJob with a pending pod each.
func withControllers(n int) *Cluster {
	set := manifest.NewSet()
	replicas := int32(3)
	for i := range n {
		name := fmt.Sprint("web", i)
		meta := metav1.ObjectMeta{Namespace: "shop", Name: name}
		labels := map[string]string{"app": name, "pod-template-hash": "abc"}
		d := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}}}
		meta.Name, meta.OwnerReferences = name+"-abc", controlled("Deployment", name)
		set.Running = append(set.Running, d, &appsv1.ReplicaSet{ObjectMeta: meta})
		for j := range 2 {
			set.Pods = append(set.Pods, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("%s-abc-%d", name, j), Labels: labels, OwnerReferences: controlled("ReplicaSet", name+"-abc")}, Spec: v1.PodSpec{NodeName: "n"}})
		}
		job := fmt.Sprint("backup-", i)
		set.Running = append(set.Running, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: job, OwnerReferences: controlled("CronJob", "backup")}})
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: job + "-x", UID: types.UID(job), OwnerReferences: controlled("Job", job)}}
		set.Pods = append(set.Pods, pod)
		set.Events = append(set.Events, manifest.Event{Kind: "ReplicaSet", Namespace: "shop", Name: name + "-abc", Reason: "FailedCreate", Message: "exceeded quota"},
			manifest.Event{Kind: "Pod", Namespace: "shop", Name: pod.Name, Reason: "FailedScheduling", Message: "no room", Last: time.Unix(int64(i), 0)})
	}
	return &Cluster{Set: set}
}

// What is known of workloads and events is gone over as often with many of them as with a few.
// The pods' own events are found all the same, and each workload's refusal and pods are its own.
func TestWorkloadsAreLookedAtOnce(t *testing.T) {
	looks := map[int]int{}
	for _, n := range []int{3, 300} {
		other := &watched{}
		c := withControllers(n)
		c.Set.Running = append(c.Set.Running, other)
		if missing, whole := c.missing(t.Context(), &Scope{}); len(missing) != n || !whole || missing[n-1].Pods != 1 || missing[n-1].Message != "exceeded quota" {
			t.Errorf("of %d Deployments: %d lack pods, whole %t: %+v", n, len(missing), whole, missing[len(missing)-1])
		}
		events := c.Set.Events
		for i, p := range c.Set.Pods {
			if p.Spec.NodeName != "" {
				continue
			}
			if w := c.WorkloadOf(p); w != (Workload{"cronjob", "shop", "backup"}) {
				t.Errorf("%s is of %s", p.Name, w)
			}
			c.neverMade(p)
			if o := c.latest(p); o == nil || !o.Time.Equal(time.Unix(int64(i/3), 0)) {
				t.Errorf("%s: %+v", p.Name, o)
			}
			c.Set.Events = nil // which are not gone over again
		}
		c.Set.Events = events
		looks[n] = other.looks
	}
	if looks[3] != looks[300] {
		t.Errorf("another object is looked at %d times beside 3 workloads, and %d times beside 300", looks[3], looks[300])
	}
}

// A question whose client is gone ends before anything is asked of the machine, which there is
// none of here. One whose time is up says which workloads it did not look at.
func TestAllIsCutBeforeThePods(t *testing.T) {
	c := withControllers(3)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if l, err := c.All(gone, Scope{}); l != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", l, err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	c.Set.Pods = nil
	l, err := c.All(late, Scope{})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := l.Text(&text, false); err != nil || !strings.Contains(text.String(), "Cut: the time was up before all workloads had been looked at whose controllers make no pods.") {
		t.Errorf("%v, %s", err, &text)
	}
}

// BenchmarkMissing is what is asked of controllers, events and pods before pods take their turn,
// beside 5,000 Deployments and Jobs.
func BenchmarkMissing(b *testing.B) {
	for b.Loop() {
		c := withControllers(5000)
		c.missing(b.Context(), &Scope{})
		for _, p := range c.Set.Pods {
			c.WorkloadOf(p)
			c.latest(p)
		}
	}
}
