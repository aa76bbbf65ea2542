package e2e

import (
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/lab/chaos"
	"github.com/berth-scheduler/berth/lab/cluster"
)

// Two replicas under the enemy for a while: no node gets more than it has room
// for, nobody binds without the lease, and in the end every pod is bound and
// nobody writes anything. `berth-lab chaos` does this for longer.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	r, err := chaos.Run(t.Context(), t.Output(), chaos.Options{
		Time: 30 * time.Second, Nodes: 20, Replicas: 2, Seed: 1,
		Binary: filepath.Join(programs(t), cluster.Berth),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Violations {
		t.Error(v)
	}
	if r.Bindings < 80 || len(r.Faults) < 2 {
		t.Errorf("%d bindings under %d faults: hardly anything happened", r.Bindings, len(r.Faults))
	}
}

// etcd is restored from a backup that was made before the pods were bound, as it
// happens after the loss of a control plane. The scheduler, which goes on, finds
// that its bindings are undone and makes them again.
func TestRestoredEtcd(t *testing.T) {
	f := newFieldOn(t, start(t, cluster.Options{}, 0), "restored")
	f.regrets = regexp.MustCompile(alarms) // a server that has just started knows nobody's rights yet
	f.sameNodes(2, "4", 110)
	f.create(f.podsOf("first", 4, "1")...)
	backup := filepath.Join(t.TempDir(), "etcd")
	if err := f.cluster.BackupEtcd(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	f.berth(cluster.SchedulerOptions{})
	f.await("the first pods to be bound", func() string { return missing(bound(f.listed()), 4) })
	if err := f.cluster.RestoreEtcd(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	f.create(f.podsOf("second", 4, "1")...)
	f.await("all pods to be bound", func() string { return missing(bound(f.listed()), 8) })
	f.checkRoom()
}
