package kube

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/sim/apiserver"
)

// audited runs a test with a watcher that audits.
func audited(t *testing.T, test func(t *testing.T, s *apiserver.Server, w *Watcher, told func(string) string)) {
	follows(t, 3, func(t *testing.T, s *apiserver.Server, w *Watcher, told func(string) string) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Audit(ctx) }()
		test(t, s, w, told)
		cancel()
		<-done
	})
}

func storeOf(w *Watcher, resource string) *store {
	for _, s := range w.stores {
		if s.resource() == resource {
			return s
		}
	}
	return nil
}

// Where all is known as it is, nothing is repaired, whatever goes on.
func TestAuditFindsNothing(t *testing.T) {
	audited(t, func(t *testing.T, s *apiserver.Server, w *Watcher, _ func(string) string) {
		s.Lag = func(_, _ string, c *apiserver.Change) time.Time { return c.At.Add(2 * time.Second) }
		for range 3000 { // half an hour
			s.Delete("pods", "ns", "p9")
			_ = s.Create(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p9"}})
			_ = s.Update("pods", "ns", "p1", func(o apiserver.Object) {
				o.SetLabels(map[string]string{"at": time.Now().Format("150405.000")})
			})
			time.Sleep(600 * time.Millisecond)
		}
		if n := w.Audits(); n != 0 {
			t.Errorf("%d repairs", n)
		}
	})
}

// An event that never came, and a deletion that never came, are made up for.
func TestAuditFindsLostEvents(t *testing.T) {
	audited(t, func(t *testing.T, s *apiserver.Server, w *Watcher, told func(string) string) {
		pods := storeOf(w, "pods")
		bound(t, s, "p1")
		time.Sleep(time.Second)
		pods.forget(types.NamespacedName{Namespace: "ns", Name: "p1"}) // as if it had not come
		ghost := owner{types.NamespacedName{Namespace: "ns", Name: "ghost"}, "ghost", "100"}
		pods.markObject(ghost)
		time.Sleep(11 * time.Minute)
		pods.moving.Lock()
		_, known := pods.seen[types.NamespacedName{Namespace: "ns", Name: "p1"}]
		_, haunts := pods.seen[ghost.NamespacedName]
		pods.moving.Unlock()
		if !known || haunts || w.Audits() != 2 {
			t.Errorf("p1 is known: %t; the ghost, too: %t; %d repairs", known, haunts, w.Audits())
		}
	})
}

// A read that nobody answers is given up: the next audit finds what there is to find.
func TestAuditWithoutAnAnswer(t *testing.T) {
	follows(t, 3, func(t *testing.T, s *apiserver.Server, w *Watcher, _ func(string) string) {
		read, hangs := w.audit.read, true
		w.audit.read = func(ctx context.Context, of schema.GroupVersionResource, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
			if hangs {
				hangs = false
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return read(ctx, of, o)
		}
		storeOf(w, "pods").forget(types.NamespacedName{Namespace: "ns", Name: "p1"}) // as if it had not come
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Audit(ctx) }()
		time.Sleep(15 * time.Minute)
		if n := w.Audits(); n != 1 {
			t.Errorf("%d repairs", n)
		}
		cancel()
		<-done
	})
}

// A backup is restored, and other changes have passed the versions that are known
// before a watch asks: the API gives no sign of it.
func TestAuditFindsARestoredBackup(t *testing.T) {
	audited(t, func(t *testing.T, s *apiserver.Server, w *Watcher, told func(string) string) {
		b := s.Backup()
		bound(t, s, "p1")
		time.Sleep(time.Second)
		s.Restore(b, 0)
		for range 3 {
			_ = s.Update("pods", "ns", "p2", func(o apiserver.Object) {
				o.SetLabels(map[string]string{"at": o.GetResourceVersion()})
			})
		}
		time.Sleep(time.Minute)
		if told("p1") != "n" || w.Rewinds() != 0 {
			t.Fatalf("p1 is on node %q, %d rewinds: the backup was noticed", told("p1"), w.Rewinds())
		}
		time.Sleep(11 * time.Minute)
		if told("p1") != "" || w.Audits() == 0 || w.Rewinds() == 0 {
			t.Errorf("p1 is on node %q; %d repairs, %d rewinds", told("p1"), w.Audits(), w.Rewinds())
		}
	})
}
