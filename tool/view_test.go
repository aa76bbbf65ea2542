package tool

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/why"
)

// viewed is a browser that has opened the page.
type viewed struct {
	testing.TB
	base    string
	browser *http.Client
	address string
}

// view runs the command with the arguments until the test ends, and opens the page.
func view(t testing.TB, args ...string) *viewed {
	t.Helper()
	v := started(t, args...)
	reply, err := v.browser.Get(v.address)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if page, _ := io.ReadAll(reply.Body); reply.StatusCode != http.StatusOK || !bytes.Contains(page, []byte(`src="page.js"`)) {
		t.Fatalf("%s: %s %s", v.address, reply.Status, page)
	}
	return v
}

// started runs the command with the arguments until the test ends. Nothing that it logs may have the
// code of its address or the cookie.
func started(t testing.TB, args ...string) *viewed {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	from, to := io.Pipe()
	var errs bytes.Buffer
	cmd := newCommand("berth", Build{Version: version})
	cmd.SetContext(ctx)
	done := make(chan int, 1)
	go func() {
		status := execute(cmd, append([]string{"view"}, args...), strings.NewReader(""), to, &errs)
		_ = to.Close()
		done <- status
	}()
	address, err := bufio.NewReader(from).ReadString('\n')
	if err != nil {
		cancel()
		<-done
		t.Fatal(err, errs.String())
	}
	v := &viewed{TB: t, address: strings.TrimSpace(address)}
	base, code, _ := strings.Cut(v.address, "/start?once=")
	v.base = base
	t.Cleanup(func() {
		cancel()
		if status := <-done; status != exitPlaced {
			t.Errorf("exit status %d: %s", status, errs.String())
		}
		if strings.Contains(errs.String(), code) || v.cookie() != nil && strings.Contains(errs.String(), v.cookie().Value) {
			t.Errorf("a secret is logged: %s", errs.String())
		}
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v.browser = &http.Client{Jar: jar, Timeout: time.Minute}
	return v
}

// cookie returns the cookie that opens the data, nil if the page was not opened yet.
func (v *viewed) cookie() *http.Cookie {
	cookies := v.browser.Jar.Cookies(&url.URL{Scheme: "http", Host: strings.TrimPrefix(v.base, "http://"), Path: "/"})
	if len(cookies) == 0 {
		return nil
	}
	return cookies[0]
}

// get asks, as the page does.
func (v *viewed) get(what string, out any) int {
	v.Helper()
	reply, err := v.browser.Get(v.base + api.Prefix + what)
	return v.read(reply, err, out)
}

// post asks a question.
func (v *viewed) post(what, question string, out any) int {
	v.Helper()
	reply, err := v.browser.Post(v.base+api.Prefix+what, "application/json", strings.NewReader(question))
	return v.read(reply, err, out)
}

func (v *viewed) read(reply *http.Response, err error, out any) int {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
	defer reply.Body.Close()
	if err := json.NewDecoder(reply.Body).Decode(out); err != nil {
		v.Error(err)
	}
	return reply.StatusCode
}

// Files are shown as the daemon would show them: as they are, and as a simulation leaves them.
func TestViewFiles(t *testing.T) {
	for _, simulates := range []bool{false, true} {
		args := []string{"-f", "testdata/stuck.yaml"}
		if simulates {
			args = append(args, "--simulate")
		}
		v := view(t, args...)
		var s api.Summary
		if code := v.get("summary", &s); code != http.StatusOK || s.Nodes != 4 {
			t.Errorf("%d %+v", code, s)
		}
		waits := s.Queue.Active + s.Queue.Unschedulable
		if waits == 0 || (s.Queue.Unschedulable > 0) != simulates || (len(s.Blocking) > 0) != simulates {
			t.Errorf("simulated %t: %+v, blocking %v", simulates, s.Queue, s.Blocking)
		}
		var nodes api.NodeTable
		if v.get("nodes", &nodes); len(nodes.Names) != 4 || nodes.Resources["cpu"].Allocatable[1] != 4000 {
			t.Errorf("%+v", nodes)
		}
		var pending api.PendingList
		if v.get("pending", &pending); pending.Total == 0 {
			t.Fatal("no pod waits")
		}
		var a why.Answer
		if code := v.get("why?pod=default/affinity", &a); code != http.StatusOK || a.Verdict != why.Misconfigured || len(a.Groups) == 0 {
			t.Errorf("%d %+v", code, a)
		}
		var p api.Problem
		if code := v.get("why?pod=default/nobody", &p); code != http.StatusNotFound || p.Message != "pod default/nobody: there is no such pod" {
			t.Errorf("%d %+v", code, p)
		}
		var records api.RecordList
		if v.get("records", &records); (len(records.Records) > 0) != simulates {
			t.Errorf("simulated %t: %d records", simulates, len(records.Records))
		}
	}
}

// A pod that a simulation placed has its node, also for the question why.
func TestViewOfPlacedPods(t *testing.T) {
	v := view(t, "-f", "testdata/small.yaml", "--simulate")
	code, out, _ := berth("", "simulate", "-f", "testdata/small.yaml", "-o", "json")
	var r struct{ Placements map[string]string }
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitUnplaced || len(r.Placements) == 0 {
		t.Fatal(code, err, r)
	}
	for pod, node := range r.Placements {
		var a why.Answer
		if code := v.get("why?pod="+pod, &a); code != http.StatusOK || a.Verdict != why.Placed || a.Node != node {
			t.Errorf("%s on %s: %d %s %s", pod, node, code, a.Verdict, a.Node)
		}
	}
}

// The page's questions have the answers of the commands, and read no file.
func TestViewAsks(t *testing.T) {
	const file = "testdata/stuck.yaml"
	v := view(t, "-f", file)
	for _, tt := range []struct {
		what, question string
		command        []string
	}{
		{"what-if", `{"change":"add-nodes 2 cpu=64,memory=256Gi , uncordon n3"}`, []string{"what-if", "-f", file, "-o", "json", "add-nodes", "2", "cpu=64,memory=256Gi", ",", "uncordon", "n3"}},
		{"simulate", `{}`, []string{"simulate", "-f", file, "-o", "json"}},
		{"fit", `{"nodesLike":["cpu=64,memory=256Gi"]}`, []string{"fit", "-f", file, "-o", "json", "--nodes-like", "cpu=64,memory=256Gi"}},
	} {
		var got, want any
		_, out, errs := berth("", tt.command...)
		if err := json.Unmarshal([]byte(out), &want); err != nil {
			t.Fatal(errs, err)
		}
		if code := v.post(tt.what, tt.question, &got); code != http.StatusOK || !sameJSON(got, want) {
			t.Errorf("%s: %d\ngot  %v\nwant %v", tt.what, code, got, want)
		}
	}
	secret := filepath.Join(t.TempDir(), "secret.yaml")
	write(t, secret, "kind: Secret")
	for _, tt := range []struct{ what, question, want string }{
		{"what-if", `{"change":"nonsense"}`, `"nonsense" is no change`},
		{"what-if", `{"change":"apply ` + secret + `"}`, "the page reads no files"},
		{"what-if", `{"words":"drain n1"}`, `unknown field "words"`},
		{"fit", `{"scale":"` + secret + `"}`, "the page reads no files"},
		{"fit", `{"after":"apply ` + secret + `"}`, "the page reads no files"},
		{"simulate", `{"pods":["default/nobody"]}`, "there is no pod default/nobody"},
	} {
		var p api.Problem
		if code := v.post(tt.what, tt.question, &p); code != http.StatusBadRequest || !strings.Contains(p.Message, tt.want) {
			t.Errorf("%s %s: %d %s", tt.what, tt.question, code, p.Message)
		}
	}
}

// Where the page asks for them, a what-if has each node before and after beside what the command says.
func TestViewWhatIfNodes(t *testing.T) {
	const file = "testdata/stuck.yaml"
	v := view(t, "-f", file)
	var got map[string]any
	if code := v.post("what-if", `{"change":"drain n2 , add-nodes 1 n1","nodes":true}`, &got); code != http.StatusOK {
		t.Fatal(code, got)
	}
	part, _ := json.Marshal(got["nodes"])
	type table struct {
		Names     []string
		Cordoned  []bool
		Zones     []string
		Resources map[string]api.Amounts
	}
	var nodes struct{ Before, After table }
	if err := json.Unmarshal(part, &nodes); err != nil {
		t.Fatal(err)
	}
	b, a := nodes.Before, nodes.After
	if fmt.Sprint(b.Names, b.Cordoned, b.Zones) != "[gpu1 n1 n2 n3] [false false false true] [b a a b]" {
		t.Errorf("before: %+v", b)
	}
	if len(a.Names) != 5 || !a.Cordoned[slices.Index(a.Names, "n2")] {
		t.Errorf("after: %+v", a)
	}
	for _, of := range []struct {
		table
		node            string
		cpu, pods, room int64
	}{{b, "n2", 3000, 2, 4000}, {a, "n2", 0, 0, 4000}} {
		at := slices.Index(of.Names, of.node)
		cpu, pods := of.Resources["cpu"], of.Resources["pods"]
		if cpu.Requested[at] != of.cpu || pods.Requested[at] != of.pods || cpu.Allocatable[at] != of.room || pods.Allocatable[at] != 10 {
			t.Errorf("%s: %d of %d CPU, %d of %d pods", of.node, cpu.Requested[at], cpu.Allocatable[at], pods.Requested[at], pods.Allocatable[at])
		}
	}
	delete(got, "nodes")
	var want any
	_, out, errs := berth("", "what-if", "-f", file, "-o", "json", "drain", "n2", ",", "add-nodes", "1", "n1")
	if err := json.Unmarshal([]byte(out), &want); err != nil || !sameJSON(got, want) {
		t.Errorf("%s %v\ngot  %v\nwant %v", errs, err, got, want)
	}
}

// Which nodes a pod does not fit, and why, is told of files as a daemon tells it, of each node: of pods
// that wait, and of one that a simulation placed.
func TestViewBlockers(t *testing.T) {
	for _, tt := range []struct{ file, pod, blockers, on, simulatedOn string }{
		{"stuck.yaml", "default/cordoned", "gpu1: TaintToleration NodeAffinity, n1: NodeAffinity, n2: NodeAffinity, n3: NodeUnschedulable TaintToleration", "", ""},
		{"stuck.yaml", "default/train-1", "gpu1: fits, n1: NodeResourcesFit, n2: NodeResourcesFit, n3: NodeUnschedulable TaintToleration NodeResourcesFit", "gpu1", "gpu1"},
		{"small.yaml", "default/trainer", "node-a: NodeResourcesFit, node-b: fits", "", "node-b"},
	} {
		for _, simulates := range []bool{false, true} {
			args, on := []string{"-f", "testdata/" + tt.file}, tt.on
			if simulates {
				args, on = append(args, "--simulate"), tt.simulatedOn
			}
			var n api.NodeBlockers
			if code := view(t, args...).get("blockers?pod="+tt.pod, &n); code != http.StatusOK {
				t.Fatalf("%d %+v", code, n)
			}
			var nodes []string
			for i, name := range n.Names {
				blockers := " fits"
				if of := n.Blockers.Of[i]; of >= 0 {
					blockers = ""
					for _, b := range n.Blockers.Values[of] {
						blockers += " " + b.Plugin
					}
				}
				nodes = append(nodes, name+":"+blockers)
			}
			if got := strings.Join(nodes, ", "); got != tt.blockers || n.Node != on {
				t.Errorf("%s, simulated %t:\ngot  %s\nwant %s\non %q, want %q", tt.pod, simulates, got, tt.blockers, n.Node, on)
			}
		}
	}
}

func sameJSON(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

// Live, the page has what the daemon answers, with the credentials of the kubeconfig and no header
// of the browser.
func TestViewLive(t *testing.T) {
	var streams atomic.Int32
	daemon := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("Cookie") != "" || r.Header.Get("Referer") != "":
			t.Errorf("%s: %v", r.URL, r.Header)
		case r.URL.Path == api.Prefix+"watch":
			streams.Add(1)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: a-1\nevent: record\ndata: {\"pod\":\"shop/cart\"}\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case r.URL.Path == api.Prefix+"summary":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"Summary","nodes":7}`)
		default:
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","message":"ann cannot get it"}`)
		}
	}))
	defer daemon.Close()
	v := view(t, "--daemon", daemon.URL, "--insecure-skip-tls-verify", "--kubeconfig", kubeconfigFor(t, daemon.URL))
	var s api.Summary
	if code := v.get("summary", &s); code != http.StatusOK || s.Nodes != 7 {
		t.Errorf("%d %+v", code, s)
	}
	var p api.Problem
	if code := v.get("nodes", &p); code != http.StatusForbidden || !strings.Contains(p.Message, "ann cannot get it. Whoever may give rights can run: kubectl create clusterrolebinding") {
		t.Errorf("%d %+v", code, p)
	}
	for range 2 {
		reply, err := v.browser.Get(v.base + api.Prefix + "watch")
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		lines := bufio.NewScanner(reply.Body)
		for lines.Scan() && !strings.Contains(lines.Text(), `{"state":"live"}`) {
		}
	}
	if n := streams.Load(); n != 1 {
		t.Errorf("%d streams", n)
	}
}

// Wrong calls say what is wrong.
func TestViewCalls(t *testing.T) {
	for call, want := range map[string]string{
		"view cluster.yaml": "unexpected argument \"cluster.yaml\"; give files with -f",
		"view --simulate":   "--simulate: is about files; give some with -f",
		"view -f -":         "--filename -: the page reads the files again for each question; give a file",
		"view -f testdata/stuck.yaml --daemon auto":              "--daemon: asks a scheduler about its own cluster; -f shows files",
		"view -f testdata/stuck.yaml --port 70000":               "--port 70000: must be from 1 to 65535",
		"view -f testdata/nothing.yaml":                          "testdata/nothing.yaml: no such file or directory",
		"view --kubeconfig /nowhere":                             "--kubeconfig /nowhere: there is no such file",
		"view --daemon http://127.0.0.1 --kubeconfig /no":        "--daemon http://127.0.0.1: must be like https://HOST:PORT, or auto",
		"view -f testdata/stuck.yaml --insecure-skip-tls-verify": "--insecure-skip-tls-verify: asks a scheduler about its own cluster; -f shows files",
	} {
		if status, _, errs := berth("", strings.Fields(call)...); status != exitInvalid || !strings.Contains(errs, want) {
			t.Errorf("berth %s: %d %s", call, status, errs)
		}
	}
}

// Where there are quotas, each has what it uses, borrows and lends, and how many pods wait for it.
func TestViewQuotas(t *testing.T) {
	v := view(t, "-f", "testdata/quotas.yaml", "--config", "testdata/quotas-config.yaml", "--simulate")
	var list api.QuotaList
	if code := v.get("quotas", &list); code != http.StatusOK || list.Total != 2 {
		t.Fatal(code, list)
	}
	text, err := json.Marshal(list.Quotas)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"quota":"research/research","resources":[{"name":"example.com/gpu","used":6,"min":6,"max":8}],"waiting":0},{"quota":"web/web","resources":[{"name":"example.com/gpu","used":2,"min":2,"max":4}],"waiting":1}]`
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	still := view(t, "-f", "testdata/quotas.yaml", "--config", "testdata/quotas-config.yaml")
	if still.get("quotas", &list); list.Quotas[0].Resources[0].Lends != 2 || list.Quotas[1].Resources[0].Borrows != 2 {
		t.Errorf("%+v", list.Quotas)
	}
	c := startChromium(t)
	c.enter(v)
	c.route("#/groups")
	c.until(`document.querySelector("table[aria-label=Quotas]")?.innerText.includes("web/web")`)
	if n := c.eval(`document.querySelectorAll("table[aria-label=Quotas] meter").length`); n != "2" {
		t.Errorf("%s bars", n)
	}
	c.eval(`document.querySelector("table[aria-label=Quotas] a[href*=queue]").click()`)
	c.until(`document.querySelector("table[aria-label=Pods]")?.innerText.includes("web/web-3")`)
	c.quiet()
}
