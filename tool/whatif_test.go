package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What-ifs, and counts of what fits, equal their golden files.
func TestWhatIfGoldens(t *testing.T) {
	for golden, c := range map[string]struct {
		args []string
		code int
	}{
		"fit.table":    {[]string{"fit", "-f", "testdata/small-pod.yaml"}, exitPlaced},
		"scale.table":  {[]string{"fit", "--scale", "testdata/big-pods.yaml"}, exitUnplaced},
		"scale.json":   {[]string{"fit", "--scale", "deployment/web", "--after", "lose-zone a", "-o", "json"}, exitPlaced},
		"prices.json":  {[]string{"fit", "-f", "testdata/big-pods.yaml", "--nodes-like", "node-1,price=1", "--nodes-like", "cpu=9,price=1.8", "-o", "json"}, exitPlaced},
		"fit.json":     {[]string{"fit", "-f", "testdata/small-pod.yaml", "--nodes-like", "node-1", "-o", "json"}, exitPlaced},
		"whatif.table": {[]string{"what-if", "drain", "node-3"}, exitPlaced},
		"whatif.wide":  {[]string{"what-if", "lose-zone", "b,", "add-nodes", "1", "node-1", "-o", "wide"}, exitPlaced},
		"whatif.json":  {[]string{"what-if", "drain", "node-2", "node-3", ",", "scale", "deployment/web=5", "-o", "json"}, exitUnplaced},
	} {
		t.Run(golden, func(t *testing.T) {
			code, got, errs := berth("", append(c.args, "-f", "testdata/zones.yaml")...)
			if code != c.code || errs != "" {
				t.Fatalf("exit status %d, want %d; stderr %q", code, c.code, errs)
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

// A change that cannot be made is one line that says why, and what was meant.
func TestWhatIfInvalid(t *testing.T) {
	for words, want := range map[string]string{
		"drane node-3":                   `"drane" is no change; did you mean drain?; changes are drain, cordon, `,
		"drain":                          "drain: NODE... is missing",
		"apply -f":                       "apply: FILE..., without -f, is missing",
		"drain node-1,node-2":            "drain: node-1,node-2: no name has a comma; separate names by spaces",
		"drain nod-3":                    "drain: no node is called nod-3; did you mean node-3?",
		"remove pool=old":                "remove: no node has the label pool=old",
		"lose-zone c":                    "lose-zone: no node is in zone c; zones are a, b",
		"add-nodes 3":                    "add-nodes: wants a number and a shape",
		"add-nodes none node-1":          `add-nodes: "none" is no number of nodes from 1 to 100000`,
		"add-nodes 1 cores=4":            "add-nodes: cores: is no attribute of a node",
		"add-nodes 1 label:=v":           "add-nodes: label:=v: the label has no key: want label:KEY=VALUE",
		"add-nodes 1 cpu=four":           "add-nodes: cpu=four: is not a quantity, such as 500m, 2 or 1Gi",
		"add-nodes 1 cpu=4,taint=x":      "add-nodes: the new node: node new-1: spec.taints[0].effect: ",
		"scale deployment/web":           "scale: deployment/web: want WORKLOAD=NUMBER, such as deployment/web=5",
		"scale deployment/wep=5":         "scale: there is no default/deployment/wep; did you mean default/deployment/web?",
		"scale daemonset/agent=5":        "scale: daemonset/agent: a DaemonSet has a pod on each node",
		"evict web":                      "evict: no pod is called web",
		"evict web-abc-13":               "evict: no pod is called web-abc-13; did you mean default/web-abc-11 or default/web-abc-12?",
		"priority web-abc-11":            "priority: web-abc-11: want POD=NUMBER or POD=PRIORITYCLASS",
		"priority web-abc-11=9999999999": "priority: web-abc-11=9999999999: a priority has 32 bits",
		"priority web-abc-11=important":  "priority: pod default/web-abc-11: spec.priorityClassName: no PriorityClass with name important",
		"apply nowhere.yaml":             "apply: nowhere.yaml: no such file or directory",
	} {
		t.Run(words, func(t *testing.T) {
			args := append([]string{"what-if", "-f", "testdata/zones.yaml"}, strings.Fields(words)...)
			if words == "apply -f" { // the flag takes the file
				args = append(args, "testdata/big-pods.yaml")
			}
			code, out, errs := berth("", args...)
			if code != exitInvalid || out != "" || !strings.HasPrefix(errs, "berth: "+want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("exit status %d, stdout %q, stderr %q, want %q", code, out, errs, want)
			}
		})
	}
}

// What is applied may come from standard input, which can be read once.
func TestWhatIfAppliesStdin(t *testing.T) {
	pods, err := os.ReadFile("testdata/big-pods.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const change = "what-if -f testdata/zones.yaml apply "
	_, want, _ := berth("", strings.Fields(change+"testdata/big-pods.yaml")...)
	if status, out, _ := berth(string(pods), strings.Fields(change+"-")...); status != exitUnplaced || out != strings.ReplaceAll(want, "apply testdata/big-pods.yaml", "apply -") {
		t.Errorf("%d %q, want %q", status, out, want)
	}
	for _, call := range []string{change + "- -", "what-if -f - apply -", "why -f - -f - big-1"} {
		if status, out, errs := berth(string(pods), strings.Fields(call)...); status != exitInvalid || out != "" || !strings.Contains(errs, "standard input: is read already") {
			t.Errorf("%s: %d %q %q", call, status, out, errs)
		}
	}
}

// A question of fit that cannot be answered is one line, which names the flag.
func TestFitInvalid(t *testing.T) {
	for words, want := range map[string]string{
		"":                                       "no pod is pending; name one with --pod",
		"--pod web-abc-13":                       "no pod is called web-abc-13; did you mean default/web-abc-11 or default/web-abc-12?",
		"--nodes-like nod-3":                     "--nodes-like: no node is called nod-3; did you mean node-3?",
		"--nodes-like cpu=four":                  "--nodes-like: cpu=four: is not a quantity, such as 500m, 2 or 1Gi",
		"--nodes-like node-1 --nodes-like cpu=4": "--nodes-like: node-1: has no price; of several shapes each needs one, such as node-1,price=0.25",
		"--nodes-like node-1,price=no":           "--nodes-like: price=no: is no price from 0.000001 to 1000000, such as 0.25",
		"--nodes-like node-1 --pod pods":         "--pod and --nodes-like: give one of them",
		"--scale rs/web --pod pods":              "--pod and --scale: give one of them",
		"--scale web":                            "--scale: web: is no workload, such as deployment/web, and no such file is there",
		"--scale testdata/big-pods.yml":          "--scale: testdata/big-pods.yml: is no workload, such as deployment/web, and no such file is there",
		"--scale deployment/wep":                 "--scale: there is no default/deployment/wep; did you mean default/deployment/web?",
		"--scale daemonset/agent":                "--scale: daemonset/agent: a DaemonSet has a pod on each node",
	} {
		args := append([]string{"fit", "-f", "testdata/zones.yaml"}, strings.Fields(words)...)
		if strings.Contains(words, "nodes-like") {
			args = append(args, "-f", "testdata/big-pods.yaml")
		}
		if code, out, errs := berth("", args...); code != exitInvalid || out != "" || errs != "berth: "+want+"\n" {
			t.Errorf("%s: exit status %d, stdout %q, stderr %q, want %q", words, code, out, errs, want)
		}
	}
}
