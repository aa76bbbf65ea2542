package kube

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// A read reports the pod as it is, none if it is gone or another has its name, or the
// error.
func TestRead(t *testing.T) {
	other := apiPod("p", "")
	other.UID = "uid-2"
	tests := []struct {
		name string
		code int
		body any
		want string // node of the pod that is reported, "-" for none, "error"
	}{
		{"bound", 200, apiPod("p", "node"), "node"},
		{"pending", 200, apiPod("p", ""), ""},
		{"gone", 404, nil, "-"},
		{"another pod of that name", 200, other, "-"},
		{"failed", 500, nil, "error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
				if r.URL.Query().Has("resourceVersion") {
					t.Error("the read is not consistent")
				}
				answer(w, tt.code, tt.body)
			})
			h, outcomes := executorOn(t, s.config(), always)
			h.Do(machine.ReadPod{Pod: testPod("p"), Delay: time.Millisecond})
			e := (<-outcomes).(machine.ReadReply)
			got := "-"
			switch {
			case e.Err != nil:
				got = "error"
			case e.Pod != nil:
				got = e.Pod.NodeName
			}
			if got != tt.want || e.UID != "uid-1" {
				t.Errorf("got %q of %s, want %q", got, e.UID, tt.want)
			}
		})
	}
}

// manager is extenders that are told of the pods of one name.
type manager struct {
	Extenders
	of string
}

func (m manager) Pod(p *v1.Pod) bool { return p.Name == m.of }

// A pod that is read has its API object with it where an extender is to be told of the
// pod: without that, the machine would ask none.
func TestReadForExtenders(t *testing.T) {
	for name, want := range map[string]bool{"p": true, "another": false} {
		s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) { answer(w, 200, apiPod("p", "")) })
		h, outcomes := executorOn(t, s.config(), always)
		h.Extend(manager{of: name}, nil)
		h.Do(machine.ReadPod{Pod: testPod("p")})
		if e := (<-outcomes).(machine.ReadReply); e.Pod == nil || (e.Pod.API != nil) != want {
			t.Errorf("an extender of pod %s: got %+v", name, e.Pod)
		}
	}
}

// What is not to be read of a pod is not in what the machine gets, whether a list, a
// watch or a read tells of the pod, nor in what is recorded. Extenders are told of it.
func TestPodFields(t *testing.T) {
	bare := func(p *v1.Pod) *v1.Pod {
		read := *p
		read.Labels = nil
		return &read
	}
	p := apiPod("p", "node")
	p.Labels = map[string]string{"app": "web"}
	check := func(name string, read *object.Pod, recorded metav1.Object) {
		if read == nil || read.Labels != nil || recorded == nil || recorded.GetLabels() != nil {
			t.Errorf("%s: %+v; recorded: %+v", name, read, recorded)
		} else if api := read.API; api == nil || api.Labels == nil {
			t.Errorf("%s: extenders are told of %+v", name, api)
		}
	}
	var recorded metav1.Object
	record := func(_ machine.Event, o metav1.Object) { recorded = o }

	w := &Watcher{extenders: manager{of: "p"}}
	w.PodFields(bare)
	w.Record(record)
	e := w.guarded(entries(w.podSet), nil)(p)
	check("the watch", e.set.(machine.PodSet).Pod, recorded)
	check("a pod that cannot be decoded", w.insteadOfPod(p, nil).(machine.PodSet).Pod, recorded)

	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) { answer(w, 200, p) })
	h, outcomes := executorOn(t, s.config(), always)
	h.Extend(manager{of: "p"}, nil)
	h.PodFields(bare)
	h.Record(record)
	h.Do(machine.ReadPod{Pod: testPod("p")})
	check("a read", (<-outcomes).(machine.ReadReply).Pod, recorded)
}

// A read pod that cannot be decoded keeps its room where it is bound, and is as if
// it were gone where it waits. It does not end the process.
func TestReadOfBadObject(t *testing.T) {
	for node, want := range map[string]string{"": "<nil>", "node": "node", "bad": "error"} {
		s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
			p := apiPod("p", node)
			p.Spec.Hostname = "bad"
			answer(w, 200, p)
		})
		h, outcomes := executorOn(t, s.config(), always)
		h.decode = func(p *v1.Pod) *object.Pod {
			if p.Spec.Hostname == "bad" || p.Spec.NodeName == "bad" {
				panic("cannot be")
			}
			return &object.Pod{UID: p.UID, NodeName: p.Spec.NodeName}
		}
		h.Do(machine.ReadPod{Pod: testPod("p")})
		e := (<-outcomes).(machine.ReadReply)
		got := "<nil>"
		switch {
		case e.Err != nil:
			got = "error"
		case e.Pod != nil:
			got = e.Pod.NodeName
		}
		if got != want {
			t.Errorf("on node %q: got %q, want %q", node, got, want)
		}
	}
}

// panicky is a transport that panics, as one of a credential plugin may.
type panicky struct{}

func (panicky) RoundTrip(*http.Request) (*http.Response, error) { panic("no credentials") }

// What panics in a request does not end the process: of a binding it is not known what
// became of it, a read and an eviction failed, and a status patch is tried again.
func TestPanicInARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, outcomes := executorOn(t, &rest.Config{Host: "http://server", Transport: panicky{}, QPS: -1}, always)
		h.Do(machine.PublishEvent{Pod: testPod("p"), Reason: "Scheduled", Action: "Binding"})
		h.Do(machine.Bind{Pod: testPod("q"), Node: "node"})
		if e := (<-outcomes).(machine.BindReply); e.Result != machine.BindUnknown || e.Err == nil {
			t.Errorf("the binding: %+v", e)
		}
		h.Do(machine.ReadPod{Pod: testPod("q")})
		if e := (<-outcomes).(machine.ReadReply); e.Err == nil {
			t.Errorf("the read: %+v", e)
		}
		h.Do(machine.Evict{Victim: testPod("q"), Preemptor: testPod("p")})
		if e := (<-outcomes).(machine.EvictReply); e.Err == nil {
			t.Errorf("the eviction: %+v", e)
		}
		h.Do(machine.PatchStatus{Pod: testPod("p"), Condition: &object.Condition{Status: "False"}})
		time.Sleep(time.Hour) // what net/http started for a request ends when its time is over
		if c := h.Counters(); c.Binding != 0 || c.Unanswered != 0 || c.PatchesFailed < 2 || c.EventsDropped != 1 {
			t.Errorf("%+v", c)
		}
	})
}

// A victim is marked and deleted; one that is gone or replaced is no error.
func TestEvict(t *testing.T) {
	tests := []struct {
		name          string
		disrupted     bool
		patch, delete int
		now           types.UID // that a read shows; "" for a read that fails
		want          []string  // requests
		fails         bool
	}{
		{"marks and deletes", false, 200, 200, "", []string{"PATCH", "DELETE"}, false},
		{"already marked", true, 200, 200, "", []string{"DELETE"}, false},
		{"gone before it is marked", false, 404, 200, "", []string{"PATCH"}, false},
		{"gone before it is deleted", false, 200, 404, "", []string{"PATCH", "DELETE"}, false},
		{"another pod of that name", false, 200, 409, "uid-2", []string{"PATCH", "DELETE", "GET"}, false},
		{"another pod of that name is to be marked", false, 409, 200, "uid-2", []string{"PATCH", "GET"}, false},
		{"in conflict, and still there", false, 200, 409, "uid-1", []string{"PATCH", "DELETE", "GET"}, true},
		{"in conflict, and cannot be read", false, 200, 409, "", []string{"PATCH", "DELETE", "GET"}, true},
		{"cannot be marked", false, 403, 200, "", []string{"PATCH"}, true},
		{"cannot be deleted", false, 200, 500, "", []string{"PATCH", "DELETE"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
				switch {
				case r.Method == http.MethodPatch:
					answer(w, tt.patch, nil)
					return
				case r.Method == http.MethodGet && tt.now == "":
					answer(w, 500, nil)
					return
				case r.Method == http.MethodGet:
					now := apiPod("p", "n")
					now.UID = tt.now
					answer(w, 200, now)
					return
				}
				if !strings.Contains(body, `"preconditions":{"uid":"uid-1"}`) {
					t.Errorf("no precondition in %s", body)
				}
				answer(w, tt.delete, nil)
			})
			h, outcomes := executorOn(t, s.config(), always)
			victim := testPod("p")
			victim.Disrupted = tt.disrupted
			h.Do(machine.Evict{Victim: victim, Preemptor: &object.Pod{UID: "uid-9", SchedulerName: "mine"}})
			e := (<-outcomes).(machine.EvictReply)
			if (e.Err != nil) != tt.fails || e.Victim != "uid-1" || e.Preemptor != "uid-9" {
				t.Errorf("got %+v", e)
			}
			var got []string
			for len(s.requests) > 0 {
				r := <-s.requests
				got = append(got, strings.Fields(r.Line)[0])
				if r.Line == "PATCH /api/v1/namespaces/ns/pods/p/status" && !strings.Contains(r.Body, `"message":"mine: preempting to accommodate a higher priority pod"`) {
					t.Errorf("patch %s", r.Body)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("requests %v, want %v", got, tt.want)
			}
		})
	}
}

// A status patch has only what changes, with the pod's UID.
func TestStatusPatch(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	none, node := "", "node"
	failed := &object.Condition{Status: "False", Reason: "Unschedulable", Message: "no \"room\""}
	before := testPod("p")
	before.Scheduled = object.Condition{Status: "False", Reason: "SchedulerError"}
	tests := []struct {
		name string
		in   machine.PatchStatus
		want string
	}{
		{"new condition", machine.PatchStatus{Pod: testPod("p"), Condition: failed},
			`{"metadata":{"uid":"uid-1"},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"no \"room\"","observedGeneration":3,"lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`},
		{"same status, another reason", machine.PatchStatus{Pod: before, Condition: failed},
			`{"metadata":{"uid":"uid-1"},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"no \"room\"","observedGeneration":3}]}}`},
		{"nomination", machine.PatchStatus{Pod: testPod("p"), Nominated: &node},
			`{"metadata":{"uid":"uid-1"},"status":{"nominatedNodeName":"node"}}`},
		{"nomination ends", machine.PatchStatus{Pod: testPod("p"), Nominated: &none},
			`{"metadata":{"uid":"uid-1"},"status":{"nominatedNodeName":null}}`},
	}
	for _, tt := range tests {
		if got := string(statusOf(tt.in, now)); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// The server lets one patch through at a time, so that others pile up.
func TestStatusQueue(t *testing.T) {
	message := func(m string) machine.PatchStatus {
		return machine.PatchStatus{Pod: testPod("p"), Condition: &object.Condition{Message: m}}
	}
	var sent []string
	started, proceed := make(chan struct{}), make(chan struct{})
	q := newStatusQueue(newPool(1, 0, 0), func(_ context.Context, e machine.PatchStatus) bool {
		text := ""
		if e.Condition != nil {
			text = e.Condition.Message
		}
		if e.Nominated != nil {
			text += "@" + *e.Nominated
		}
		sent = append(sent, text)
		started <- struct{}{}
		<-proceed
		return true
	})
	q.add(message("first"))
	<-started
	node := "node"
	q.add(message("second"))
	q.add(machine.PatchStatus{Pod: testPod("p"), Nominated: &node})
	q.add(message("third"))
	proceed <- struct{}{}
	<-started
	if want := []string{"first", "third@node"}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}

	// A binding voids what waits, and follows what is under way.
	q.add(message("void"))
	bound := make(chan struct{})
	q.cancel("uid-1", func() { close(bound) })
	select {
	case <-bound:
		t.Error("the binding overtook a patch")
	default:
	}
	proceed <- struct{}{}
	<-bound
	q.pool.close(false)
	q.pool.wait(context.Background())
	if len(sent) != 2 || q.pending() != 0 {
		t.Errorf("sent %q, %d pods left in the queue", sent, q.pending())
	}
	at := false
	q.cancel("uid-1", func() { at = true })
	if !at {
		t.Error("nothing under way, and yet the binding waits")
	}
}

// An event fits the limits of the API, and keeps both pods, the reporter and the type.
func TestEvent(t *testing.T) {
	now := time.Unix(0, 0x1234)
	victim := testPod("victim")
	preemptor := &object.Pod{UID: "uid-2", Namespace: "other", Name: "strong", SchedulerName: "mine"}
	e := eventOf(machine.PublishEvent{Pod: victim, Reason: "Preempted", Action: "Preempting",
		Note: strings.Repeat("é", 600), Related: preemptor}, strings.Repeat("h", 200), *newSeries(machine.PublishEvent{Pod: victim}, now))
	if e.Name != "victim.1234" || e.Namespace != "ns" || e.Type != "Normal" || e.ReportingController != "mine" {
		t.Errorf("got %+v", e)
	}
	if len(e.ReportingInstance) != maxInstance || e.Regarding.UID != "uid-1" || e.Related.UID != types.UID("uid-2") {
		t.Errorf("got %+v", e)
	}
	if len(e.Note) > 1024 || !strings.HasSuffix(e.Note, "é ...") {
		t.Errorf("note of %d bytes ends in %q", len(e.Note), e.Note[len(e.Note)-8:])
	}
	if _, err := json.Marshal(e); err != nil {
		t.Error(err)
	}
	lengthy := machine.PublishEvent{Pod: testPod(strings.Repeat("a", 250)), Warning: true}
	long := eventOf(lengthy, "host", *newSeries(lengthy, now))
	if len(long.Name) > 253 || long.Type != "Warning" {
		t.Errorf("got name %q, type %s", long.Name, long.Type)
	}
}

// Events that nobody takes are dropped and counted; nothing waits for them.
func TestEventsAreBounded(t *testing.T) {
	release := make(chan struct{})
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
		if strings.HasSuffix(r.URL.Path, "/events") {
			<-release
		}
		answer(w, 201, nil)
	})
	h, outcomes := executorOn(t, s.config(), always)
	const extra = 7
	for range eventWorkers {
		h.Do(machine.PublishEvent{Pod: testPod("p"), Reason: neverRepeated})
		<-s.requests
	}
	for range eventLimit + extra {
		h.Do(machine.PublishEvent{Pod: testPod("p"), Reason: neverRepeated})
	}
	if got := h.Counters().EventsDropped; got != extra {
		t.Errorf("dropped %d events, want %d", got, extra)
	}
	h.Do(machine.Bind{Pod: testPod("q"), Node: "node"}) // does not wait for events
	if got := (<-outcomes).(machine.BindReply); got.Result != machine.BindDone {
		t.Errorf("got %v", got)
	}
	close(release)
	h.events.pool.close(true)
}

// The executor is full while as many bindings wait as it takes, and while the lease is
// not held.
func TestFull(t *testing.T) {
	release := make(chan struct{})
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
		<-release
		answer(w, 201, nil)
	})
	var lost atomic.Bool
	h, outcomes := executorOn(t, s.config(), func() bool { return !lost.Load() })
	h.bindings = newPool(1, 0, 0)
	for range 1 + bindLimit { // one at the server, the others wait
		if h.Full() {
			t.Fatal("full too early")
		}
		h.Do(machine.Bind{Pod: testPod("p"), Node: "node"})
		if h.Counters().Binding == 1 {
			<-s.requests
		}
	}
	if !h.Full() {
		t.Error("not full")
	}
	close(release)
	<-outcomes
	if h.Full() {
		t.Error("still full after an outcome")
	}
	lost.Store(true)
	if !h.Full() {
		t.Error("takes bindings without the lease")
	}
}
