package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// replica is a scheduler's configuration for a lease that lasts so long after
// its last renewal in the eyes of this candidate.
func replica(leaseDuration string) cluster.SchedulerOptions {
	return cluster.SchedulerOptions{LeaderElect: true, Config: []byte(fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaseDuration: %s
  renewDeadline: 3s
  retryPeriod: 500ms
`, leaseDuration))}
}

// Of two replicas one leads. When it is killed the other takes over after the
// lease has run out; when that one is asked to stop, it gives the lease up, and
// a third, which would wait an hour for it to run out, leads at once.
func TestReplicas(t *testing.T) {
	f := newField(t, "replicas")
	f.sameNodes(10, "30", 110)
	holders := f.watchLease()

	first := f.berth(replica("5s"))
	f.await("the first leader", func() string { return missing(len(holders.seen()), 1) })
	second := f.berth(replica("5s"))
	f.background("the first pods", f.podsOf("first", 100, "1"))
	f.awaitBound(100)
	if seen := holders.seen(); len(seen) != 1 {
		t.Errorf("holders of the lease so far: %q, want one", seen)
	}

	first.Kill()
	f.background("pods that nobody leads for", f.podsOf("second", 100, "1"))
	f.awaitBound(200)
	if seen := holders.seen(); len(seen) != 2 || seen[1] == "" {
		t.Errorf("holders of the lease so far: %q, want a second one", seen)
	}

	third := f.berth(replica("1h"))
	f.background("pods during the change", f.podsOf("third", 100, "1"))
	f.terminate(second)
	f.awaitBound(300)
	f.checkRoom()
	seen := holders.seen()
	if len(seen) != 4 || seen[2] != "" || seen[3] == "" || seen[3] == seen[1] {
		t.Errorf("holders of the lease: %q, want it released and taken by a third", seen)
	}
	f.terminate(third)
	f.await("the lease to be released", func() string { return missing(len(holders.seen()), 5) })
	if seen := holders.seen(); seen[4] != "" {
		t.Errorf("holders of the lease: %q, want it released at last", seen)
	}
	for name, events := range f.eventsOn("Scheduled") {
		if len(events) != 1 {
			t.Errorf("pod %s: %d Scheduled events", name, len(events))
		}
	}
}

// holders is who has held a lease, in order, "" when nobody did.
type holders struct {
	mu  sync.Mutex
	all []string
}

func (h *holders) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

// dropLease deletes what an earlier test left of a lease.
func (f *field) dropLease(name string) {
	f.Helper()
	leases := f.client.CoordinationV1().Leases(metav1.NamespaceSystem)
	if err := leases.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		f.Fatal(err)
	}
}

// watchLease watches who holds the schedulers' lease from now on.
func (f *field) watchLease() *holders {
	f.Helper()
	f.dropLease("kube-scheduler")
	h := &holders{}
	note := func(obj any) {
		holder := ""
		if lease := obj.(*coordinationv1.Lease); lease.Spec.HolderIdentity != nil {
			holder = *lease.Spec.HolderIdentity
		}
		h.mu.Lock()
		if len(h.all) == 0 || h.all[len(h.all)-1] != holder {
			h.all = append(h.all, holder)
		}
		h.mu.Unlock()
		f.signal()
	}
	factory := informers.NewSharedInformerFactoryWithOptions(f.client, 0, informers.WithNamespace(metav1.NamespaceSystem),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, "kube-scheduler").String()
		}))
	_, err := factory.Coordination().V1().Leases().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: note, UpdateFunc: func(_, obj any) { note(obj) },
	})
	if err != nil {
		f.Fatal(err)
	}
	watching, stop := context.WithCancel(context.Background())
	f.Cleanup(func() { stop(); factory.Shutdown() })
	factory.StartWithContext(watching)
	return h
}
