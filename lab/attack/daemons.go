package attack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/pin"
	"github.com/berth-scheduler/berth/edge/records"
)

var daemonAttacks = []Attack{
	{Name: "daemon/empty", Short: true,
		Title: "a daemon that answers {}, null or a page to everything", play: emptyDaemon},
	{Name: "daemon/endless",
		Title: "a daemon whose answers do not end, unfold, drip or are silent", play: endlessDaemon},
	{Name: "daemon/controls", Short: true,
		Title: "a daemon whose answers have control characters in every text", play: controlDaemon},
	{Name: "daemon/impostor", Short: true,
		Title: "a pod that is named like the host of the leader", play: impostor},
}

// toDaemon returns the flags with which the tool asks a hostile daemon.
func (s *stage) toDaemon(h http.HandlerFunc) []string {
	at, ca := s.serve(true, h)
	return []string{"--kubeconfig", s.kubeconfig("of-"+at[strings.LastIndexByte(at, ':')+1:]+".kubeconfig", at, ca, token), "--daemon", at}
}

// daemonCalls are the questions to a daemon.
var daemonCalls = [][]string{{"top", "--once"}, {"top", "-o", "json"}, {"events", "a/b"}, {"events", "a/b", "-o", "json"},
	{"why", "a/b"}, {"why", "a/b", "-o", "json"}, {"why", "--all"}, {"why", "--all", "-o", "json"}, {"status"}, {"status", "-o", "json"}}

func emptyDaemon(s *stage) {
	for _, body := range []string{`{}`, `null`, `<html></html>`} {
		flags := s.toDaemon(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		})
		for _, call := range daemonCalls {
			if a := s.berth(with(flags, call...)...); a.status != 2 {
				s.broke("berth %v of a daemon that answers %q: exit status %d: %s", call, body, a.status, short(a.stdout))
			}
		}
	}
}

func endlessDaemon(s *stage) {
	ways := map[string]http.HandlerFunc{
		"string": func(w http.ResponseWriter, r *http.Request) { pourJSON(w, r, `{"kind":"`, "x") },
		"records": func(w http.ResponseWriter, r *http.Request) {
			pourJSON(w, r, `{"kind":"RecordList","records":[{}`, `,{"pod":"a/b"}`)
		},
		"spaces":  func(w http.ResponseWriter, r *http.Request) { pourJSON(w, r, ``, " ") },
		"unfolds": func(w http.ResponseWriter, _ *http.Request) { unfold(w, `{"kind":"`, "x") },
		"drips":   func(w http.ResponseWriter, r *http.Request) { drip(w, r, `{"kind":"`) },
		"silent":  func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
	var calls [][]string
	for _, way := range ways { // any order: all of them
		flags := s.toDaemon(way)
		calls = append(calls, with(flags, "top", "--once"), with(flags, "why", "a/b"), with(flags, "status"))
	}
	calls = append(calls, with(s.toDaemon(ways["records"]), "events", "a/b"))
	s.calls(calls, func(call []string, a answer) {
		if a.status == 0 {
			s.broke("berth %v: exit status 0: %s", call, short(a.stdout))
		}
	})
}

func controlDaemon(s *stage) {
	now := time.Now()
	record := records.Record{Time: now, Type: records.Type(hostile), Pod: hostile, From: hostile, To: hostile, Event: hostile, Plugin: hostile,
		Result: hostile, Profile: hostile, Node: hostile, For: hostile, Message: hostile, RejectedBy: []string{hostile}, Victims: []string{hostile},
		NominatedNode: hostile, Blockers: []records.Blocker{{Plugin: hostile, Code: hostile, Reasons: []string{hostile}, Nodes: 1}}}
	var all []records.Record
	for _, kind := range []records.Type{record.Type, "Attempt", "Moved", "Bound", "BindingUnknown", "Evicted"} {
		record.Type = kind
		all = append(all, record)
		record.Result = map[records.Type]string{"Attempt": hostile}[kind]
	}
	head := func(kind string) api.Head { return api.Head{APIVersion: api.Version, Kind: kind} }
	answers := map[string]any{
		"records": api.RecordList{Head: head("RecordList"), Records: all},
		"summary": api.Summary{Head: head("Summary"), Time: now, Leader: hostile, Nodes: 1, Oldest: &now,
			Blocking: []records.Blocking{{Plugin: hostile, Reason: hostile, Pods: 1}}},
	}
	for path, answer := range hostileReplicas(api.Status{Head: head("Status"), Time: now, Identity: hostile, Leads: true, Lease: pinnedLease, Stuck: hostile, Hosted: []string{hostile},
		Configuration: api.Configuration{Profiles: []string{hostile}, Refused: &api.Refusal{Reason: hostile}}, Watches: []api.Watch{{Resource: hostile, Problem: hostile}},
		Shadow: &api.ShadowStatus{Choices: []api.Choices{{Result: hostile, Plugin: hostile, Profile: hostile}}}}) { // any order: each by itself
		answers[path] = answer
	}
	problem := api.Problem{Head: head("Problem"), Code: http.StatusServiceUnavailable, Reason: hostile, Message: hostile, Leader: hostile}
	for _, refuses := range []bool{false, true} {
		flags := s.toDaemon(func(w http.ResponseWriter, r *http.Request) {
			what := strings.TrimPrefix(r.URL.Path, api.Prefix)
			w.Header().Set(api.VerdictHeader, "Misconfigured")
			w.Header().Set(api.PendingHeader, "1")
			switch answer := answers[what]; {
			case refuses:
				w.WriteHeader(problem.Code)
				_ = json.NewEncoder(w).Encode(problem)
			case what == "watch":
				body, _ := json.Marshal(all[0])
				fmt.Fprintf(w, "event: record\ndata: %s\n\nevent: %s\ndata: {}\n\n", body, hostile)
				end, _ := json.Marshal(problem)
				fmt.Fprintf(w, "event: end\ndata: %s\n\n", end)
			case answer != nil:
				_ = json.NewEncoder(w).Encode(answer)
			default:
				_, _ = io.WriteString(w, hostile)
			}
		})
		for _, call := range append(daemonCalls, []string{"events", "a/b", "--follow"}) {
			s.berth(with(flags, call...)...)
		}
	}
}

// pinnedLease is the lease that hostile servers show as a Berth's.
const pinnedLease = "kube-system/kube-scheduler"

// pinned returns that lease, held by a Berth.
func pinned(holder string) *coordinationv1.Lease {
	l := &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}}
	l.Namespace, l.Name, _ = strings.Cut(pinnedLease, "/")
	l.Spec.HolderIdentity = &holder
	_ = pin.Write(l, [][]byte{[]byte("certificate")}) // a pin is always JSON
	return l
}

// hostileReplicas returns what a server answers to berth status, by path.
func hostileReplicas(says api.Status) map[string]any {
	pod := corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Namespace: hostile, Name: hostile}}
	pod.Spec.NodeName, pod.Status.Phase = hostile, corev1.PodPhase(hostile)
	return map[string]any{
		"status": says,
		"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler": pinned(hostile + "_id"),
		"/api/v1/namespaces/kube-system/pods":                                       corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{pod}},
	}
}

// impostor plays an API server. A process in the network of the host node-1 holds the
// lease; the scheduler's pod is there, and elsewhere a pod that has the host's name. The
// lab itself has no kubelet that would forward a port.
func impostor(s *stage) {
	const impostorPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"node-1","namespace":"kube-system","uid":"a","labels":{"app.kubernetes.io/part-of":"berth"}},"spec":{"nodeName":"node-2","serviceAccountName":"x","containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running"}}`
	const leaderPod = `{"metadata":{"name":"kube-scheduler-node-1","namespace":"kube-system","uid":"b","labels":{"component":"kube-scheduler"}},"spec":{"nodeName":"node-1","hostNetwork":true,"containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running"}}`
	var led, way atomic.Bool
	at, ca := s.serve(true, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		const pods = "/api/v1/namespaces/kube-system/pods"
		switch path := r.URL.Path; {
		case path == "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler":
			_ = json.NewEncoder(w).Encode(pinned("node-1_6ddfbd15-c3d2-4c48-93ca-bc6c19d5af9f"))
		case path == pods+"/node-1":
			_, _ = io.WriteString(w, impostorPod)
		case path == pods:
			fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","items":[%s,%s]}`, impostorPod, leaderPod)
		case path == pods+"/node-1/portforward":
			led.Store(true)
			http.Error(w, "{}", http.StatusForbidden)
		case path == pods+"/kube-scheduler-node-1/portforward":
			way.Store(true)
			http.Error(w, "{}", http.StatusForbidden)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		}
	})
	file := s.kubeconfig("auto.kubeconfig", at, ca, token)
	s.berth("top", "--once", "--kubeconfig", file)
	a := s.berth("status", "--kubeconfig", file)
	switch {
	case led.Load():
		s.broke("--daemon auto forwards to a pod that is only named like the leader's host")
	case !way.Load():
		s.note(errors.New("--daemon auto looks for no pod of the leader"))
	}
	if strings.Contains(a.stdout, "node-1 on node-2") {
		s.broke("berth status shows a pod as a replica that is only named like the leader's host: %s", short(a.stdout))
	}
}
