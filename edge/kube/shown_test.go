package kube

import (
	"fmt"
	"maps"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/sim/apiserver"
)

// A watcher that has shown as much as another says so at once, however many pods
// there are and however quiet it is; one whose watch lags does not.
func TestHasShown(t *testing.T) {
	follows(t, 1000, func(t *testing.T, s *apiserver.Server, w *Watcher, told func(string) string) {
		bound(t, s, "p1")
		time.Sleep(time.Second)
		s.Delete("pods", "ns", "p2")
		time.Sleep(time.Second)
		there := s.Get("pods", "ns", "p1").GetResourceVersion()
		other := w.Shown()
		if !AsFar(other["pods"], there) || AsFar(there, other["pods"]) || !w.HasShown(other) {
			t.Errorf("shown %v; p1 has the version %s, and p2 was deleted after it", other, there)
		}
		for i := range 100 { // leases, say: the versions go on, the pods do not
			_ = s.Create(&v1.Service{ObjectMeta: metaOf("other", i)})
		}
		if now := w.Shown(); now["pods"] != other["pods"] {
			t.Errorf("shown %v, and %v when others changed", other, now)
		}
		s.Lag = func(_, _ string, c *apiserver.Change) time.Time { return c.At.Add(10 * time.Second) }
		bound(t, s, "p3")
		ahead := maps.Clone(other)
		ahead["pods"] = s.Get("pods", "ns", "p3").GetResourceVersion()
		if w.HasShown(ahead) {
			t.Error("it is said to have shown what its watch has not")
		}
		time.Sleep(11 * time.Second)
		if !w.HasShown(ahead) || told("p3") != "n" {
			t.Errorf("not shown: %v of %v", w.Shown(), ahead)
		}
		for name, strange := range map[string]map[string]string{"nothing": {}, "no version": {"pods": "x", "nodes": "y"}} {
			if w.HasShown(strange) {
				t.Errorf("%s: counts as shown", name)
			}
		}
	})
}

func metaOf(name string, n int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint(name, n)}
}
