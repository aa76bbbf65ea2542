package tool

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/records"
)

func statusOfDaemon() *api.Status {
	heard, quiet := noon.Add(-time.Second), noon.Add(-time.Minute)
	return &api.Status{Head: api.Head{APIVersion: api.Version, Kind: "Status"}, Time: noon, Identity: "mine-1_1", Started: noon.Add(-time.Hour), Leads: true, Leader: "mine-1_1",
		Lease: "team-a/mine", Synced: true, Configuration: api.Configuration{Since: noon.Add(-time.Hour), Profiles: []string{"berth"}, QPS: 50, Reloadable: true},
		APIServer: &api.APIServer{Version: "v1.37.2", Supported: true},
		Watches:   []api.Watch{{Resource: "nodes", Synced: true, Heard: &heard}, {Resource: "podgroups", Synced: true, Heard: &quiet}},
		Hosted:    []string{"Coscheduling"}, Queue: api.Queue{Unschedulable: 4}, Nodes: 3, Rates: records.Rates{Seconds: 60, Bound: 9, Binding: records.Times{Pods: 9, P50: 0.01, P99: 0.2}}}
}

// statusBeside calls berth status beside an API server and a daemon that says this; nil: it
// refuses. It returns the exit status and the output.
func statusBeside(t *testing.T, a *apiWithLeases, says *api.Status, args ...string) (int, string) {
	t.Helper()
	defer func(usual time.Duration) { slowAnswer = usual }(slowAnswer)
	slowAnswer = time.Hour
	server := httptest.NewTLSServer(a) // over http no credentials are sent
	t.Cleanup(server.Close)
	flags := scheduler(t, func(w http.ResponseWriter, _ *http.Request) {
		if says == nil {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind": "Status", "message": "forbidden: User \"eve\" cannot get path"}`)
			return
		}
		_ = json.NewEncoder(w).Encode(says)
	})
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, kubeconfig, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: secret}}]}`, server.URL))
	flags[1] = kubeconfig
	status, out, err := berth("", slices.Concat([]string{"status"}, flags, args)...)
	return status, out + err
}

func teamA() *apiWithLeases {
	ready := v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}}
	of := func(name string) v1.Pod {
		p := podOn("team-a", name, "n1", nil)
		p.UID, p.Spec.ServiceAccountName = types.UID(name), "mine"
		p.Labels, p.Status = map[string]string{"app.kubernetes.io/part-of": "berth"}, ready
		return p
	}
	a := &apiWithLeases{pods: []v1.Pod{of("mine-1"), of("mine-2")}}
	a.set("team-a/mine", "mine-1_1", "mine-1_1", 0)
	a.leases["team-a/mine"].Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	seconds, transitions := int32(3600), int32(3) // however slow the machine is
	a.leases["team-a/mine"].Spec.LeaseDurationSeconds, a.leases["team-a/mine"].Spec.LeaseTransitions = &seconds, &transitions
	return a
}

// The status has the lease and replicas of the API server and what the scheduler says of
// itself. What needs attention is listed, and is the exit status.
func TestStatus(t *testing.T) {
	status, out := statusBeside(t, teamA(), statusOfDaemon())
	for _, want := range []string{
		"LEADER    mine-1_1, for ", "LEASE     team-a/mine, renewed ", "valid for 3600s, 3 changes of the holder so far",
		"REPLICAS  team-a/mine-1 on n1: ready, leads\n          team-a/mine-2 on n1: ready\n",
		"ASKED     mine-1_1, which leads; it runs for 1h0m0s", "CONFIG    in force since 2026-01-31T11:00:00Z: profiles berth; 0 extenders; 50 requests a second\n",
		"PLUGINS   hosted: Coscheduling", "QUEUE     active 0, backoff 0, unschedulable 4,", "BINDING   p50 10ms, p99 200ms, ", "9 pods bound in the last 60s",
		"WATCHES   2 of 2 synced; silent for longest: podgroups, 1m0s\nSERVER    API server v1.37.2\n",
	} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("%d, no %q in\n%s", status, want, out)
		}
	}
	if strings.Contains(out, "ATTENTION") || strings.Contains(out, "NOT SEEN") {
		t.Errorf("something is wrong where nothing is:\n%s", out)
	}
	status, out = statusBeside(t, teamA(), statusOfDaemon(), "-o", "json")
	var o Overview
	if err := json.Unmarshal([]byte(out), &o); err != nil || status != 0 || o.Kind != "Overview" || o.Lease.Holders != 3 || len(o.Replicas) != 2 || o.Scheduler.Nodes != 3 {
		t.Errorf("%d %v %s", status, err, out)
	}
	if status, out := statusBeside(t, teamA(), statusOfDaemon(), "-o", "yaml"); status != 0 || !strings.Contains(out, "\n  holder: mine-1_1\n") {
		t.Errorf("%d %s", status, out)
	}
}

// Each fault is named, and makes the exit status 1.
func TestStatusNeedsAttention(t *testing.T) {
	for want, spoil := range map[string]func(*apiWithLeases, *api.Status){
		"a configuration was refused at 2026-01-31T12:00:00Z, the previous one stays in effect: bad": func(_ *apiWithLeases, s *api.Status) {
			s.Configuration.Refused = &api.Refusal{Time: noon, Reason: "bad"}
		},
		"mine-1_1 does not lead: mine-2_2 does":                                 func(_ *apiWithLeases, s *api.Status) { s.Leads, s.Leader = false, "mine-2_2" },
		"mine-1_1 leads and does not know the cluster yet: no pod is scheduled": func(_ *apiWithLeases, s *api.Status) { s.Synced = false },
		"resourceclaims.resource.k8s.io: forbidden": func(_ *apiWithLeases, s *api.Status) {
			s.Watches[0].Problem = "resourceclaims.resource.k8s.io: forbidden"
		},
		"the scheduling loop does not answer":                              func(_ *apiWithLeases, s *api.Status) { s.Stuck = "the scheduling loop does not answer" },
		"the API server is v1.39.0, which this scheduler does not support": func(_ *apiWithLeases, s *api.Status) { s.APIServer = &api.APIServer{Version: "v1.39.0"} },
		"nodes: not listed yet":                                            func(_ *apiWithLeases, s *api.Status) { s.Watches[0].Synced = false },
		"the lease team-a/mine was not renewed for 2h0m0": func(a *apiWithLeases, _ *api.Status) {
			a.leases["team-a/mine"].Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-2 * time.Hour)}
		},
		"the replica team-a/mine-2 is not ready (Pending, 0 restarts)": func(a *apiWithLeases, _ *api.Status) { a.pods[1].Status = v1.PodStatus{Phase: v1.PodPending} },
		"bindings take long: p50 10ms, p99 1.301s of 9 pods; ":         func(_ *apiWithLeases, s *api.Status) { s.Rates.Binding.P99 = 1.301 },
		"the lease team-a/mine was not renewed for 33m": func(a *apiWithLeases, _ *api.Status) {
			a.leases["team-a/mine"].Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-33 * time.Minute)}
		},
		"the lease team-a/mine changed hands 3 times; the last at ": func(a *apiWithLeases, _ *api.Status) {
			a.leases["team-a/mine"].Spec.AcquireTime = &metav1.MicroTime{Time: time.Now()}
		},
		"the replica team-a/mine-1 was restarted (4 restarts); it ended ": func(a *apiWithLeases, _ *api.Status) {
			a.pods[0].Status.ContainerStatuses = []v1.ContainerStatus{killed(time.Now())}
		},
		"the replica team-a/mine-2 is not ready (CrashLoopBackOff, 4 restarts); it ended ": func(a *apiWithLeases, _ *api.Status) {
			c := killed(time.Now())
			c.State.Waiting = &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
			a.pods[1].Status = v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{c}}
		},
	} {
		a, s := teamA(), statusOfDaemon()
		spoil(a, s)
		if status, out := statusBeside(t, a, s); status != exitAttention || !strings.Contains(out, "ATTENTION  "+want) {
			t.Errorf("%d, no %q in\n%s", status, want, out)
		}
	}
}

// killed is a container whose last process ended at a time.
func killed(at time.Time) v1.ContainerStatus {
	end := v1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137, FinishedAt: metav1.Time{Time: at}}
	return v1.ContainerStatus{RestartCount: 4, LastTerminationState: v1.ContainerState{Terminated: &end}}
}

// What is named has its figures: how long the leader runs, and how a replica ended. A lease that
// changed hands long ago is none of that, and a restart long ago is shown and needs no attention.
func TestStatusOfALoopOfCrashes(t *testing.T) {
	a, s := teamA(), statusOfDaemon()
	a.pods[0].Status.ContainerStatuses = []v1.ContainerStatus{killed(time.Now())}
	one := int32(1)
	a.leases["team-a/mine"].Spec.LeaseTransitions = &one
	a.leases["team-a/mine"].Spec.AcquireTime = &metav1.MicroTime{Time: time.Now()}
	s.Started = s.Time.Add(-6 * time.Second)
	status, out := statusBeside(t, a, s)
	for _, want := range []string{"the scheduler restarts again and again: it runs for 6s, and the lease changed hands once; each restart ", ": OOMKilled, exit status 137\n", "leads, 4 restarts, the last after OOMKilled, exit status 137 at 2"} {
		if status != exitAttention || !strings.Contains(out, want) {
			t.Errorf("%d, no %q in\n%s", status, want, out)
		}
	}
	a.pods[0].Status.ContainerStatuses = []v1.ContainerStatus{killed(noon)}
	a.leases["team-a/mine"].Spec.AcquireTime = &metav1.MicroTime{Time: noon}
	if status, out := statusBeside(t, a, s); status != 0 || !strings.Contains(out, "4 restarts, the last after OOMKilled") || strings.Contains(out, "ATTENTION") {
		t.Errorf("long ago: %d\n%s", status, out)
	}
}

// A scheduler that runs for seconds, by a lease that changed hands every few minutes or beside a
// replica that was restarted as often, restarts again and again: one line says so. A restart by a
// lease that changed hands often in the past is none of that.
func TestStatusOfRestartsAgainAndAgain(t *testing.T) {
	const loop = "ATTENTION  the scheduler restarts again and again: it runs for 10s, and the lease changed hands 3 times; each restart waits up to 3600s for the old lease\n"
	for name, c := range map[string]struct {
		made     time.Duration // before now
		restarts bool
		loops    bool
	}{"young lease": {20 * time.Minute, false, true}, "old lease": {30 * 24 * time.Hour, false, false}, "restarts": {30 * 24 * time.Hour, true, true}} {
		a, s := teamA(), statusOfDaemon()
		s.Started = s.Time.Add(-10 * time.Second)
		l := a.leases["team-a/mine"]
		l.CreationTimestamp = metav1.Time{Time: time.Now().Add(-c.made)}
		l.Spec.AcquireTime = &metav1.MicroTime{Time: time.Now()}
		if c.restarts {
			a.pods[0].Status.ContainerStatuses = []v1.ContainerStatus{killed(time.Now())}
		}
		status, out := statusBeside(t, a, s)
		if status != exitAttention || strings.Contains(out, loop) != c.loops || strings.Contains(out, "the leader runs for 10s") == c.loops {
			t.Errorf("%s: %d\n%s", name, status, out)
		}
	}
}

// Who led last does not lead once the lease has run out.
func TestStatusOfALeaseThatRanOut(t *testing.T) {
	a := teamA()
	at := time.Now().Add(-2 * time.Hour)
	a.leases["team-a/mine"].Spec.RenewTime = &metav1.MicroTime{Time: at}
	want := "LEADER     nobody: mine-1_1 held the lease until " + at.Add(time.Hour).UTC().Format(time.RFC3339) + "\n"
	if status, out := statusBeside(t, a, nil); status != exitAttention || !strings.Contains(out, want) {
		t.Errorf("%d, no %q in\n%s", status, want, out)
	}
}

// An API server that is slow to answer the command itself is named with its time.
func TestStatusOfASlowAPIServer(t *testing.T) {
	for took, want := range map[time.Duration]string{2900 * time.Millisecond: "the API server took 2.9s to answer", 900 * time.Millisecond: ""} {
		o := &Overview{Lease: &LeaseStatus{Holder: "a", ValidSeconds: 15}, Scheduler: statusOfDaemon()}
		o.clock.answered(noon, noon.Add(took), "")
		if o.judge(); strings.Join(o.Attention, "; ") != want {
			t.Errorf("%s: %q", took, o.Attention)
		}
	}
}

// Why bindings take long is decided: by how long the API server takes for an answer, and by whether
// as many pods were bound as the limit of requests allows. Only pods that may have come at once leave
// it open.
func TestStatusSaysWhyBindingsAreSlow(t *testing.T) {
	for want, c := range map[string]struct {
		bound    int
		p99, api float64
		qps      float32
	}{
		"the API server is slow": {63, 4, 2, 50},
		"the API server is slow: 63 pods bound in 60s are far fewer than 50 requests a second allow":             {63, 4, 0.1, 50},
		"49 were bound a second: the limit of 50 requests a second is reached":                                   {2940, 90, 0.1, 50},
		"either 500 pods came at once, for which 50 requests a second take up to 10s, or the API server is slow": {500, 9, 0.1, 50},
		"the API server is slow: 500 pods bound in 60s are far fewer than 5000 requests a second allow":          {500, 9, 0.1, 5000},
	} {
		o := &Overview{APISeconds: c.api}
		s := statusOfDaemon()
		s.Configuration.QPS, s.Rates.Bound, s.Rates.Binding = c.qps, c.bound, records.Times{Pods: c.bound, P50: 1, P99: c.p99}
		o.judgeScheduler(s)
		if len(o.Attention) != 1 || !strings.HasSuffix(o.Attention[0], "; "+want) {
			t.Errorf("%q, want %q", o.Attention, want)
		}
	}
	o, s := &Overview{}, statusOfDaemon()
	s.Configuration.QPS, s.Rates.Binding.P99 = -1, 2
	if o.judgeScheduler(s); !strings.HasSuffix(o.Attention[0], "; the API server is slow") {
		t.Errorf("without a limit: %q", o.Attention)
	}
}

// The age of a lease is by the clock of the API server where the one here goes wrong.
func TestClockOfTheAPIServer(t *testing.T) {
	for date, want := range map[time.Time]time.Duration{
		noon.Add(time.Hour):        time.Hour - 2*time.Second, // the answer came at 2 s at the latest
		noon.Add(-time.Hour):       -(time.Hour - time.Second),
		noon.Add(time.Second):      0,
		noon.Add(-1 * time.Second): 0, // its date has whole seconds
	} {
		var c apiClock
		c.answered(noon, noon.Add(2*time.Second), date.Format(http.TimeFormat))
		if c.ahead != want {
			t.Errorf("%s: ahead %s, want %s", date, c.ahead, want)
		}
	}
}

// A pod is no replica because it has the label and the leader's name, but for the leader's
// namespace and service account. One of another namespace that is named like a leader outside
// of the cluster does not lead.
func TestStatusKnowsReplicas(t *testing.T) {
	a := teamA()
	forged := func(namespace, name, account string) {
		p := a.pods[0]
		p.Namespace, p.Name, p.UID, p.Spec.ServiceAccountName = namespace, name, types.UID(namespace+name), account
		a.pods = append(a.pods, p)
	}
	forged("team-b", "mine-1", "mine")
	forged("team-a", "other", "other")
	status, out := statusBeside(t, a, statusOfDaemon(), "-o", "json")
	var o Overview
	if err := json.Unmarshal([]byte(out), &o); err != nil || status != 0 || len(o.Replicas) != 2 || !o.Replicas[0].Leads || o.Replicas[1].Leads || o.Replicas[1].Pod != "team-a/mine-2" {
		t.Errorf("%d %v %s", status, err, out)
	}
	a = teamA()
	a.set("team-a/mine", "laptop_1", "laptop_1", 0)
	forged("team-b", "laptop", "mine")
	if _, out := statusBeside(t, a, statusOfDaemon()); strings.Contains(out, "team-b") || strings.Contains(out, ", leads\n") {
		t.Errorf("a leader outside of the cluster:\n%s", out)
	}
	a = teamA()
	for i := range 2 * mostReplicas {
		forged("team-a", fmt.Sprint("forged-", i), "mine")
	}
	if _, out := statusBeside(t, a, statusOfDaemon()); strings.Count(out, "on n1: ready") != mostReplicas || !strings.Contains(out, "NOT SEEN  some replicas: more than 100 pods of namespace team-a have the label") {
		t.Errorf("many pods:\n%s", out)
	}
}

// Where nobody answers, the call ends all the same.
func TestStatusOfSilence(t *testing.T) {
	quiet := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer quiet.Close()
	flags := scheduler(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for _, way := range [][]string{flags[2:], nil} {
		call := append([]string{"status", "--request-timeout=50ms", "--kubeconfig", kubeconfigFor(t, quiet.URL)}, way...)
		if status, out, err := berth("", call...); status != exitInvalid || out != "" || !strings.Contains(err, "nothing could be seen: ") {
			t.Errorf("%d %q %q", status, out, err)
		}
	}
}

// Where one side cannot be asked, the other's part is shown, and what is missing is named.
// Where nothing can be seen, it is an error.
func TestStatusSeesAPart(t *testing.T) {
	status, out := statusBeside(t, teamA(), nil)
	for _, want := range []string{"LEASE", "REPLICAS", "NOT SEEN", `what the scheduler says of itself: `, "is forbidden (403)", "the scheduler could not be asked", "the pods that wait: only the scheduler says which profiles it has, and what it says is not known"} {
		if status != exitAttention || !strings.Contains(out, want) {
			t.Errorf("no right: %d, no %q in\n%s", status, want, out)
		}
	}
	narrow := teamA()
	narrow.narrow = true
	status, out = statusBeside(t, narrow, statusOfDaemon())
	for _, want := range []string{"LEASE     team-a/mine", "QUEUE", "NOT SEEN  the replicas: ", "forbidden"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("few rights: %d, no %q in\n%s", status, want, out)
		}
	}
	other := &apiWithLeases{narrow: true}
	other.set("kube-system/kube-scheduler", "master_1", "", 0)
	server := httptest.NewServer(other)
	defer server.Close()
	status, out, err := berth("", "status", "--kubeconfig", kubeconfigFor(t, server.URL))
	if status != exitInvalid || out != "" || !strings.Contains(err, "nothing could be seen: ") || !strings.Contains(err, "held by master_1: kube-scheduler, which is not Berth") || strings.Contains(err, "the pods that wait") {
		t.Errorf("kube-scheduler: %d %q %q", status, out, err)
	}
}

// A shadow's table has a row for each kind of choice. Without a lease to name its
// certificate it is not asked unless the call says so.
func TestStatusOfAShadow(t *testing.T) {
	s := statusOfDaemon()
	s.Lease, s.Leads, s.Shadow = "", true, &api.ShadowStatus{Placeable: 2, Choices: []api.Choices{
		{Result: "tie", Profile: "default-scheduler", Pods: 30}, {Result: "sampled", Plugin: "NodeResourcesFit", Profile: "default-scheduler", Pods: 10}}}
	status, out := statusBeside(t, &apiWithLeases{}, s)
	for _, want := range []string{"is a shadow: it compares, and schedules nothing", "\n40 CHOICES OF THE LIVE SCHEDULER", "  30  75.0%  tie      -                 default-scheduler\n",
		"  10  25.0%  sampled  NodeResourcesFit  default-scheduler\n", "2 pods wait for more than 10 s though Berth would place them."} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("%d, no %q in\n%s", status, want, out)
		}
	}
	a := teamA()
	a.pods[0].Spec.Containers = []v1.Container{{Args: []string{"--shadow"}}}
	server := httptest.NewServer(a)
	defer server.Close()
	call := []string{"status", "--shadow", "team-a", "--kubeconfig", kubeconfigFor(t, server.URL)}
	if status, _, err := berth("", call...); status != exitInvalid || !strings.Contains(err, "give --insecure-skip-tls-verify to send your credentials") || a.forwarded != "" {
		t.Errorf("%d %q, forwarded to %q", status, err, a.forwarded)
	}
	elsewhere := []string{"status", "--shadow", "team-b", "--insecure-skip-tls-verify", "--kubeconfig", call[4]}
	if status, _, err := berth("", elsewhere...); status != exitInvalid || !strings.Contains(err, "no pod of namespace team-b with the label") || a.forwarded != "" {
		t.Errorf("in another namespace: %d %q, forwarded to %q", status, err, a.forwarded)
	}
	if status, out, err := berth("", append(call, "--insecure-skip-tls-verify")...); a.forwarded != "team-a/mine-1" || status != exitAttention || !strings.Contains(out, "cannot create pods/portforward") {
		t.Errorf("%d %q %q, forwarded to %q", status, out, err, a.forwarded)
	}
}
