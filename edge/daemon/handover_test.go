package daemon_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/logs/logstest"
	"github.com/berth-scheduler/berth/sim/apiserver"
)

func podOf(name, node string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       v1.PodSpec{NodeName: node, SchedulerName: v1.DefaultSchedulerName, Containers: []v1.Container{{Name: "c"}}},
		Status:     v1.PodStatus{Phase: v1.PodPending},
	}
}

func nodeOf(name string) *v1.Node {
	room := v1.ResourceList{"cpu": resource.MustParse("1"), "pods": resource.MustParse("100")}
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Allocatable: room}}
}

// handedOver is how long after SIGTERM of the leader the next one binds a pod that
// waits and fits from then on, in a cluster of 600 pods in which nothing else
// happens. before happens before it.
func handedOver(t *testing.T, before func(*cluster)) (took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{Server: apiserver.New()}
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		room := v1.ResourceList{"cpu": resource.MustParse("10"), "memory": resource.MustParse("10Gi"), "pods": resource.MustParse("2000")}
		must(c.Create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: v1.NodeStatus{Allocatable: room, Capacity: room}}))
		for i := range 600 {
			must(c.Create(podOf(fmt.Sprint("p", i), "n")))
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		run := func(ctx context.Context, identity string) {
			d := daemonOf(t, c, &logstest.Sink{}, identity)
			go func() { ended <- d.Run(ctx, nil) }()
			time.Sleep(20 * time.Second)
		}
		leader, terminate := context.WithCancel(ctx)
		run(leader, "a")
		run(ctx, "b")
		time.Sleep(2 * time.Minute)
		next := podOf("next", "")
		next.Spec.NodeSelector = map[string]string{"opened": "yes"}
		must(c.Create(next))
		must(c.Create(podOf("last", "")))
		time.Sleep(10 * time.Second)
		before(c)
		begin := time.Now()
		terminate()
		must(c.Update("nodes", "", "n", func(o apiserver.Object) { o.SetLabels(next.Spec.NodeSelector) }))
		for c.Get("pods", "ns", "next").(*v1.Pod).Spec.NodeName == "" {
			time.Sleep(10 * time.Millisecond)
		}
		took = time.Since(begin)
		stop()
		<-ended
		<-ended
		time.Sleep(2 * time.Minute) // client-go's own retries
	})
	return took
}

// A leader that is asked to stop has a successor in under a second, also where
// nothing happens that the watches could show.
func TestHandover(t *testing.T) {
	for range 3 { // candidates look at the lease at random times
		if took := handedOver(t, func(*cluster) {}); took > time.Second {
			t.Errorf("%s after SIGTERM the next pod is bound", took)
		}
	}
}

// A successor that has not seen what the leader bound waits until it has.
func TestHandoverToOneBehind(t *testing.T) {
	behind := func(c *cluster) {
		c.Lag = func(by, resource string, change *apiserver.Change) time.Time {
			if by == "b" && resource == "pods" {
				return change.At.Add(5 * time.Second)
			}
			return change.At
		}
		if err := c.Update("pods", "ns", "last", func(o apiserver.Object) { o.SetLabels(map[string]string{"x": "y"}) }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
	}
	if took := handedOver(t, behind); took < 2*time.Second {
		t.Errorf("%s after SIGTERM the next pod is bound, though the watches are behind", took)
	}
}
