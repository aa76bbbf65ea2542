package chaos

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/lab/proxy"
)

// A binding without the lease is found, whoever else has it, and one under a
// lease is not.
func TestUnleased(t *testing.T) {
	begin := time.Unix(1000, 0)
	lease := func(second int) proxy.Exchange {
		return proxy.Exchange{Method: http.MethodPut, Path: "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler",
			Status: 200, Came: begin.Add(time.Duration(second) * time.Second)}
	}
	bind := func(second int) proxy.Exchange {
		return proxy.Exchange{Method: http.MethodPost, Path: fmt.Sprintf("/api/v1/namespaces/chaos/pods/%ds/binding", second),
			Came: begin.Add(time.Duration(second) * time.Second)}
	}
	refused := lease(18)
	refused.Status = http.StatusConflict
	got := unleased(merge([][]proxy.Exchange{
		{bind(-1), lease(0), bind(3), bind(16), bind(22)},
		{refused, bind(19), lease(21), bind(23)},
	}))
	want := []string{"pods/-1s/binding before any lease", "pods/16s/binding 16s after", "pods/19s/binding when replica 0", "pods/22s/binding when replica 1"}
	if len(got) != len(want) {
		t.Fatalf("%d found: %q", len(got), got)
	}
	for i, w := range want {
		if !strings.Contains(got[i], w) {
			t.Errorf("%q, want %q", got[i], w)
		}
	}
}

// Reads, leases, the last counts of Events and what is older are no writes that break
// the silence. An Event that is late is one.
func TestWrites(t *testing.T) {
	since := time.Unix(1000, 0)
	exchange := func(method, path string, at time.Time) proxy.Exchange {
		return proxy.Exchange{Method: method, Path: path, Came: at}
	}
	got := writes(merge([][]proxy.Exchange{{
		exchange(http.MethodPost, "/old/binding", since.Add(-time.Second)),
		exchange(http.MethodGet, "/api/v1/pods", since),
		exchange(http.MethodPut, "/leases/kube-scheduler", since),
		exchange(http.MethodPatch, "/apis/events.k8s.io/v1/namespaces/chaos/events/a.1", since),
		exchange(http.MethodPost, "/api/v1/namespaces/chaos/pods/a/binding", since),
		exchange(http.MethodPost, "/apis/events.k8s.io/v1/namespaces/chaos/events", since),
	}}), since)
	if len(got) != 2 || !got[0].binding() || got[1].binding() {
		t.Errorf("%+v", got)
	}
}

// A node that has more than its room for long is found, and so is a pod that
// changes its node. What is made good at once is not.
func TestHistory(t *testing.T) {
	h := &history{room: 4000, pods: map[string]placed{}, used: map[string]int64{}, over: map[string]time.Time{}}
	pod := func(uid, node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)}, Spec: corev1.PodSpec{NodeName: node,
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}}}
	}
	later := func() time.Time { return time.Now().Add(2 * tolerance) }
	for i := range 4 {
		h.see(pod(fmt.Sprint(i), "n1"))
	}
	h.see(pod("5", ""))
	if h.look(later()); len(h.found()) != 0 || len(h.pending()) != 1 {
		t.Fatalf("found %q, pending %q", h.found(), h.pending())
	}
	h.see(pod("5", "n1")) // before its predecessor is seen to go
	h.forget(pod("0", "n1"))
	if h.look(later()); len(h.found()) != 0 {
		t.Fatalf("found %q", h.found())
	}
	h.see(pod("6", "n1"))
	if h.look(later()); len(h.found()) != 1 || !strings.Contains(h.found()[0], "5000 of 4000") {
		t.Fatalf("found %q, want a node with too much", h.found())
	}
	h.see(pod("6", "n2"))
	if h.look(later()); len(h.found()) != 2 || !strings.Contains(h.found()[1], `was on n1 and is on "n2"`) {
		t.Fatalf("found %q, want a pod that moved", h.found())
	}
}

// Each fault is drawn as often as its weight says.
func TestPick(t *testing.T) {
	counts := map[string]int{}
	for n := range weight(faults) {
		counts[pick(faults, n).name]++
	}
	for _, f := range faults {
		if counts[f.name] != f.weight {
			t.Errorf("%s: drawn %d times of %d", f.name, counts[f.name], f.weight)
		}
	}
}
