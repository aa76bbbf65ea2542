package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/sim/generate"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata")

// version is that of the tool in tests.
const version = "v1.2.3-test"

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return execute(newCommand(filepath.Base(args[0]), Build{Version: version}), args[1:], stdin, stdout, stderr)
}

func berth(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(append([]string{"berth"}, args...), strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// Each output form of one cluster equals its golden file.
func TestOutputs(t *testing.T) {
	for golden, args := range map[string][]string{
		"small.json":         {"-o", "json"},
		"small-explain.json": {"-o", "json", "--explain", "--seed", "7"},
		"small.out.yaml":     {"-o", "yaml"},
		"small.table":        {},
		"small.wide":         {"-o", "wide", "--explain"},
	} {
		t.Run(golden, func(t *testing.T) {
			code, got, errs := berth("", append([]string{"simulate", "-f", "testdata/small.yaml"}, args...)...)
			if code != exitUnplaced || errs != "" {
				t.Fatalf("exit status %d, want %d; stderr %q", code, exitUnplaced, errs)
			}
			path := filepath.Join("testdata", golden)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

const (
	nodeYAML = "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}\n"
	podYAML  = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n"
)

// The exit status says whether all pods are placed, and a note names what is
// odd in the input.
func TestExitStatus(t *testing.T) {
	for name, c := range map[string]struct {
		stdin string
		code  int
		note  string
	}{
		"all placed":       {nodeYAML + "---\n" + podYAML, exitPlaced, ""},
		"nothing to place": {nodeYAML, exitPlaced, ""},
		"some not placed":  {nodeYAML + "---\n" + strings.Replace(podYAML, "name: c", "name: c, resources: {requests: {cpu: 5}}", 1), exitUnplaced, ""},
		"no nodes":         {podYAML, exitUnplaced, "berth: note: the input has no node, so no pod can be placed: give nodes with -f, or a cluster with --kubeconfig\n"},
		"a Deployment, no pod": {nodeYAML + "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n", exitPlaced,
			"berth: note: deployment default/d: spec.template: has no containers, so no pods are made of it\n"},
		"a node that offers nothing": {"apiVersion: v1\nkind: Node\nmetadata: {name: a}\n---\n" + podYAML, exitUnplaced,
			"berth: note: standard input: document 1: node a: status.allocatable: is empty, so nothing fits there\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := berth(c.stdin, "simulate", "-f", "-", "-o", "json")
			if code != c.code || errs != c.note {
				t.Errorf("exit status %d, want %d; stderr %q, want %q", code, c.code, errs, c.note)
			}
			if !json.Valid([]byte(out)) {
				t.Errorf("not JSON: %s", out)
			}
		})
	}
}

// A simulation calls no extender, and a note says so.
func TestExtendersAreNotAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders: [{urlPrefix: \"http://127.0.0.1:1\", filterVerb: filter}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := berth(nodeYAML+"---\n"+podYAML, "simulate", "-f", "-", "--config", path)
	if want := "berth: note: " + path + ": extenders: a simulation asks none of its extenders (1)\n"; code != exitPlaced || errs != want {
		t.Errorf("exit status %d, stderr %q, want %q", code, errs, want)
	}
}

// Only the pods that are asked about are explained.
func TestExplainSome(t *testing.T) {
	for args, want := range map[string]string{
		"":                            "",
		"--explain":                   "big trainer web",
		"--pod web --pod stranger":    "web",
		"--explain --pod default/big": "big",
		"-n default":                  "big trainer web",
		"-n kube-system":              "",
		"--pod web -n default":        "web",
		"-A --pod web":                "web",
		"-l !app":                     "big trainer web",
		"-n default -l app!=web":      "big trainer web",
	} {
		_, out, _ := berth("", append([]string{"simulate", "-f", "testdata/small.yaml", "-o", "json"}, strings.Fields(args)...)...)
		var result struct {
			Decisions []struct {
				Pod   string
				Nodes []any
			}
		}
		if err := json.Unmarshal([]byte(out), &result); err != nil {
			t.Fatal(err)
		}
		var explained []string
		for _, d := range result.Decisions {
			if len(d.Nodes) > 0 {
				explained = append(explained, strings.TrimPrefix(d.Pod, "default/"))
			}
		}
		slices.Sort(explained)
		if got := strings.Join(explained, " "); got != want {
			t.Errorf("%q: explained %q, want %q", args, got, want)
		}
	}
}

// Workloads become pods, and a volume that is made for a claim keeps the claim's
// next user where the volume can be reached.
func TestExpand(t *testing.T) {
	_, out, errs := berth("", "simulate", "-f", "testdata/workloads.yaml", "-o", "json")
	var result struct{ Placements, Unplaced map[string]string }
	if err := json.Unmarshal([]byte(out), &result); err != nil || errs != "" || len(result.Placements) != 11 {
		t.Fatalf("%v, %s, %v", err, errs, result)
	}
	first, reader := result.Placements["default/db-0"], result.Placements["default/reader"]
	if first != "n1" || reader != "n1" {
		t.Errorf("default/db-0 is on %s, and default/reader, which prefers n3, on %s; want both on n1, where the volume is", first, reader)
	}
	if _, out, _ := berth("", "simulate", "-f", "testdata/workloads.yaml", "-o", "json", "--expand=false"); strings.Contains(out, "db-0\": \"") {
		t.Error("--expand=false makes pods")
	}
	if _, _, errs := berth("", "simulate", "-f", "testdata/workloads.yaml", "--expand=some"); errs != "berth: --expand some: must be auto, true or false\n" {
		t.Error(errs)
	}
}

// With --ask-extenders their answers count, and none is asked to bind.
func TestExtendersAreAsked(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		var args struct {
			Pod       struct{ Metadata struct{ Name string } }
			NodeNames []string
		}
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil || args.Pod.Metadata.Name != "p" || len(args.NodeNames) != 2 {
			t.Errorf("%s: %v, %+v", r.URL.Path, err, args)
		}
		fmt.Fprint(w, `{"nodenames": ["b"], "failedNodes": {"a": "full of cats"}}`)
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders: [{urlPrefix: " + server.URL + ", filterVerb: filter, bindVerb: bind, nodeCacheCapable: true}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	nodes := nodeYAML + "---\n" + strings.Replace(nodeYAML, "name: a", "name: b", 1)
	code, out, errs := berth(nodes+"---\n"+podYAML, "simulate", "-f", "-", "--config", path, "--ask-extenders", "--explain", "-o", "json")
	if code != exitPlaced || errs != "" || !strings.Contains(out, `"default/p": "b"`) || !strings.Contains(out, "full of cats") {
		t.Errorf("exit status %d, stderr %q, stdout %s", code, errs, out)
	}
	if len(asked) != 1 || asked[0] != "/filter" {
		t.Errorf("asked %q", asked)
	}
}

// Pods that preemption evicts are listed, and the exit status stays.
func TestEvicted(t *testing.T) {
	pod := func(name, more string, priority int) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {%spriority: %d, containers: [{name: c, resources: {requests: {cpu: 3}}}]}\n", name, more, priority)
	}
	input := nodeYAML + pod("low", "nodeName: a, ", 0) + pod("hi", "", 9)
	for _, form := range []string{"table", "wide"} {
		code, out, errs := berth(input, "simulate", "-f", "-", "-o", form)
		if code != exitPlaced || errs != "" {
			t.Errorf("-o %s: exit status %d, stderr %q", form, code, errs)
		}
		for _, want := range []string{"1 pod placed, 0 pending, 1 evicted, on 1 node (", "\nEVICTED\n  default/low on a, for default/hi\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("-o %s does not say %q:\n%s", form, want, out)
			}
		}
	}
}

// Without a node every pod is unschedulable, with kube-scheduler's message.
func TestNoNodes(t *testing.T) {
	_, out, _ := berth(podYAML, "simulate", "-f", "-", "-o", "json")
	var result struct {
		Decisions []struct{ Result, Message string }
		Unplaced  map[string]string
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatal(err)
	}
	const want = "no nodes available to schedule pods"
	if len(result.Decisions) != 1 || result.Decisions[0].Result != "Unschedulable" || result.Decisions[0].Message != want || result.Unplaced["default/p"] != want {
		t.Errorf("got %+v", result)
	}
}

// What is invalid gets one line on standard error, exit status 2, and nothing
// on standard output.
func TestInvalid(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	unreachable := `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {}}]
`
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":           {[]string{"--fast"}, "unknown flag: --fast"},
		"an unknown form":           {[]string{"-f", "testdata/small.yaml", "-o", "xml"}, "-o xml: must be table"},
		"an argument":               {[]string{"-f", "testdata/small.yaml", "more"}, `unexpected argument "more"; give files with -f`},
		"a missing file":            {[]string{"-f", filepath.Join(dir, "none.yaml")}, filepath.Join(dir, "none.yaml") + ": no such file"},
		"a bad object":              {[]string{"-f", file("pod.yaml", strings.Replace(podYAML, "name: c", "name: c, resources: {requests: {cpu: -1}}", 1))}, filepath.Join(dir, "pod.yaml") + ": document 1: pod default/p: spec.containers[0].resources.requests[cpu]: -1 is negative"},
		"a missing configuration":   {[]string{"-f", "testdata/small.yaml", "--config", filepath.Join(dir, "none.yaml")}, ""},
		"an unknown field in it":    {[]string{"-f", "testdata/small.yaml", "--config", file("field.yaml", config+"profile: []\n")}, filepath.Join(dir, "field.yaml") + ": "},
		"an unknown plugin in it":   {[]string{"-f", "testdata/small.yaml", "--config", file("plugin.yaml", config+"profiles: [{plugins: {filter: {enabled: [{name: NoSuch}]}}}]\n")}, filepath.Join(dir, "plugin.yaml") + ": "},
		"a wrong type in it":        {[]string{"-f", "testdata/small.yaml", "--config", file("type.yaml", config+"parallelism: many\n")}, filepath.Join(dir, "type.yaml") + ": "},
		"an unreachable API server": {[]string{"--kubeconfig", file("kubeconfig", unreachable)}, "--kubeconfig " + filepath.Join(dir, "kubeconfig") + ": listing scheduling.k8s.io/v1/PriorityClass: "},
		"a missing kubeconfig":      {[]string{"--kubeconfig", filepath.Join(dir, "none")}, "--kubeconfig " + filepath.Join(dir, "none") + ": "},
		"an unknown context of it":  {[]string{"--kubeconfig", file("kubeconfig2", unreachable), "--context", "x"}, "--kubeconfig " + filepath.Join(dir, "kubeconfig2") + ": "},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := berth("", append([]string{"simulate"}, c.args...)...)
			if code != exitInvalid || out != "" {
				t.Errorf("exit status %d, stdout %q", code, out)
			}
			if !strings.HasPrefix(errs, "berth: "+c.want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("stderr %q, want one line that begins with %q", errs, "berth: "+c.want)
			}
		})
	}
}

// A command that does not exist gets one line, too, with what may have been meant.
func TestUnknownCommand(t *testing.T) {
	for command, want := range map[string]string{
		"simulat": "berth: unknown command \"simulat\" for \"berth\"; did you mean simulate?\n",
		"re":      "berth: unknown command \"re\" for \"berth\"; did you mean record or replay?\n",
		"frob":    "berth: unknown command \"frob\" for \"berth\"\n",
	} {
		if code, _, errs := berth("", command); code != exitInvalid || errs != want {
			t.Errorf("%s: exit status %d, %q, want %q", command, code, errs, want)
		}
	}
}

// The same input gives the same bytes, however many cores decide.
func TestDeterminism(t *testing.T) {
	for _, mix := range generate.Mixes() {
		w, err := generate.Cluster(mix, 11)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		writeWorld(t, dir, w)
		var first string
		for _, workers := range []int{1, 2, 7, 1} {
			out := simulated(t, dir, w, simulation{source: source{api: newConnection(), expand: "auto", seed: 3, workers: workers}, output: "json", explain: true, views: true, timeout: timeLimit{usualTime}})
			if first == "" {
				first = out
			}
			if out != first {
				t.Errorf("%s: %d workers give another result", mix, workers)
			}
		}
	}
}

// simulated is what a simulation of the world, which is in the folder, prints.
func simulated(t *testing.T, dir string, w generate.World, s simulation) string {
	t.Helper()
	s.files = []string{filepath.Join(dir, "world.json")}
	if w.Config != "" {
		s.config = filepath.Join(dir, "config.yaml")
	}
	var out, errs bytes.Buffer
	if err := s.run(context.Background(), nil, &out, &errs); err != nil && err != exitStatus(exitUnplaced) {
		t.Fatalf("%s %d: %v", w.Mix, w.Seed, err)
	}
	return out.String()
}

func writeWorld(t *testing.T, dir string, w generate.World) {
	t.Helper()
	list := map[string]any{"apiVersion": "v1", "kind": "List"}
	var items []any
	for _, n := range w.Nodes {
		n.TypeMeta.APIVersion, n.TypeMeta.Kind = "v1", "Node"
		items = append(items, n)
	}
	for _, pods := range [][]*v1.Pod{w.Bound, w.Pending} {
		for _, p := range pods {
			p.TypeMeta.APIVersion, p.TypeMeta.Kind = "v1", "Pod"
			items = append(items, p)
		}
	}
	for _, f := range w.SelectorOwners {
		items = append(items, f)
	}
	for _, n := range w.Namespaces {
		items = append(items, n)
	}
	for _, b := range w.Budgets {
		items = append(items, b)
	}
	list["items"] = items
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"world.json": data, "config.yaml": []byte(w.Config)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The help names the command as kubectl calls it, and says what the input
// should hold.
func TestHelp(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"/usr/local/bin/kubectl-berth", "simulate", "--help"}, nil, &out, &errs); code != exitPlaced {
		t.Fatalf("exit status %d: %s", code, errs.String())
	}
	for _, want := range []string{"kubectl berth simulate [-f FILE", "kubectl berth simulate -f cluster.json", "Exit status:",
		"resourceclaims,resourceslices,deviceclasses", "lists the pods that it evicts", "those of other schedulers"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help does not say %q:\n%s", want, out.String())
		}
	}
}
