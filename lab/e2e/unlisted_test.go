package e2e

import (
	"context"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/proxy"
)

// forbidding is a proxy before the API server that forbids to list and watch a
// resource. allow ends that.
func (f *field) forbidding(resource string) (p *proxy.Proxy, allow func()) {
	f.Helper()
	upstream, err := clientcmd.BuildConfigFromFlags("", f.cluster.Kubeconfig(cluster.Berth))
	if err != nil {
		f.Fatal(err)
	}
	pki := filepath.Join(f.cluster.Dir(), "pki", cluster.APIServer)
	p, err = proxy.Start(upstream, pki+".crt", pki+".key")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { p.Close() })
	f.regrets = regexp.MustCompile(alarms)
	return p, p.Inject(proxy.Fault{Status: http.StatusForbidden, On: func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+resource)
	}})
}

// A replica that may not list a kind that only some plugins read places all pods
// but those that need it. These fail with a reason that names the kind, and so
// does /readyz/missing, while /readyz names nothing; when the right is there they are placed.
func TestUnlistedKind(t *testing.T) {
	f := newField(t, "unlisted")
	f.sameNodes(3, "30", 110)
	p, allow := f.forbidding("persistentvolumes")
	berth := f.berth(cluster.SchedulerOptions{LeaderElect: true, Flags: []string{"--master=" + p.URL}})
	if _, body := f.ask(berth, client{}, "/readyz?verbose"); !strings.Contains(body, "some kinds of objects cannot be listed; see /readyz/missing") || strings.Contains(body, "persistentvolumes") {
		t.Errorf("/readyz says %s", body)
	}
	f.awaitAdmin(berth)
	if _, body := f.ask(berth, client{config: f.cluster.AdminConfig()}, "/readyz/missing"); !strings.Contains(body, "persistentvolumes: forbidden") {
		t.Errorf("/readyz/missing says %s", body)
	}
	wants := f.pod("wants-a-volume", "1")
	wants.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "none"}}}}
	f.create(wants)
	f.create(f.podsOf("plain", 20, "1")...)
	f.awaitBound(20)
	said := func() string {
		pod := f.get(wants.Name)
		if pod == nil {
			return "no pod"
		}
		if c := condition(pod, corev1.PodScheduled); c != nil {
			return c.Reason + ": " + c.Message
		}
		return "no condition"
	}
	f.await("the reason", func() string {
		if got := said(); !strings.Contains(got, "SchedulerError") || !strings.Contains(got, "of the kind PersistentVolume cannot be listed") {
			return got
		}
		return ""
	})
	allow()
	f.await("the kind to be listed, and the pod to be rejected for its claim", func() string {
		if got := said(); !strings.Contains(got, `persistentvolumeclaim "none" not found`) {
			return got
		}
		return ""
	})
	if _, body := f.ask(berth, client{}, "/readyz?verbose"); strings.Contains(body, "missing") {
		t.Errorf("/readyz says %s", body)
	}
}

// A replica that cannot list what all decisions need does not apply for the
// lease: another, which can, leads at once. When it can, it is ready.
func TestUnreadableCluster(t *testing.T) {
	f := newField(t, "unreadable")
	f.sameNodes(3, "30", 110)
	holders := f.watchLease()
	p, allow := f.forbidding("namespaces")
	started := make(chan error, 1)
	var blind *cluster.Scheduler
	options := replica("5s")
	options.Kind, options.Binary = cluster.Berth, filepath.Join(programs(t), cluster.Berth)
	options.Flags = []string{"-v=2", "--master=" + p.URL}
	go func() {
		s, err := f.cluster.StartScheduler(context.WithoutCancel(f.Context()), options)
		blind = s
		started <- err
	}()
	f.await("lists to fail", func() string {
		return missing(min(p.Count(func(e proxy.Exchange) bool { return e.Status == http.StatusForbidden }), 3), 3)
	})
	before := len(holders.seen())
	f.berth(replica("5s"))
	f.create(f.podsOf("pod", 20, "1")...)
	f.awaitBound(20)
	if seen := holders.seen(); len(seen) > before+1 {
		t.Errorf("holders of the lease: %q", seen)
	}
	allow()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	f.terminate(blind)
}

// A lease that somebody deletes is made again, and its holder goes on.
func TestLeaseDeleted(t *testing.T) {
	f := newField(t, "lease-deleted")
	f.sameNodes(3, "30", 110)
	berth := f.berth(replica("5s"))
	leases := f.client.CoordinationV1().Leases(metav1.NamespaceSystem)
	held := func() *coordinationv1.Lease {
		lease, err := leases.Get(f.Context(), "kube-scheduler", metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "") {
			return nil
		}
		if err != nil {
			f.Fatal(err)
		}
		return lease
	}
	f.await("the leader", func() string {
		if held() == nil {
			return "no lease"
		}
		return ""
	})
	first := held()
	if err := leases.Delete(f.Context(), "kube-scheduler", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.await("the lease to be made again", func() string {
		if lease := held(); lease == nil || lease.UID == first.UID || *lease.Spec.HolderIdentity != *first.Spec.HolderIdentity {
			return "not yet"
		}
		return ""
	})
	f.create(f.podsOf("pod", 20, "1")...)
	f.awaitBound(20)
	if !running(berth) {
		t.Error("the leader ended")
	}
}

// An API server that is a minor release older is served: a v1.36 server that
// emulates it.
func TestOlderAPIServer(t *testing.T) {
	c := start(t, cluster.Options{WithoutControllers: true, WithoutKWOK: true, APIServerFlags: []string{"--emulated-version=1.35"}}, 1)
	_, err := c.StartScheduler(t.Context(), cluster.SchedulerOptions{Kind: cluster.Berth, Binary: filepath.Join(programs(t), cluster.Berth)})
	if err != nil {
		t.Fatal(err)
	}
	awaitPlaced(t, c, "pod")
}
