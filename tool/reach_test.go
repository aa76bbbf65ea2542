package tool

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
)

// smallCluster is an API server with a node, a pod that fits there, and leases.
type smallCluster struct {
	apiWithLeases
	leasesRefused bool
}

func (s *smallCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path := r.URL.Path
	switch {
	case strings.Contains(path, "/leases") && s.leasesRefused:
		s.refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "leases are not for you")
		return
	case strings.Contains(path, "/leases"), strings.HasSuffix(path, "/subjectaccessreviews"), strings.Contains(path, "/namespaces/team-b/"):
		s.apiWithLeases.ServeHTTP(w, r)
		return
	}
	list := any(nil)
	switch meta := (metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}); {
	case strings.HasSuffix(path, "/v1/nodes"):
		list = v1.NodeList{TypeMeta: meta, Items: []v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("10")}}}}}
	case strings.HasSuffix(path, "/api/v1/pods"):
		meta.Kind = "PodList"
		list = v1.PodList{TypeMeta: meta, Items: []v1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "u"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}}}
	case strings.HasSuffix(path, "/events"):
		meta.Kind = "EventList"
		list = v1.EventList{TypeMeta: meta}
	}
	kinds := append(append([]decode.Kind(nil), decode.Kinds...), manifest.OfNewPods...)
	for i := range kinds {
		if k := &kinds[i]; list == nil && strings.HasSuffix(path, k.GroupVersion.String()+"/"+k.Resource) {
			list = &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: k.GroupVersion.String(), Kind: k.Name + "List"}}
		}
	}
	if list == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(list)
}

// Where a pod of a running cluster fits now and nobody renews the lease, that comes first, and
// is no success. kube-scheduler's lease counts as Berth's does. A lease that is well, or none, says
// nothing, and one that cannot be read is a note.
func TestWhyReadsTheLease(t *testing.T) {
	renewed := func(ago time.Duration) func(*smallCluster) {
		return func(s *smallCluster) {
			s.set("kube-system/kube-scheduler", "master_1", "", 0)
			seconds := int32(600)
			s.leases["kube-system/kube-scheduler"].Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-ago)}
			s.leases["kube-system/kube-scheduler"].Spec.LeaseDurationSeconds = &seconds
		}
	}
	const fits = "shop/web-0 fits now: its next attempt places it on n1."
	for name, c := range map[string]struct {
		spoil      func(*smallCluster)
		has, lacks string
	}{
		"none":    {func(*smallCluster) {}, fits, "obody schedules"},
		"well":    {renewed(0), fits, "obody schedules"},
		"expired": {renewed(time.Hour), "Nobody schedules: the lease kube-system/kube-scheduler was not renewed for 1h0m0", fits},
		"late":    {renewed(400 * time.Second), "The lease kube-system/kube-scheduler was not renewed for 6m40", fits},
		"another is well": {func(s *smallCluster) {
			renewed(0)(s)
			s.set("team-a/mine", "mine-1_1", "mine-1_1", 0)
		}, fits, "obody schedules"},
		"changing": {func(s *smallCluster) {
			renewed(0)(s)
			many := int32(5)
			s.leases["kube-system/kube-scheduler"].Spec.LeaseTransitions = &many
			s.leases["kube-system/kube-scheduler"].Spec.AcquireTime = &metav1.MicroTime{Time: time.Now()}
		}, "note: the lease kube-system/kube-scheduler changed hands 5 times; the last at ", "obody schedules"},
		"ahead": {renewed(-time.Hour - time.Second), "The lease kube-system/kube-scheduler was renewed 1h0m", fits},
		"anybody's is well": {func(s *smallCluster) {
			renewed(time.Hour)(s)
			evil := podOn("team-b", "evil-1", "", nil)
			evil.Spec.ServiceAccountName = "evil"
			s.pods = append(s.pods, evil)
			s.set("team-b/evil", "evil-1_1", "evil-1_1", 0)
			s.leases["team-b/evil"].Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
		}, "Nobody schedules: the lease kube-system/kube-scheduler was not renewed for 1h0m0", fits},
		"refused": {func(s *smallCluster) { s.leasesRefused = true }, "leases are not for you; whether anybody schedules is not known", "obody schedules"},
	} {
		a := &smallCluster{}
		c.spoil(a)
		server := httptest.NewServer(a)
		kubeconfig := kubeconfigFor(t, server.URL)
		want := exitWaiting
		if c.lacks != fits {
			want = 0
		}
		if status, out, errs := berth("", "why", "shop/web-0", "--kubeconfig", kubeconfig); status != want || !strings.Contains(out+errs, c.has) || strings.Contains(out+errs, c.lacks) {
			t.Errorf("%s: why: %d\n%s%s", name, status, out, errs)
		}
		if status, out, errs := berth("", "why", "--all", "--kubeconfig", kubeconfig); c.has != fits && !strings.Contains(out+errs, c.has) || status != exitWaiting || !strings.Contains(out, "1 pod, fitting now") {
			t.Errorf("%s: why --all: %d\n%s%s", name, status, out, errs)
		}
		server.Close()
	}
}

// Pods of another name than kube-scheduler's are placed by a Berth, so that kube-scheduler's lease
// says nothing of them.
func TestLeaseOfTheScheduler(t *testing.T) {
	s := &smallCluster{}
	now, seconds := time.Now(), int32(600)
	for name, says := range map[string]string{"kube-scheduler": "", "berth-scheduler": "berth-7f9_1"} {
		s.set("kube-system/"+name, "berth-7f9_1", says, 0)
		s.leases["kube-system/"+name].Spec.LeaseDurationSeconds = &seconds
		s.leases["kube-system/"+name].Spec.RenewTime = &metav1.MicroTime{Time: now}
	}
	s.leases["kube-system/berth-scheduler"].Spec.RenewTime = &metav1.MicroTime{Time: now.Add(-time.Hour)}
	server := httptest.NewServer(s)
	defer server.Close()
	for scheduler, want := range map[string]string{v1.DefaultSchedulerName: "", "": "", "berth": "nobody schedules: the lease kube-system/berth-scheduler was not renewed for 1h0m0"} {
		said, _, err := stalled(t.Context(), &rest.Config{Host: server.URL}, "", scheduler)
		if err != nil || (want == "") != (said == "") || !strings.HasPrefix(said, want) {
			t.Errorf("%q: %q %v", scheduler, said, err)
		}
	}
}

// hung is the address of a process that is stopped: its port takes connections, and nobody
// answers there.
func hung(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "https://" + l.Addr().String()
}

// A scheduler that hangs is named as one that does not answer, with what its lease says. `why` answers
// from the API server instead; `status` shows the rest.
func TestSchedulerThatHangs(t *testing.T) {
	defer func(usual time.Duration) { reachTime = usual }(reachTime)
	reachTime = 10 * time.Millisecond
	a := &smallCluster{}
	a.set("kube-system/kube-scheduler", "master_1", "", 0)
	server := httptest.NewTLSServer(a) // over http no credentials are sent
	defer server.Close()
	kubeconfig := kubeconfigFor(t, server.URL)
	text := strings.Replace(textOf(t, kubeconfig), "{server:", "{insecure-skip-tls-verify: true, server:", 1)
	write(t, kubeconfig, text)
	way := []string{"--kubeconfig", kubeconfig, "--daemon", hung(t), "--insecure-skip-tls-verify"}
	for call, want := range map[string]int{"why shop/web-0": exitWaiting, "why --all": exitWaiting, "top --once": exitInvalid, "events shop/web-0": exitInvalid} {
		status, out, errs := berth("", append(strings.Fields(call), way...)...)
		for _, says := range []string{"does not answer: no connection came about in time; nobody schedules: the lease kube-system/kube-scheduler was not renewed for ", `"berth status" says who leads`} {
			if status != want || !strings.Contains(errs, says) || strings.Contains(errs, "TLS handshake") {
				t.Errorf("%s: %d, no %q in\n%s%s", call, status, says, out, errs)
			}
		}
		if strings.HasPrefix(call, "why") && (!strings.HasPrefix(out, "Nobody schedules: ") || !strings.Contains(errs, "; the answer is from the API server\n")) {
			t.Errorf("%s:\n%s%s", call, out, errs)
		}
	}
}

// A replica that does not lead says who does. If that holder does not renew its lease, the command
// says so: there is nobody else to ask.
func TestLeaderThatIsGone(t *testing.T) {
	a := &smallCluster{}
	a.set("kube-system/kube-scheduler", "dead_1", "dead_1", 0)
	server := httptest.NewTLSServer(a)
	defer server.Close()
	flags := scheduler(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(api.Problem{Head: api.Head{Kind: "Problem"}, Reason: api.NotLeading, Message: "this daemon does not lead: dead_1 does"})
	})
	kubeconfig := kubeconfigFor(t, server.URL)
	write(t, kubeconfig, strings.Replace(textOf(t, kubeconfig), "{server:", "{insecure-skip-tls-verify: true, server:", 1))
	flags[1] = kubeconfig
	if status, _, errs := berth("", append([]string{"top", "--once"}, flags...)...); status != exitInvalid || !strings.Contains(errs, "dead_1 does; ask that one, or --daemon auto; nobody schedules: the lease kube-system/kube-scheduler was not renewed for ") {
		t.Errorf("top: %d %s", status, errs)
	}
	if status, out, errs := berth("", append([]string{"why", "shop/web-0"}, flags...)...); status != exitWaiting || !strings.HasPrefix(out, "Nobody schedules: ") || !strings.Contains(errs, "the answer is from the API server") {
		t.Errorf("why: %d %s%s", status, out, errs)
	}
	seconds := int32(1 << 30)
	a.leases["kube-system/kube-scheduler"].Spec.LeaseDurationSeconds = &seconds
	a.leases["kube-system/kube-scheduler"].Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	if status, out, errs := berth("", append([]string{"why", "shop/web-0"}, flags...)...); status != exitInvalid || out != "" || strings.Contains(errs, "API server") {
		t.Errorf("why beside a leader that is well: %d %s%s", status, out, errs)
	}
}

func textOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
