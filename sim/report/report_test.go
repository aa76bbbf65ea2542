package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/sim"
)

func result(nodes ...*object.Node) *sim.Result {
	c := sim.NewCluster(sim.Epoch)
	for _, n := range nodes {
		c.SetNode(n)
	}
	return &sim.Result{Cluster: c, Placed: map[string]string{}, Unplaced: map[string]string{}}
}

// compact is the one decision of a JSON result without white space.
func compact(t *testing.T, d *decision.Decision) string {
	t.Helper()
	var out, line bytes.Buffer
	j := NewJSON(&out, 1, nil, 2)
	j.AttemptDone(d)
	if err := j.Finish(result()); err != nil {
		t.Fatal(err)
	}
	var r struct{ Decisions []json.RawMessage }
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r.Decisions) != 1 {
		t.Fatalf("%v: %s", err, out.String())
	}
	if err := json.Compact(&line, r.Decisions[0]); err != nil {
		t.Fatal(err)
	}
	return line.String()
}

// Each result of a decision has its own form in JSON and YAML.
func TestDecisions(t *testing.T) {
	base := func(r decision.Result) *decision.Decision {
		return &decision.Decision{Pod: types.NamespacedName{Namespace: "ns", Name: "p"}, Profile: "prof", Attempt: 2, Result: r, NodesTotal: 3, Node: "a", NodesFeasible: 2}
	}
	preempting := base(decision.ResultPreempting)
	preempting.NodesFeasible, preempting.Node, preempting.NominatedNode = 0, "", "c"
	preempting.Victims = []types.NamespacedName{{Namespace: "ns", Name: "v"}}
	preempting.Tallies = []decision.Tally{{Blocker: decision.Blocker{Reasons: []string{"<full> & closed"}}, Nodes: 3}}
	failed := base(decision.ResultError)
	failed.Err = errors.New("lost")
	pending := base(decision.ResultUnschedulable)
	pending.NodesFeasible, pending.Node = 0, ""
	pending.PreFilter = &decision.Status{Reasons: []string{"no"}}
	pending.RejectedBy, pending.PendingBy = []string{"A", "C"}, []string{"B"}
	explained := base(decision.ResultScheduled)
	explained.Nodes = []decision.Node{
		{Name: "a", Feasible: true, Total: 0, Scores: []decision.Score{{Plugin: "S", Score: 0, Weight: 2}}},
		{Name: "b", Feasible: true},
		{Name: "c", Blockers: []decision.Blocker{{Plugin: "F", Code: decision.UnschedulableAndUnresolvable, Reasons: []string{"x"}}, {Plugin: "G", Code: decision.Unschedulable}}},
	}
	single := base(decision.ResultScheduled)
	single.NodesFeasible, single.Nodes = 1, []decision.Node{{Name: "a", Feasible: true}}
	for _, c := range []struct {
		d    *decision.Decision
		want string
	}{
		{single, `{"pod":"ns/p","profile":"prof","attempt":2,"result":"Scheduled","node":"a","nodesTotal":3,"nodesFeasible":1,"nodes":[{"node":"a","feasible":true}]}`},
		{base(decision.ResultScheduled), `{"pod":"ns/p","profile":"prof","attempt":2,"result":"Scheduled","node":"a","nodesTotal":3,"nodesFeasible":2}`},
		{base(decision.ResultWaiting), `{"pod":"ns/p","profile":"prof","attempt":2,"result":"Waiting","node":"a","nodesTotal":3,"nodesFeasible":2}`},
		{failed, `{"pod":"ns/p","profile":"prof","attempt":2,"result":"Error","nodesTotal":3,"nodesFeasible":2,"message":"lost"}`},
		{preempting, `{"pod":"ns/p","profile":"prof","attempt":2,"result":"Preempting","nodesTotal":3,"nodesFeasible":0,"nominatedNode":"c","victims":["ns/v"],"message":"0/3 nodes are available: 3 <full> & closed."}`},
		{pending, `{"pod":"ns/p","profile":"prof","attempt":2,"result":"Unschedulable","nodesTotal":3,"nodesFeasible":0,"message":"0/3 nodes are available: no.","plugins":["A","B","C"]}`},
		{explained, `{"pod":"ns/p","profile":"prof","attempt":2,"result":"Scheduled","node":"a","nodesTotal":3,"nodesFeasible":2,"nodes":[` +
			`{"node":"a","feasible":true,"score":0,"scores":[{"plugin":"S","score":0,"weight":2}]},{"node":"b","feasible":true,"score":0},` +
			`{"node":"c","feasible":false,"blockers":[{"plugin":"F","code":"UnschedulableAndUnresolvable","reasons":["x"]},{"plugin":"G","code":"Unschedulable","reasons":[]}]}]}`},
	} {
		if got := compact(t, c.d); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// A result without pods has every field.
func TestEmptyResult(t *testing.T) {
	var out bytes.Buffer
	if err := NewJSON(&out, 9, map[string]int{}, 2).Finish(result()); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"apiVersion\": \"berth.dev/v1alpha1\",\n  \"kind\": \"SimulationResult\",\n  \"seed\": 9,\n  \"ignored\": {},\n  \"decisions\": [],\n  \"placements\": {},\n  \"unplaced\": {}\n}\n"
	if out.String() != want {
		t.Errorf("got %s", out.String())
	}
}

// A YAML result is the JSON result, and is written decision by decision: with every node
// explained all of them are more than memory holds.
func TestYAMLIsWrittenAsItComes(t *testing.T) {
	var asYAML, asJSON bytes.Buffer
	y, j := NewYAML(&asYAML, 9, map[string]int{}, 2), NewJSON(&asJSON, 9, map[string]int{}, 2)
	for i := range 3 {
		d := &decision.Decision{Pod: types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("p-", i)}, Result: decision.ResultScheduled, Node: "a",
			Nodes: []decision.Node{{Name: "a", Feasible: true}, {Name: "b", Blockers: []decision.Blocker{{Plugin: "F", Reasons: []string{"x: y"}}}}}}
		y.AttemptDone(d)
		j.AttemptDone(d)
		if !strings.Contains(asYAML.String(), "pod: "+d.Pod.String()+"\n") {
			t.Errorf("%s is not written yet", d.Pod)
		}
	}
	r := result()
	r.Evicted = []sim.Eviction{{Pod: "ns/v", Node: "a", For: "ns/p-0"}}
	if err := errors.Join(y.Finish(r), j.Finish(r)); err != nil {
		t.Fatal(err)
	}
	want, err := yaml.JSONToYAML(asJSON.Bytes())
	if err != nil || asYAML.String() != string(want) {
		t.Errorf("%v, got\n%s\nwant\n%s", err, &asYAML, want)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// An output that cannot be written is an error.
func TestBrokenOutput(t *testing.T) {
	for _, w := range []interface{ Finish(*sim.Result) error }{
		NewJSON(broken{}, 1, nil, 2), NewYAML(broken{}, 1, nil, 2), NewTable(broken{}, 1, nil, false),
	} {
		if err := w.Finish(result()); err == nil || err.Error() != "disk full" {
			t.Errorf("%T: %v", w, err)
		}
	}
}

// The short form of a large cluster shows the nodes with the most new pods,
// the best answers, and says what it leaves out.
func TestLargeCluster(t *testing.T) {
	var nodes []*object.Node
	d := &decision.Decision{Pod: types.NamespacedName{Namespace: "ns", Name: "p"}, Result: decision.ResultScheduled, Node: "n-49", NodesTotal: 50}
	for i := range 50 {
		name := fmt.Sprintf("n-%02d", i)
		nodes = append(nodes, &object.Node{Name: name, AllowedPods: 10})
		d.Nodes = append(d.Nodes, decision.Node{Name: name, Feasible: i >= 20, Total: int64(i), Scores: []decision.Score{{Plugin: "S"}}})
	}
	r := result(nodes...)
	r.Placed["ns/p"] = "n-49"
	for i := range 6 {
		r.Unplaced[fmt.Sprintf("ns/q-%d", i)] = "no room"
	}
	for i := range 42 {
		r.Evicted = append(r.Evicted, sim.Eviction{Pod: fmt.Sprintf("ns/v-%02d", 41-i), Node: "n-01", For: "ns/p"})
	}
	var short, wide bytes.Buffer
	for out, isWide := range map[*bytes.Buffer]bool{&short: false, &wide: true} {
		table := NewTable(out, 1, nil, isWide)
		table.AttemptDone(d)
		if err := table.Finish(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		"1 pod placed, 6 pending, 42 evicted, on 50 nodes", "(and 10 more nodes: -o wide)",
		"ns/q-0, ns/q-1, ns/q-2, ns/q-3 and 2 more\n    no room",
		"EVICTED\n  ns/v-00 on n-01, for ns/p\n", "  ns/v-39 on n-01, for ns/p\n  (and 2 pods: -o wide)\n", "(and 40 nodes: -o wide)",
	} {
		if !strings.Contains(short.String(), want) {
			t.Errorf("the short form does not say %q:\n%s", want, short.String())
		}
	}
	if n := strings.Count(short.String(), "score "); n != 5 {
		t.Errorf("the short form explains %d feasible nodes", n)
	}
	if n := strings.Count(wide.String(), "score "); n != 30 || !strings.Contains(wide.String(), "ns/q-5") {
		t.Errorf("the wide form explains %d feasible nodes:\n%s", n, wide.String())
	}
}

// Amounts are short and have the usual units.
func TestAmounts(t *testing.T) {
	for _, c := range []struct {
		name v1.ResourceName
		n    int64
		want string
	}{
		{"cpu", 0, "0"}, {"cpu", 1500, "1.5"}, {"cpu", 123456, "123"}, {"cpu", 1, "0.001"},
		{"memory", 512, "512"}, {"memory", 1 << 30, "1Gi"}, {"memory", 1536 << 20, "1.5Gi"}, {"memory", 1 << 62, "4096Pi"},
		{"example.com/gpu", 7, "7"},
	} {
		if got := amount(c.name, c.n); got != c.want {
			t.Errorf("%d of %s: got %s, want %s", c.n, c.name, got, c.want)
		}
	}
}

// What pods take is added up over the nodes that are there.
func TestUsage(t *testing.T) {
	r := result(&object.Node{Name: "a", AllowedPods: 2, Allocatable: resource.Vector{MilliCPU: 4000}})
	for i, node := range []string{"a", "a", "gone", ""} {
		r.Cluster.SetPod(&object.Pod{UID: types.UID(fmt.Sprint(i)), Namespace: "ns", Name: fmt.Sprint(i), NodeName: node,
			Demand: resource.Demand{Usage: resource.Vector{MilliCPU: 1000}}})
	}
	use, total := usage(r.Cluster)
	for _, l := range []*load{use["a"], total} {
		if l.pods != 2 || l.allowed != 2 || l.share("cpu") != "2/4 (50%)" {
			t.Errorf("%d/%d pods, cpu %s", l.pods, l.allowed, l.share("cpu"))
		}
	}
}
