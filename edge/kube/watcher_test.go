package kube

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
)

func versioned(name string, uid types.UID, version string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid, ResourceVersion: version}}
}

// Each change of the store becomes the events that the machine needs, in order, and no
// change becomes none.
func TestWatcher(t *testing.T) {
	tests := []struct {
		name string
		do   func(m *store) error
		want []string
	}{
		{"a new pod", func(m *store) error { return m.Add(versioned("b", "2", "20")) }, []string{"set ns/b 2"}},
		{"a changed pod", func(m *store) error { return m.Update(versioned("a", "1", "11")) }, []string{"set ns/a 1"}},
		{"nothing new", func(m *store) error { return m.Update(versioned("a", "1", "10")) }, nil},
		{"another pod of that name", func(m *store) error { return m.Update(versioned("a", "9", "90")) },
			[]string{"gone ns/a 1", "set ns/a 9"}},
		{"deleted", func(m *store) error { return m.Delete(versioned("a", "1", "12")) }, []string{"gone ns/a 1"}},
		{"deleted, never seen", func(m *store) error { return m.Delete(versioned("x", "1", "12")) }, nil},
		{"deleted, as another pod than was seen", func(m *store) error { return m.Delete(versioned("a", "9", "12")) },
			[]string{"gone ns/a 1"}},
		{"listed anew: one gone, one changed, one new", func(m *store) error {
			return m.Replace([]any{versioned("c", "3", "31"), versioned("d", "4", "40")}, "50")
		}, []string{"gone ns/a 1", "set ns/c 3", "set ns/d 4"}},
		{"listed anew: another pod of that name", func(m *store) error {
			return m.Replace([]any{versioned("a", "9", "90"), versioned("c", "3", "30")}, "50")
		}, []string{"gone ns/a 1", "set ns/a 9"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			s := &Watcher{logger: klog.Background()}
			m := newStore("pods", func(e machine.Event) { got = append(got, describe(e)) },
				s.guarded(entries(s.podSet), s.insteadOfPod), func(o owner) machine.Event {
					return machine.PodGone{UID: o.uid, Namespace: o.Namespace, Name: o.Name}
				})
			_ = m.Replace([]any{versioned("a", "1", "10"), versioned("c", "3", "30")}, "30")
			got = nil
			if err := tt.do(m); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// An object that cannot be decoded is counted, and stops no other. A node is
// then taken for gone; a pod that waits is out of the queue; one that runs
// keeps its room; of others the last readable state counts.
func TestBadObject(t *testing.T) {
	var got []string
	s := &Watcher{logger: klog.Background()}
	post := func(e machine.Event) { got = append(got, describe(e)) }
	bad := func(event func(any) *entry) func(any) *entry {
		return func(obj any) *entry {
			if m := obj.(metav1.ObjectMetaAccessor).GetObjectMeta(); m.GetResourceVersion() == "bad" {
				panic("cannot be")
			}
			return event(obj)
		}
	}
	running := versioned("runs", "3", "bad")
	running.Spec.NodeName = "n"
	pods := newStore("pods", post, s.guarded(bad(entries(s.podSet)), s.insteadOfPod), nil)
	if err := pods.Replace([]any{versioned("bad", "1", "bad"), running, versioned("good", "2", "20")}, "20"); err != nil {
		t.Fatal(err)
	}
	nodes := newStore("nodes", post, s.guarded(bad(entries(s.nodeSet)), insteadOfNode), nil)
	budgets := newStore("budgets", post, s.guarded(bad(entries(budgetSet)), nil), nil)
	for _, version := range []string{"1", "bad"} {
		meta := metav1.ObjectMeta{Name: "x", ResourceVersion: version}
		for _, err := range []error{nodes.Update(&v1.Node{ObjectMeta: meta}), budgets.Update(&policyv1.PodDisruptionBudget{ObjectMeta: meta})} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{"unreadable ns/bad 1: cannot be", "set ns/runs 3", "set ns/good 2", "set node x", "set budget /x", "gone node x"}
	if !slices.Equal(got, want) || s.BadObjects() != 4 {
		t.Errorf("got %q, %d bad objects", got, s.BadObjects())
	}
}

// TestBadVictim: an extender may be told as a whole of a pod that runs and cannot be
// decoded, as it may be a victim.
func TestBadVictim(t *testing.T) {
	p := versioned("runs", "3", "1")
	p.Spec.NodeName = "n"
	w := &Watcher{extenders: manager{of: "runs"}}
	if e := w.insteadOfPod(p, nil).(machine.PodSet); e.Pod.API != p {
		t.Errorf("it has %v", e.Pod.API)
	}
}

// Over the wire: lists, then watches, with the selector that leaves finished
// pods out; WatchList is tried first and refused.
func TestSource(t *testing.T) {
	meta := metav1.ListMeta{ResourceVersion: "7"}
	object := metav1.ObjectMeta{Namespace: "ns", Name: "f"}
	kind := func(name, version string) metav1.TypeMeta {
		return metav1.TypeMeta{Kind: name + "List", APIVersion: version}
	}
	lists := map[string]any{
		"/api/v1/namespaces": v1.NamespaceList{TypeMeta: kind("Namespace", "v1"), ListMeta: meta},
		"/api/v1/services": v1.ServiceList{TypeMeta: kind("Service", "v1"), ListMeta: meta,
			Items: []v1.Service{{ObjectMeta: object, Spec: v1.ServiceSpec{Selector: map[string]string{"app": "web"}}}}},
		"/api/v1/replicationcontrollers": v1.ReplicationControllerList{TypeMeta: kind("ReplicationController", "v1"), ListMeta: meta,
			Items: []v1.ReplicationController{{ObjectMeta: object}}},
		"/apis/apps/v1/replicasets": appsv1.ReplicaSetList{TypeMeta: kind("ReplicaSet", "apps/v1"), ListMeta: meta,
			Items: []appsv1.ReplicaSet{{ObjectMeta: object}}},
		"/apis/apps/v1/statefulsets": appsv1.StatefulSetList{TypeMeta: kind("StatefulSet", "apps/v1"), ListMeta: meta,
			Items: []appsv1.StatefulSet{{ObjectMeta: object}}},
	}
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
		q := r.URL.Query()
		isPods := strings.HasSuffix(r.URL.Path, "/pods")
		isBudgets := r.URL.Path == "/apis/policy/v1/poddisruptionbudgets"
		if isPods && q.Get("fieldSelector") != decode.Unfinished {
			t.Errorf("selector %q", q.Get("fieldSelector"))
		}
		switch {
		case q.Has("sendInitialEvents"):
			answer(w, 422, nil)
		case q.Has("watch") && isPods:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"type":"DELETED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"ns","name":"p","uid":"uid-1","resourceVersion":"8"}}}`))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case q.Has("watch"):
			<-r.Context().Done()
		case isPods:
			answer(w, 200, v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: meta, Items: []v1.Pod{*apiPod("p", "")}})
		case isBudgets:
			budget := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}}
			answer(w, 200, policyv1.PodDisruptionBudgetList{TypeMeta: metav1.TypeMeta{Kind: "PodDisruptionBudgetList", APIVersion: "policy/v1"},
				ListMeta: meta, Items: []policyv1.PodDisruptionBudget{budget}})
		case lists[r.URL.Path] != nil:
			answer(w, 200, lists[r.URL.Path])
		default:
			answer(w, 200, v1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: meta, Items: []v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}})
		}
	})
	clients, err := NewClients(s.config(), always)
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan string, 100)
	source := NewWatcher(clients, nil, func(e machine.Event) { events <- describe(e) }, klog.Background())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); source.Run(ctx) }()
	if !source.WaitForSync(ctx) {
		t.Fatal("not synced")
	}
	want := []string{"gone ns/p uid-1", "set budget ns/b", "set node n", "set ns/p uid-1",
		"set owner 1 ns/f map[app:web]", "set owner 2 ns/f map[]", "set owner 3 ns/f map[]", "set owner 4 ns/f map[]"}
	var got []string
	for range want {
		got = append(got, <-events)
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	cancel()
	<-done
	for _, c := range []rest.Interface{clients.Watch, clients.Policy, clients.Apps} {
		c.(*rest.RESTClient).Client.CloseIdleConnections()
	}
}

// Probe tries again until nodes may be listed.
func TestProbe(t *testing.T) {
	codes := []int{403, 200}
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
		code := codes[0]
		codes = codes[1:]
		answer(w, code, nil)
	})
	clients, err := NewClients(s.config(), always)
	if err != nil {
		t.Fatal(err)
	}
	if err := NewWatcher(clients, nil, nil, klog.Background()).Probe(t.Context()); err != nil {
		t.Error(err)
	}
	if len(codes) != 0 {
		t.Errorf("gave up with %v to come", codes)
	}
	for _, c := range []rest.Interface{clients.Watch, clients.Policy, clients.Apps} {
		c.(*rest.RESTClient).Client.CloseIdleConnections()
	}
}
