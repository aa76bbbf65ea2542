package bench

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// A steady state replaces each pod once it is bound, though others are not.
func TestSteadyStateReplacesEachPod(t *testing.T) {
	w, err := Load(own(t, threeNodes+"  - {opcode: createPods, count: 2, namespace: ns, steadyState: true, duration: 1m, collectMetrics: true}"), "Own/Small")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	client := fake.NewClientset()
	s := &stage{client: client, scheduler: &cluster.Scheduler{Process: &cluster.Process{}}}
	if s.seen, err = watchBindings(ctx, client); err != nil {
		t.Fatal(err)
	}
	created, err := client.CoreV1().Pods("ns").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.replaceBound(ctx, w.measured()[0]) }()
	there, most, bound := map[string]bool{}, 0, 0
	timeout := time.After(30 * time.Second)
	for bound < 6 {
		select {
		case e := <-created.ResultChan():
			p := e.Object.(*v1.Pod)
			switch e.Type {
			case "ADDED":
				there[p.Name] = true
				most = max(most, len(there))
				if len(there) < 2 {
					continue // the other one stays unbound
				}
				p = p.DeepCopy()
				p.Spec.NodeName = "n"
				if _, err := client.CoreV1().Pods("ns").Update(ctx, p, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				bound++
			case "DELETED":
				delete(there, p.Name)
			}
		case err := <-ended:
			t.Fatal(err)
		case <-timeout:
			t.Fatalf("%d pods were bound, want 6", bound)
		}
	}
	stop()
	<-ended
	if most != 2 {
		t.Errorf("%d pods at once, want 2", most)
	}
}
