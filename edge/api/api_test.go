package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/access"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/loop"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/why"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// fixture is a machine with its records, served, and what stands for the API server:
// the pods by namespace/name.
type fixture struct {
	testing.TB
	mu        sync.Mutex // stands for the loop
	m         *machine.Machine
	r         *records.Recorder
	now       time.Time
	pods      map[string]*v1.Pod
	nodes     map[string]*v1.Node
	nodeReads atomic.Int32 // how often one was read
	leads     bool
	synced    bool
	copies    error
	deaf      bool // the loop does not answer
	fields    func(*v1.Pod) *v1.Pod
	// pageSize is how many pods the API server lists at a time.
	pageSize int
	stopped  chan struct{}
	options  Options
	reader   *access.Reader // who asks; nil: nobody guards the answers
	server   *httptest.Server
}

func newProfiles() ([]*profile.Profile, error) {
	return profile.BuildAll(config.Profiles(config.Default()), plugins.Registry(features.Plugins(features.New())))
}

func newFixture(t testing.TB) *fixture {
	profiles, err := newProfiles()
	if err != nil {
		t.Fatal(err)
	}
	options := machine.Options{Seed: 1, Workers: 1, InitialBackoff: time.Second, MaxBackoff: 10 * time.Second, MaxUnschedulable: 5 * time.Minute}
	withProfiles := options
	withProfiles.Profiles = profiles
	f := &fixture{TB: t, m: machine.New(withProfiles), r: records.New(0), now: start, pods: map[string]*v1.Pod{}, leads: true, synced: true, fields: func(p *v1.Pod) *v1.Pod { return p }, pageSize: 2, stopped: make(chan struct{})}
	f.r.Watch(f.m)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1/pods" {
			f.list(w, r)
			return
		}
		if name, of := strings.CutPrefix(r.URL.Path, "/api/v1/nodes/"); of && f.nodes[name] != nil {
			f.nodeReads.Add(1)
			_ = json.NewEncoder(w).Encode(f.nodes[name])
			return
		} else if of {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		parts := strings.Split(r.URL.Path, "/") // /api/v1/namespaces/NAMESPACE/pods/NAME
		p := f.pods[parts[4]+"/"+parts[6]]
		if p == nil || parts[5] != "pods" {
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Reason: metav1.StatusReasonNotFound, Code: 404})
			return
		}
		_ = json.NewEncoder(w).Encode(p)
	}))
	t.Cleanup(api.Close)
	core, err := corev1.NewForConfig(&rest.Config{Host: api.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	f.options = Options{
		Recorder: f.r, History: records.NewHistory(f.r), Build: Build{Version: "v0.9.0", Kubernetes: "v1.37.2", Gates: map[string]bool{"SchedulerAsyncPreemption": false}},
		Inspect: func(_ context.Context, look func(*machine.Machine)) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.deaf {
				return context.DeadlineExceeded
			}
			look(f.m)
			return nil
		},
		Status: func(context.Context) Status {
			return Status{Leads: f.leads, Lease: "kube-system/berth", Configuration: Configuration{Refused: &Refusal{Time: start, Reason: "bad file"}}}
		},
		Leads: func() bool { return f.leads }, Leader: func() string { return "berth-7f9_1234" }, Synced: func() bool { return f.synced },
		Profiles: func() ([]*profile.Profile, error) {
			if f.copies != nil {
				return nil, f.copies
			}
			return newProfiles()
		},
		PodFields: func(p *v1.Pod) *v1.Pod { return f.fields(p) },
		Machine:   options, Read: core.RESTClient(), Stopped: f.stopped,
		Now: func() time.Time {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.now
		},
	}
	f.serve()
	return f
}

// serve serves as the options say.
func (f *fixture) serve() {
	h := Handler(f.options)
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		as := request.WithUser(r.Context(), &user.DefaultInfo{Name: r.Header.Get("User")})
		if f.reader != nil {
			as = access.With(as, f.reader)
		}
		h.ServeHTTP(w, r.WithContext(as))
	}))
	f.Cleanup(f.server.Close)
}

// list is a page of the pods without a node, by name.
func (f *fixture) list(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("fieldSelector") != "spec.nodeName=" {
		f.Errorf("%s: want pods without a node", r.URL)
	}
	from := r.URL.Query().Get("continue")
	page := v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	for _, name := range slices.Sorted(maps.Keys(f.pods)) {
		switch {
		case f.pods[name].Spec.NodeName != "" || name < from:
		case len(page.Items) == f.pageSize:
			page.Continue = name
			_ = json.NewEncoder(w).Encode(page)
			return
		default:
			page.Items = append(page.Items, *f.pods[name])
		}
	}
	_ = json.NewEncoder(w).Encode(page)
}

func (f *fixture) step(e machine.Event) []machine.Effect {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(time.Second)
	effects := f.m.Step(f.now, e)
	f.r.Observe(loop.Step{Now: f.now, Event: e, Effects: effects})
	f.r.Flush() // as the loop does when it rests
	return effects
}

func (f *fixture) node(name, cpu string) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{v1.LabelHostname: name}}}
	n.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
	f.step(machine.NodeSet{Node: decode.Node(n)})
}

// newPod returns a pod of namespace shop.
func newPod(name, cpu string, created time.Time) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(created)}}
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	p.Spec.Containers = []v1.Container{{Name: "web", Image: "nginx", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
	return p
}

func (f *fixture) pod(name, cpu string) *v1.Pod {
	p := newPod(name, cpu, f.now)
	f.pods["shop/"+name] = p
	f.step(machine.PodSet{Pod: decode.Pod(p.DeepCopy())})
	return p
}

func (f *fixture) get(path string, out any) (code int, body string) {
	f.Helper()
	reply, err := http.Get(f.server.URL + Prefix + path)
	if err != nil {
		f.Fatal(err)
	}
	defer reply.Body.Close()
	var b strings.Builder
	if _, err := bufio.NewReader(reply.Body).WriteTo(&b); err != nil {
		f.Fatal(err)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(b.String()), out); err != nil {
			f.Fatalf("%s: %v: %s", path, err, b.String())
		}
	}
	return reply.StatusCode, b.String()
}

// stuck is a cluster of two nodes with a pod that fits on none, and one that runs.
func stuck(t *testing.T) *fixture {
	f := newFixture(t)
	f.node("n1", "4")
	f.node("n2", "2")
	f.pod("small", "1")
	f.step(machine.ScheduleOne{})
	f.step(machine.BindReply{UID: "small", Result: machine.BindDone})
	f.pod("big", "8")
	f.step(machine.ScheduleOne{})
	return f
}

// Records, pending pods and the summary say what became of a pod that fits no node.
func TestQuestions(t *testing.T) {
	f := stuck(t)
	var list RecordList
	f.get("records?pod=shop/big", &list)
	if len(list.Records) != 2 || list.Records[0].Result != "Unschedulable" || list.Records[1].To != "unschedulable" || list.Kind != "RecordList" {
		t.Errorf("records: %+v", list)
	}
	var pending PendingList
	f.get("pending", &pending)
	if len(pending.Pods) != 1 || pending.Total != 1 || pending.Pods[0].Pod != "shop/big" || pending.Pods[0].Place != "unschedulable" ||
		!strings.Contains(pending.Pods[0].Message, "2 Insufficient cpu") {
		t.Errorf("pending: %+v", pending)
	}
	if pending.Pods[0].Workload != "shop/big" {
		t.Errorf("its workload: %q", pending.Pods[0].Workload)
	}
	for workload, want := range map[string]int{"shop/big": 1, "shop/small": 0} {
		if f.get("pending?workload="+workload, &pending); pending.Total != want {
			t.Errorf("%d wait of %s", pending.Total, workload)
		}
	}
	f.get("pending?place=gated", &pending)
	if pending.Total != 0 {
		t.Errorf("gated: %+v", pending)
	}
	if f.get("pending?place=gated,unschedulable", &pending); pending.Total != 1 {
		t.Errorf("gated or unschedulable: %+v", pending)
	}
	var s Summary
	f.options.Shadow, f.options.Hosted = true, true
	f.serve()
	if f.get("summary", &s); !s.Shadow || !s.Hosted {
		t.Errorf("summary of a shadow with hosted plugins: %+v", s)
	}
	f.options.Shadow, f.options.Hosted = false, false
	f.serve()
	s = Summary{}
	f.get("summary", &s)
	if s.Queue != (Queue{Unschedulable: 1}) || s.Nodes != 2 || s.Pods != 1 || s.Leader != "berth-7f9_1234" || s.Rates.Attempts["Scheduled"] != 1 || s.Rates.Bound != 1 ||
		!reflect.DeepEqual(s.Blocking, []records.Blocking{{Plugin: "NodeResourcesFit", Reason: "Insufficient cpu", Pods: 1, Workloads: []records.Workload{{Name: "shop/big", Pods: 1}}}}) ||
		s.Rates.Binding != (records.Times{Pods: 1, P50: 1, P99: 1}) || s.Refused == nil || s.Refused.Reason != "bad file" {
		t.Errorf("summary: %+v", s)
	}
	if d := s.LastDecision; d == nil || d.Type != records.Attempt || d.Pod != "shop/big" || d.Result != "Unschedulable" {
		t.Errorf("the last decision: %+v", d)
	}
}

// The answer is that of `berth why`, with the place in the queue and what happened.
func TestWhy(t *testing.T) {
	f := stuck(t)
	var a why.Answer
	if code, body := f.get("why?pod=shop/big", &a); code != 200 {
		t.Fatal(body)
	}
	if a.Verdict != why.Misconfigured || a.NodesTotal != 2 || len(a.Groups) != 1 || a.Groups[0].Nodes != 2 || len(a.Events) == 0 {
		t.Errorf("got %+v", a)
	}
	if len(a.Fixes) == 0 || !strings.Contains(a.Fixes[0].Summary, `lower the CPU request of container "web" from 8 to 3`) || a.Fixes[0].Then.Node != "n1" && a.Fixes[0].Then.Node != "n2" {
		t.Errorf("fixes: %+v", a.Fixes)
	}
	if q := a.Queue; q == nil || q.Place != "unschedulable" || q.Attempts != 1 || q.Position != 1 || len(q.History) != 2 || q.Until == nil {
		t.Errorf("queue: %+v", a.Queue)
	}
	if _, body := f.get("why?pod=shop/big&output=text", nil); !strings.Contains(body, "IN THE QUEUE\n  unschedulable since 12:00:07") || !strings.Contains(body, "WHAT WOULD HELP") {
		t.Errorf("text: %s", body)
	}
	f.pods["shop/small"].Spec.NodeName = "n1"
	if f.get("why?pod=shop/small", &a); a.Verdict != why.Placed || a.Node != "n1" {
		t.Errorf("a pod that runs: %+v", a)
	}
	// One whose binding was sent is on its way, and takes no room from itself.
	f.pod("coming", "2")
	f.step(machine.ScheduleOne{})
	if f.get("why?pod=shop/coming", &a); a.Verdict != why.InProgress || a.Node == "" || a.Queue.Place != "in flight" {
		t.Errorf("a pod that is being bound: %+v", a)
	}
	other := f.pod("other", "1")
	other.Spec.SchedulerName = "volcano"
	if f.get("why?pod=shop/other", &a); a.Verdict != why.Failed || !strings.Contains(a.Message, `no profile has the schedulerName "volcano"`) {
		t.Errorf("a pod of another scheduler: %+v", a)
	}
	other.Spec.SchedulerName = "default-schedluer"
	if _, body := f.get("why?pod=shop/other&output=text", nil); !strings.Contains(body, "no profile has the schedulerName \"default-schedluer\"; the configuration has the profile \"default-scheduler\": one of the two names is misspelt.\n") {
		t.Errorf("a pod with a typo: %s", body)
	}
	other.Spec.SchedulerName = "volcano"
	unknown := other.DeepCopy() // to this daemon
	unknown.Name, unknown.UID = "unknown", "unknown"
	f.pods["shop/unknown"] = unknown
	if _, body := f.get("why?pod=shop/unknown&output=text", nil); strings.Contains(body, "IN THE QUEUE") {
		t.Errorf("a pod of another scheduler is in the queue: %s", body)
	}
	f.copies = ErrHosted
	if code, body := f.get("why?pod=shop/big", nil); code != 501 || !strings.Contains(body, "plugins") || !strings.Contains(body, "2 Insufficient cpu") {
		t.Errorf("a daemon with hosted plugins: %d %s", code, body)
	}
}

// A shadow tries no pod: it says what it would do, and since when it has seen the pod wait.
func TestWhyOfAShadow(t *testing.T) {
	f := stuck(t)
	f.options.Shadow = true
	f.serve()
	f.pod("new", "1")
	var a why.Answer
	if f.get("why?pod=shop/new", &a); a.Verdict != why.WouldBePlaced || a.Queue != nil || a.Shadow == nil || !a.Shadow.Since.Equal(f.now) {
		t.Errorf("got %+v, seen %+v, in the queue %+v", a, a.Shadow, a.Queue)
	}
	_, body := f.get("why?pod=shop/new&output=text", nil)
	for _, want := range []string{"shop/new fits now: Berth would place it on n", "SEEN BY A SHADOW\n  waits for the scheduler in charge since " + f.now.Format(time.TimeOnly) + ","} {
		if !strings.Contains(body, want) || strings.Contains(body, "attempt") {
			t.Errorf("text: %s; want %q, and no attempts", body, want)
		}
	}
	f.pods["shop/small"].Spec.NodeName = "n1"
	a = why.Answer{}
	if f.get("why?pod=shop/small", &a); a.Verdict != why.Placed || a.Shadow != nil {
		t.Errorf("a pod that runs: %+v, seen %+v", a, a.Shadow)
	}
}

// Fields that are not to be read of a pod are not read where an answer is sought.
func TestPodFields(t *testing.T) {
	f := stuck(t)
	f.fields = func(p *v1.Pod) *v1.Pod {
		read := p.DeepCopy()
		read.Spec.Containers[0].Resources.Requests = nil
		return read
	}
	var a why.Answer
	if f.get("why?pod=shop/big", &a); a.Verdict != why.WouldBePlaced {
		t.Errorf("without its requests the pod is %+v", a)
	}
	var all why.List
	if f.get("why/all", &all); all.Pods != 1 || len(all.Causes) != 1 || len(all.Causes[0].Blockers) != 0 {
		t.Errorf("without its requests the pod is blocked: %+v", all)
	}
}

// All pending pods are ranked by what blocks them, except for those that are being bound.
// A pod that is not valid does not stop the others.
func TestWhyAll(t *testing.T) {
	f := stuck(t)
	f.pods["shop/small"].Spec.NodeName = "n1"
	for _, name := range []string{"huge-0", "huge-1", "huge-2"} {
		f.pod(name, "16")
	}
	f.pod("coming", "2")
	for range 4 {
		f.step(machine.ScheduleOne{})
	}
	f.pods["shop/broken"] = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "broken", UID: "broken"}}
	f.pods["shop/broken"].Spec.Containers = []v1.Container{{Name: "web", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("-1")}}}}
	var r why.List
	if code, body := f.get("why/all", &r); code != 200 {
		t.Fatal(body)
	}
	if r.Kind != "WhyAll" || r.Pods != 4 || r.Pending == nil || *r.Pending != 4 || len(r.Causes) != 1 || r.Causes[0].Pods != 4 || r.Causes[0].Verdict != why.Misconfigured || len(r.Causes[0].Fixes) == 0 {
		t.Errorf("got %+v", r)
	}
	if len(r.LeftOut) != 1 || !strings.Contains(r.LeftOut[0], "pod shop/broken: ") {
		t.Errorf("left out: %q", r.LeftOut)
	}
	code, body := f.get("why/all?output=text", nil)
	if code != 200 || !strings.HasPrefix(body, "4 pods are pending, by cause, each tried in the scheduler's order\n\n4 pods, fitting nowhere") || !strings.Contains(body, "\nLeft out: the API server: pod shop/broken: ") {
		t.Errorf("text: %d %s", code, body)
	}
	f.copies = ErrHosted
	if code, body := f.get("why/all", nil); code != 501 || !strings.Contains(body, `"this daemon cannot say why pods wait: `) || !strings.Contains(body, "plugins") {
		t.Errorf("a daemon with hosted plugins: %d %s", code, body)
	}
}

// A question that is wrong gets an error that names the parameter, its value and the
// reason.
func TestBadQuestions(t *testing.T) {
	f := stuck(t)
	for path, want := range map[string]string{
		"records?pod=a/b/c":              "400 parameter pod=a/b/c: must be NAMESPACE/NAME",
		"records?since=yesterday":        "400 parameter since=yesterday: must be a time such as 2026-01-31T12:00:00Z, or how long ago, such as 10m",
		"records?limit=0":                "400 parameter limit=0: must be a number from 1 to 10000",
		"records?colour=red":             "400 parameter colour=red: is not known; there are pod, node, reason, since, until, limit",
		"records?pod=a&pod=b":            "400 parameter pod=a: is given twice",
		"records?pod=%zz":                `400 invalid URL escape "%zz"`,
		"records?pod=shop/nobody":        `404 pod shop/nobody: there is no record of it: it is not there, or is gone for longer than records are kept, or its schedulerName is none of ["default-scheduler"]`,
		"pending?place=nirvana":          "400 parameter place=nirvana: must be one of active, backoff, error backoff, unschedulable, gated, in flight, other scheduler",
		"nodes?labels=a,b%20c":           `400 parameter labels=a,b c: "b c" is not the key of a label`,
		"nodes?labels=a,a":               `400 parameter labels=a,a: "a" is given twice`,
		"history?since=soon":             "400 parameter since=soon: must be a time such as 2026-01-31T12:00:00Z, or how long ago, such as 10m",
		"capabilities?x=y":               "400 parameter x=y: is not known; there are ",
		"node":                           "400 parameter name=: is needed",
		"node?name=n9":                   "404 node n9: there is no such node",
		"watch?labels=a":                 "400 parameter labels=a: has no effect without every",
		"watch?revision=a-1":             "400 parameter revision=a-1: has no effect without every",
		"watch?every=1ms":                "400 parameter every=1ms: must be a time from 100ms to 10s",
		"watch?every=often":              "400 parameter every=often: must be a time from 100ms to 10s",
		"watch?every=1s&revision=7":      "400 parameter revision=7: is not the revision of an answer",
		"nodes?colour=red":               "400 parameter colour=red: is not known; there are labels",
		"summary?x=y":                    "400 parameter x=y: is not known; there are ",
		"find?limit=5":                   "400 parameter q=: is needed: a part of a name",
		"why":                            "400 parameter pod=: is needed: NAMESPACE/NAME",
		"blockers":                       "400 parameter pod=: is needed: NAMESPACE/NAME",
		"blockers?pod=nobody":            "404 pod default/nobody: there is no such pod",
		"blockers?pod=a/b&output=text":   "400 parameter output=text: is not known; there are pod",
		"why?pod=nobody":                 "404 pod default/nobody: there is no such pod",
		"why?pod=shop/big&output=poetry": "400 parameter output=poetry: must be one of json, text, wide",
		"watch?since=never":              "400 parameter since=never: must be a time such as 2026-01-31T12:00:00Z, or how long ago, such as 10m",
		"nothing":                        "404 /berth/v1/nothing is not served: there are status, capabilities, records, pending, summary, history, nodes, node, groups, quotas, find, group, watch, shadow, why, blockers, why/all below /berth/v1/",
		"why/all?pod=shop/big":           "400 parameter pod=shop/big: is not known; there are output, kind, namespace, selector, workload",
	} {
		var p Problem
		code, _ := f.get(path, &p)
		if got := fmt.Sprint(code, " ", p.Message); got != want || p.Kind != "Problem" || p.Code != code {
			t.Errorf("%s:\ngot  %s\nwant %s", path, got, want)
		}
	}
	f.synced = false
	if code, body := f.get("summary", nil); code != 503 || !strings.Contains(body, "does not know the cluster yet") {
		t.Errorf("not synced: %d %s", code, body)
	}
	f.leads = false
	for _, path := range []string{"records", "pending", "summary", "history", "nodes", "node?name=n1", "watch", "why?pod=shop/big", "blockers?pod=shop/big", "why/all"} {
		var p Problem
		if code, _ := f.get(path, &p); code != 503 || p.Reason != NotLeading || p.Leader != "berth-7f9_1234" {
			t.Errorf("%s of one that does not lead: %d %+v", path, code, p)
		}
	}
	if reply, err := http.Post(f.server.URL+Prefix+"records", "", nil); err != nil || reply.StatusCode != 405 {
		t.Errorf("POST: %v %v", reply, err)
	}
}

// A stream tells what happens as it happens, and ends when the daemon stops.
func TestWatch(t *testing.T) {
	f := stuck(t)
	reply, err := http.Get(f.server.URL + Prefix + "watch?reason=insufficient&since=1h")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	lines := bufio.NewScanner(reply.Body)
	next := func() string {
		for lines.Scan() {
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				return data
			}
		}
		return ""
	}
	var r records.Record
	if err := json.Unmarshal([]byte(next()), &r); err != nil || r.Pod != "shop/big" {
		t.Errorf("what was there: %+v, %v", r, err)
	}
	f.pod("bigger", "16")
	f.step(machine.ScheduleOne{})
	if err := json.Unmarshal([]byte(next()), &r); err != nil || r.Pod != "shop/bigger" || r.Result != "Unschedulable" {
		t.Errorf("what came: %+v, %v", r, err)
	}
	close(f.stopped)
	var p Problem
	if err := json.Unmarshal([]byte(next()), &p); err != nil || p.Message != "the daemon stops" {
		t.Errorf("the end: %+v, %v", p, err)
	}
}

// large is a cluster of 5,000 nodes and 30,000 pods, with pods that fit nowhere.
func large(b *testing.B, stuck int) *fixture {
	f := newFixture(b)
	f.pageSize = pageSize
	for i := range 5000 {
		f.node(fmt.Sprintf("node-%d", i), "4")
	}
	for i := range 30_000 {
		p := f.pod(fmt.Sprintf("pod-%d", i), "600m")
		p.Spec.NodeName = fmt.Sprintf("node-%d", i%5000)
		f.step(machine.PodSet{Pod: decode.Pod(p)})
	}
	for i := range stuck {
		f.pod(fmt.Sprintf("stuck-%d", i), fmt.Sprintf("%dm", 3000+i/2*5)) // by twos alike
		f.step(machine.ScheduleOne{})
	}
	return f
}

// BenchmarkWhy is one question in a cluster of 5,000 nodes and 30,000 pods, fixes
// included.
func BenchmarkWhy(b *testing.B) {
	f := large(b, 1)
	b.ReportAllocs()
	var looked time.Duration
	for b.Loop() {
		var a why.Answer
		if code, body := f.get("why?pod=shop/stuck-0", &a); code != 200 || len(a.Fixes) == 0 {
			b.Fatal(body)
		}
		began := time.Now()
		take(f.m, "stuck-0")
		looked += time.Since(began)
	}
	b.ReportMetric(float64(looked.Milliseconds())/float64(b.N), "ms-of-the-loop/op")
}

// BenchmarkWhyAll is a question about 2,000 pending pods of a thousand kinds in that
// cluster.
func BenchmarkWhyAll(b *testing.B) {
	f := large(b, 2000)
	b.ReportAllocs()
	for b.Loop() {
		var r why.List
		if code, body := f.get("why/all", &r); code != 200 || r.Pods != 2000 || len(r.Causes[0].Fixes) == 0 {
			b.Fatal(code, body)
		}
	}
}
