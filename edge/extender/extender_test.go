package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	configv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/fence"
)

// served is an extender that answers whatever f does, with all verbs.
func served(t *testing.T, f http.HandlerFunc, change func(*configv1.Extender)) (Extenders, string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // only then is a client noticed that went away
		r.Body = io.NopCloser(bytes.NewReader(body))
		f(w, r)
	}))
	t.Cleanup(server.Close)
	c := configv1.Extender{URLPrefix: server.URL + "/", FilterVerb: "filter", PrioritizeVerb: "prioritize", PreemptVerb: "preempt",
		BindVerb: "bind", Weight: 1, NodeCacheCapable: true}
	if change != nil {
		change(&c)
	}
	x, err := New([]configv1.Extender{c})
	if err != nil {
		t.Fatal(err)
	}
	return x, server.URL + "/"
}

func says(reply string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, reply) }
}

func pod(name string) *object.Pod {
	api := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	return &object.Pod{UID: api.UID, Namespace: "ns", Name: name, API: api}
}

func question(v machine.Verb) machine.CallExtender {
	e := machine.CallExtender{Pod: pod("p"), Call: 7, Verb: v}
	if v == machine.Preempt {
		e.Candidates = []framework.Candidate{{Node: "a", Victims: []*object.Pod{pod("x"), pod("y")}, NumPDBViolations: 1}, {Node: "b", Victims: []*object.Pod{pod("z")}}}
		return e
	}
	for _, n := range []string{"a", "b"} {
		e.Nodes = append(e.Nodes, &object.Node{Name: n, API: &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n}}})
	}
	return e
}

// TestReplies has, for a question and the bytes of a reply, what becomes of it.
func TestReplies(t *testing.T) {
	whole := func(c *configv1.Extender) { c.NodeCacheCapable = false }
	for _, c := range []struct {
		name   string
		verb   machine.Verb
		reply  string
		change func(*configv1.Extender)
		want   machine.ExtenderReply
		err    string // URL stands for the extender's
	}{
		{name: "all pass", verb: machine.Filter, reply: `{"nodenames":["b","a"]}`, want: machine.ExtenderReply{Passed: []string{"b", "a"}}},
		{name: "none passes, without a word", verb: machine.Filter, reply: `{"nodenames":[]}`, want: machine.ExtenderReply{Passed: []string{}}},
		{name: "reasons", verb: machine.Filter, reply: `{"nodenames":[],"failedNodes":{"a":"no"},"failedAndUnresolvableNodes":{"b":"never"}}`,
			want: machine.ExtenderReply{Passed: []string{}, Failed: map[string]string{"a": "no"}, Unresolvable: map[string]string{"b": "never"}}},
		{name: "a reason without end", verb: machine.Filter, reply: `{"nodenames":["b"],"failedNodes":{"a":"` + strings.Repeat("no", 1000) + `"}}`,
			want: machine.ExtenderReply{Passed: []string{"b"}, Failed: map[string]string{"a": strings.Repeat("no", 512) + " ..."}}},
		{name: "only reasons", verb: machine.Filter, reply: `{"failedNodes":{"a":"no","b":"no"}}`,
			want: machine.ExtenderReply{Failed: map[string]string{"a": "no", "b": "no"}}},
		{name: "whole nodes", verb: machine.Filter, reply: `{"nodes":{"items":[{"metadata":{"name":"b"}}]}}`, change: whole, want: machine.ExtenderReply{Passed: []string{"b"}}},
		{name: "its own error", verb: machine.Filter, reply: `{"error":"out of order"}`, err: "out of order"},
		{name: "null", verb: machine.Filter, reply: ` null`, err: `extender "URL": filter: the reply is null`},
		{name: "nothing", verb: machine.Filter, reply: ``, err: `extender "URL": filter: the reply cannot be decoded: unexpected end of JSON input`},
		{name: "truncated", verb: machine.Filter, reply: `{"nodenames":["a"`, err: `extender "URL": filter: the reply cannot be decoded: unexpected end of JSON input`},
		{name: "more than a reply", verb: machine.Filter, reply: `{"nodenames":[]} {}`, err: `extender "URL": filter: the reply cannot be decoded: invalid character '{' after top-level value`},
		{name: "of another type", verb: machine.Filter, reply: `[]`, err: `extender "URL": filter: the reply cannot be decoded: json: cannot unmarshal array into Go value of type extender.filterReply`},
		{name: "no list", verb: machine.Filter, reply: `{"failedNodes":{"a":"no"}}`, err: `extender "URL": filter: the reply has neither nodes nor nodenames, and node "b" is not among the failed nodes`},
		{name: "names where nodes are due", verb: machine.Filter, reply: `{"nodenames":["a"]}`, change: whole, err: `extender "URL": filter: the reply has neither nodes nor nodenames, and node "a" is not among the failed nodes`},
		{name: "an unknown node", verb: machine.Filter, reply: `{"nodenames":["a","c"]}`, err: `extender "URL" claims a filtered node "c" which is not found in the input node list`},
		{name: "an invented node", verb: machine.Filter, reply: `{"nodes":{"items":[null]}}`, change: whole, err: `extender "URL" claims a filtered node "" which is not found in the input node list`},
		{name: "a reason for an unknown node", verb: machine.Filter, reply: `{"nodenames":[],"failedNodes":{"d":"","c":""}}`, err: `extender "URL": filter: node "c" was not asked about`},

		{name: "scores", verb: machine.Prioritize, reply: `[{"host":"a","score":10},{"host":"b","score":0},{"host":"a","score":1}]`, want: machine.ExtenderReply{Scores: map[string]int64{"a": 11, "b": 0}}},
		{name: "scores of some", verb: machine.Prioritize, reply: `[{"host":"a","score":1000}]`, want: machine.ExtenderReply{Scores: map[string]int64{"a": 1000}}},
		{name: "no scores", verb: machine.Prioritize, reply: `null`, err: `extender "URL": prioritize: the reply is null`},
		{name: "a negative score", verb: machine.Prioritize, reply: `[{"host":"a","score":-1}]`, err: `extender "URL": prioritize: score -1 of node "a" is not between 0 and 1000`},
		{name: "an absurd score", verb: machine.Prioritize, reply: `[{"host":"a","score":9223372036854775807}]`, err: `extender "URL": prioritize: score 9223372036854775807 of node "a" is not between 0 and 1000`},
		{name: "a score in pieces", verb: machine.Prioritize, reply: `[{"host":"a","score":1000},{"host":"a","score":1}]`, err: `extender "URL": prioritize: score 1 of node "a" is not between 0 and 1000`},
		{name: "no number", verb: machine.Prioritize, reply: `[{"host":"a","score":1e308}]`, err: `extender "URL": prioritize: the reply cannot be decoded: json: cannot unmarshal number 1e308 into Go struct field HostPriority.Score of type int64`},
		{name: "a score of an unknown node", verb: machine.Prioritize, reply: `[{"host":"c","score":1}]`, err: `extender "URL": prioritize: node "c" was not asked about`},

		{name: "victims", verb: machine.Preempt, reply: `{"nodeNameToMetaVictims":{"b":{"pods":[{"uid":"z"}]},"a":{"pods":[{"uid":"y"}],"numPDBViolations":1}}}`,
			want: machine.ExtenderReply{Victims: []machine.NodeVictims{{Node: "a", Victims: []types.UID{"y"}, Violations: 1}, {Node: "b", Victims: []types.UID{"z"}}}}},
		{name: "no candidate", verb: machine.Preempt, reply: `{}`},
		{name: "null victims", verb: machine.Preempt, reply: `{"nodeNameToMetaVictims":{"a":null}}`, err: `extender "URL": preempt: the victims on node "a" are null`},
		{name: "a null victim", verb: machine.Preempt, reply: `{"nodeNameToMetaVictims":{"a":{"pods":[null]}}}`, err: `extender "URL": preempt: a victim on node a is null`},
		{name: "less than no violation", verb: machine.Preempt, reply: `{"nodeNameToMetaVictims":{"a":{"numPDBViolations":-1}}}`, err: `extender "URL": preempt: -1 disruption budgets violated on node "a"`},
	} {
		t.Run(string(c.verb)+" "+c.name, func(t *testing.T) {
			x, url := served(t, says(c.reply), c.change)
			got := x.Answer(t.Context(), question(c.verb))
			said := ""
			if got.Err != nil {
				said = strings.ReplaceAll(got.Err.Error(), url, "URL")
			}
			if said != c.err {
				t.Fatalf("error %q, want %q", said, c.err)
			}
			if c.err != "" {
				return
			}
			if c.want.UID, c.want.Call = "p", 7; !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestQuestions: what goes over the wire, with names and with whole objects.
func TestQuestions(t *testing.T) {
	for _, capable := range []bool{true, false} {
		asked := map[string]string{}
		x, _ := served(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			asked[r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type")] = string(body)
			_, _ = io.WriteString(w, "{}")
		}, func(c *configv1.Extender) { c.NodeCacheCapable = capable })
		x.Answer(t.Context(), question(machine.Filter))
		x.Answer(t.Context(), question(machine.Preempt))
		_, _ = x.Bind(t.Context(), machine.BindByExtender{Pod: pod("p"), Node: "a"}, always)

		var about extenderv1.ExtenderArgs
		decode(t, asked["POST /filter application/json"], &about)
		if about.Pod == nil || about.Pod.Name != "p" || (about.NodeNames == nil) == capable || (about.Nodes == nil) != capable {
			t.Errorf("filter: %+v", about)
		}
		var victims extenderv1.ExtenderPreemptionArgs
		decode(t, asked["POST /preempt application/json"], &victims)
		if capable && len(victims.NodeNameToMetaVictims["a"].Pods) != 2 || !capable && victims.NodeNameToVictims["a"].Pods[1].Name != "y" {
			t.Errorf("preempt: %+v", victims)
		}
		if want := `{"podName":"p","podNamespace":"ns","podUID":"p","node":"a"}`; !strings.EqualFold(asked["POST /bind application/json"], want) {
			t.Errorf("bind: %s", asked["POST /bind application/json"])
		}
	}
}

func decode(t *testing.T, body string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), into); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
}

// TestTransport: whatever the connection does, the answer is an error in time.
func TestTransport(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for _, c := range []struct {
		name string
		f    http.HandlerFunc
		err  string
		bind machine.BindResult
	}{
		{"500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "failed filter with extender at URL URLfilter, code 500", machine.BindRefused},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
			"failed filter with extender at URL URLfilter, code 307", machine.BindRefused},
		{"endless", func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, "is larger than", machine.BindUnknown},
		{"late", hang, "Client.Timeout exceeded", machine.BindUnknown},
		{"cut", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
		}, "reading the reply: unexpected EOF", machine.BindUnknown},
		{"reset", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF", machine.BindUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit := time.Hour
			if c.name == "late" {
				limit = time.Second
			}
			x, url := served(t, c.f, func(e *configv1.Extender) { e.HTTPTimeout.Duration = limit })
			if a := x.Answer(t.Context(), question(machine.Filter)); a.Err == nil || !strings.Contains(strings.ReplaceAll(a.Err.Error(), url, "URL"), c.err) {
				t.Errorf("got %v, want %q", a.Err, c.err)
			}
			if result, err := x.Bind(t.Context(), machine.BindByExtender{Pod: pod("p"), Node: "a"}, always); result != c.bind || err == nil {
				t.Errorf("bind: got %v %v, want %v", result, err, c.bind)
			}
		})
	}
}

func always() bool { return true }

// A binding is not asked for where the lease runs out while the connection is made.
func TestLeaseRunsOutWhileConnecting(t *testing.T) {
	var asked atomic.Int32 // a request that is cut off does not count
	x, _ := served(t, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); json.Valid(body) {
			asked.Add(1)
		}
		_, _ = io.WriteString(w, "{}")
	}, nil)
	var lost atomic.Bool
	way := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		lost.Store(true)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	defer way.CloseIdleConnections()
	x.Via(way)
	bind := machine.BindByExtender{Pod: pod("p"), Node: "a"}
	if got, err := x.Bind(t.Context(), bind, func() bool { return !lost.Load() }); got != machine.BindRefused || !errors.Is(err, fence.ErrNotLeading) {
		t.Errorf("got %v %v", got, err)
	}
	if got, err := x.Bind(t.Context(), bind, always); got != machine.BindDone || asked.Load() != 1 {
		t.Errorf("with the lease: got %v %v, asked %d times", got, err, asked.Load())
	}
}

// TestBind: only what the extender says no to, or never heard of, is refused.
func TestBind(t *testing.T) {
	for reply, want := range map[string]machine.BindResult{
		`{}`: machine.BindDone, `{"error":"no"}`: machine.BindRefused, `null`: machine.BindUnknown, `{`: machine.BindUnknown,
	} {
		x, _ := served(t, says(reply), nil)
		if got, err := x.Bind(t.Context(), machine.BindByExtender{Pod: pod("p"), Node: "a"}, always); got != want || (err == nil) != (got == machine.BindDone) {
			t.Errorf("%s: got %v %v, want %v", reply, got, err, want)
		}
	}
	x, err := New([]configv1.Extender{{URLPrefix: "http://127.0.0.1:1", BindVerb: "bind"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := x.Bind(t.Context(), machine.BindByExtender{Pod: pod("p"), Node: "a"}, always); got != machine.BindRefused || err == nil {
		t.Errorf("nobody there: got %v %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := x.Bind(ctx, machine.BindByExtender{Pod: pod("p"), Node: "a"}, always); got == machine.BindDone || err == nil {
		t.Errorf("cancelled: got %v %v", got, err)
	}
}

// TestWeight: weights have a bound beyond which they count as the bound.
func TestWeight(t *testing.T) {
	for weight, want := range map[int64]int64{1: 1, 1 << 32: 1 << 32, 1<<32 + 1: 1 << 32, math.MaxInt64: 1 << 32} {
		x, err := New([]configv1.Extender{{URLPrefix: "http://e", PrioritizeVerb: "p", Weight: weight}})
		if err != nil || x[0].Weight != want {
			t.Errorf("weight %d: got %+v, %v", weight, x, err)
		}
	}
}

// TestTLS: with a CA the server is verified, without one it is not.
func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(says(`{"nodenames":["a"]}`))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for _, c := range []struct {
		name   string
		tls    *configv1.ExtenderTLSConfig
		https  bool
		answer bool
	}{
		{"no CA, enableHTTPS", nil, true, true},
		{"no CA", nil, false, false},
		{"insecure", &configv1.ExtenderTLSConfig{Insecure: true}, false, true},
		{"its CA", &configv1.ExtenderTLSConfig{CAData: ca}, true, true},
		{"its CA, another name", &configv1.ExtenderTLSConfig{CAData: ca, ServerName: "elsewhere.test"}, true, false},
	} {
		x, err := New([]configv1.Extender{{URLPrefix: server.URL, FilterVerb: "f", NodeCacheCapable: true, EnableHTTPS: c.https, TLSConfig: c.tls}})
		if err != nil {
			t.Fatal(err)
		}
		if a := x.Answer(t.Context(), question(machine.Filter)); (a.Err == nil) != c.answer {
			t.Errorf("%s: got %v", c.name, a.Err)
		}
	}
	_, err := New([]configv1.Extender{{URLPrefix: "https://me:hush@e", TLSConfig: &configv1.ExtenderTLSConfig{CAFile: "/nowhere"}}})
	if err == nil || !strings.HasPrefix(err.Error(), "extenders[0] (https://me:xxxxx@e): ") {
		t.Errorf("got %v", err)
	}
}

// TestOrder: those that may be ignored come last, and each knows its pods.
func TestOrder(t *testing.T) {
	x, err := New([]configv1.Extender{
		{URLPrefix: "http://lax", Ignorable: true, FilterVerb: "f"},
		{URLPrefix: "http://strict", PreemptVerb: "p", ManagedResources: []configv1.ExtenderManagedResource{{Name: "a.io/b"}}},
		{URLPrefix: "http://loose", Ignorable: true, BindVerb: "b", HTTPTimeout: metav1.Duration{Duration: time.Minute}},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := x.Machine()
	if m[0].Name != "http://strict" || m[1].Name != "http://lax" || m[2].Name != "http://loose" || m[1].Timeout != 5*time.Second || m[2].Timeout != time.Minute {
		t.Errorf("got %+v", m)
	}
	with := func(list func(*v1.PodSpec, v1.ResourceRequirements)) *v1.Pod {
		p := &v1.Pod{}
		list(&p.Spec, v1.ResourceRequirements{Limits: v1.ResourceList{"a.io/b": {}}})
		return p
	}
	for name, p := range map[string]*v1.Pod{
		"init": with(func(s *v1.PodSpec, r v1.ResourceRequirements) { s.InitContainers = []v1.Container{{Resources: r}} }),
		"main": with(func(s *v1.PodSpec, r v1.ResourceRequirements) { s.Containers = []v1.Container{{}, {Resources: r}} }),
	} {
		if !m[0].Interested(p) {
			t.Errorf("%s: not interested", name)
		}
	}
	if m[0].Interested(&v1.Pod{}) || !m[1].Interested(&v1.Pod{}) || !x[:1].Pod(&v1.Pod{Spec: v1.PodSpec{NodeName: "n"}}) || !x[:1].Pod(&v1.Pod{}) || x[1:2].Pod(with(func(s *v1.PodSpec, r v1.ResourceRequirements) { s.NodeName = "n" })) || x[:1].Nodes() || !x.Nodes() {
		t.Error("interest in pods and nodes")
	}
}

// A password in the address of an extender is in no error, be the address a URL
// or not.
func TestPasswordStaysInside(t *testing.T) {
	const password = "pa55"
	for name, address := range map[string]string{
		"refused":      "http://user:pa55@127.0.0.1:1/",
		"no URL":       "http://user:pa55%zz@extender/",
		"a wrong port": "http://user:pa55/word@extender:99/",
	} {
		t.Run(name, func(t *testing.T) {
			x, err := New([]configv1.Extender{{URLPrefix: address, FilterVerb: "filter", BindVerb: "bind"}})
			if err != nil {
				t.Fatal(err)
			}
			filter := x.Answer(t.Context(), question(machine.Filter)).Err
			_, bind := x.Bind(t.Context(), machine.BindByExtender{Pod: pod("p"), Node: "a"}, always)
			_, tls := New([]configv1.Extender{{URLPrefix: address, EnableHTTPS: true, TLSConfig: &configv1.ExtenderTLSConfig{CAFile: "/nowhere"}}})
			for _, err := range []error{filter, bind, tls} {
				if err == nil || strings.Contains(err.Error(), password) {
					t.Errorf("error %v", err)
				}
			}
			if strings.Contains(x.Machine()[0].Name, password) {
				t.Errorf("name %s", x.Machine()[0].Name)
			}
		})
	}
}

// A file of an extender's TLS configuration that is none is refused, and not waited for.
func TestFilesOfTLS(t *testing.T) {
	for name, files := range map[string]configv1.ExtenderTLSConfig{"caFile": {CAFile: "/dev/zero"}, "certFile": {CertFile: "/dev/zero"}, "keyFile": {KeyFile: "/dev/zero"}} {
		_, err := New([]configv1.Extender{{URLPrefix: "https://x", EnableHTTPS: true, TLSConfig: &files}})
		if err == nil || !strings.Contains(err.Error(), "extenders[0] (https://x): tlsConfig: read /dev/zero: is a device, not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
