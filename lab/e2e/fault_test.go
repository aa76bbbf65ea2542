package e2e

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-scheduler/berth/lab/cluster"
	"github.com/berth-scheduler/berth/lab/proxy"
)

// proxied starts a proxy before the cluster's API server, and Berth behind it.
func (f *field) proxied() (*proxy.Proxy, *cluster.Scheduler) {
	f.Helper()
	p := f.proxy()
	return p, f.berth(cluster.SchedulerOptions{Flags: []string{"--master=" + p.URL}})
}

// proxy starts a proxy before the cluster's API server, which sends on as Berth
// what comes to it.
func (f *field) proxy() *proxy.Proxy {
	f.Helper()
	upstream, err := clientcmd.BuildConfigFromFlags("", f.cluster.Kubeconfig(cluster.Berth))
	if err != nil {
		f.Fatal(err)
	}
	// Clients trust the proxy as they trust the server: it shows the same certificate.
	pki := filepath.Join(f.cluster.Dir(), "pki", cluster.APIServer)
	p, err := proxy.Start(upstream, pki+".crt", pki+".key")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { p.Close() })
	return p
}

func isBinding(method, path string) bool {
	return method == http.MethodPost && strings.HasSuffix(path, "/binding")
}

// The fault of kube-scheduler that gives room away twice: bindings take effect, their
// replies are lost, and the watch, which would show them, is frozen. Reads fail
// too for a while. Pods that wait for room must not get that of the bound ones,
// whatever requeues them.
func TestLostRepliesAndFrozenWatch(t *testing.T) {
	const nodes = 6
	f := newField(t, "lost")
	p, berth := f.proxied()
	pods := f.podsOf("one", 2*nodes, "1")
	f.create(pods...)
	f.await("the scheduler to know all pods", func() string { return missing(rejected(f.seen("")), len(pods)) })

	thaw := p.Inject(proxy.Fault{Freeze: true, On: func(r *http.Request) bool {
		return r.URL.Path == "/api/v1/pods" && r.URL.Query().Has("watch")
	}})
	find := p.Inject(proxy.Fault{LoseReply: true, On: func(r *http.Request) bool { return isBinding(r.Method, r.URL.Path) }})
	read := p.Inject(proxy.Fault{Status: http.StatusServiceUnavailable, On: func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/"+f.name+"/pods/")
	}})
	defer func() { thaw(); find(); read() }()

	// Room for one pod a node; the last node comes when the first are taken.
	for i := range nodes - 1 {
		f.addNodes(f.node(i, "1", 110))
	}
	f.awaitBound(nodes - 1)
	f.await("replies to be lost", func() string { return missing(p.Count(lostBinding), nodes-1) })
	f.await("reads to fail", func() string { return missing(min(p.Count(failedRead), nodes-1), nodes-1) })
	find()
	f.addNodes(f.node(nodes-1, "1", 110))
	f.awaitBound(nodes)
	for i := range nodes { // each a change that may help a pod that waits
		f.label(f.nodeName(i))
	}
	f.await("the pods that wait to be tried in vain", func() string {
		return missing(min(f.metric(berth, "scheduler_schedule_attempts_total", `result="unschedulable"`), 2*nodes+nodes), 2*nodes+nodes)
	})
	f.checkRoom()

	read()
	f.awaitScheduledOnce() // settled by reads, the watch is frozen still
	thaw()
	f.addNodes(f.node(nodes, "64", 110))
	f.awaitBound(2 * nodes)
	f.awaitScheduledOnce()
	f.checkRoom()
	if n := p.Count(func(e proxy.Exchange) bool { return isBinding(e.Method, e.Path) && e.Status == http.StatusCreated }); n != 2*nodes {
		t.Errorf("%d bindings took effect, want %d", n, 2*nodes)
	}
}

func lostBinding(e proxy.Exchange) bool { return isBinding(e.Method, e.Path) && e.Lost }

func failedRead(e proxy.Exchange) bool {
	return e.Method == http.MethodGet && e.Status == http.StatusServiceUnavailable
}

// label changes a label of a node.
func (f *field) label(node string) {
	f.Helper()
	patch := []byte(`{"metadata":{"labels":{"touched":"true"}}}`)
	if _, err := f.client.CoreV1().Nodes().Patch(f.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		f.Fatal(err)
	}
}

// Status patches and events that the server does not take hold no binding up.
func TestStatusAndEventsRefused(t *testing.T) {
	f := newField(t, "refused")
	f.sameNodes(5, "40", 110)
	p, _ := f.proxied()
	heal := []func(){
		p.Inject(proxy.Fault{Status: http.StatusInternalServerError, On: func(r *http.Request) bool {
			return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status")
		}}),
		p.Inject(proxy.Fault{Status: http.StatusTooManyRequests, On: func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events")
		}}),
	}
	f.create(f.podsOf("giant", 50, "64")...) // a status patch and an event each
	f.create(f.podsOf("one", 200, "1")...)
	f.awaitBound(200)
	f.await("faults to have struck", func() string {
		return missing(min(refused(p, http.MethodPatch, 500), 50)+min(refused(p, http.MethodPost, 429), 50), 50+50)
	})
	if n := rejected(f.seen("")); n != 0 {
		t.Errorf("%d pods have a status that the server did not take", n)
	}
	for _, heal := range heal {
		heal()
	}
	f.addNodes(f.node(5, "80", 110)) // they are tried again, and one fits
	f.awaitBound(201)
	f.await("the conditions of the others", func() string { return missing(rejected(f.seen("")), 49) })
	f.checkRoom()
}

func refused(p *proxy.Proxy, method string, status int) int {
	return p.Count(func(e proxy.Exchange) bool { return e.Method == method && e.Status == status && !e.Forwarded })
}

// The API server is killed and comes back, with the data that etcd kept, while
// a scheduler that binds 20 pods a second is at work.
func TestAPIServerRestart(t *testing.T) {
	const nodes, room = 10, 30
	f := newField(t, "restart")
	f.regrets = regexp.MustCompile(alarms) // a server that has just started knows nobody's rights yet
	f.sameNodes(nodes, "30", 110)
	f.create(f.podsOf("first", nodes*room/2, "1")...)
	f.berth(cluster.SchedulerOptions{Config: []byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {qps: 20, burst: 10}
`)})
	f.await("some pods to be bound", func() string { return missing(min(bound(f.seen("")), room), room) })
	before := bound(f.seen(""))
	if err := f.cluster.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if before >= nodes*room/2 {
		t.Errorf("%d pods were bound already: the server was not restarted in the middle", before)
	}
	f.create(f.podsOf("second", nodes*room/2, "1")...)
	f.await("all pods to be bound", func() string { return missing(bound(f.listed()), nodes*room) })
	f.checkRoom()
	f.create(f.pod("one-too-many", "1"))
	f.awaitRejected("one-too-many", "0/10 nodes are available: 10 Insufficient cpu. "+
		"preemption: 0/10 nodes are available: 10 No preemption victims found for incoming pod.")
}

// listed reads the field's pods from the API.
func (f *field) listed() []*corev1.Pod {
	f.Helper()
	list, err := f.client.CoreV1().Pods(f.name).List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range pods {
		pods[i] = &list.Items[i]
	}
	return pods
}
