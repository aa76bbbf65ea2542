package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim/generate"
)

func world(t *testing.T, mix string, seed uint64) Input {
	t.Helper()
	w, err := generate.Cluster(mix, seed)
	if err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	if w.Config != "" {
		if c, err = config.Decode([]byte(w.Config), "world"); err != nil {
			t.Fatal(err)
		}
	}
	o, err := Options(c)
	if err != nil {
		t.Fatal(err)
	}
	o.Seed, o.Check = seed, true
	in := Input{Machine: o}
	for _, object := range w.Objects {
		in.Objects = append(in.Objects, decode.Object(object))
	}
	for _, n := range w.Nodes {
		in.Nodes = append(in.Nodes, decode.Node(n))
	}
	for _, pods := range [][]*v1.Pod{w.Bound, w.Pending} {
		for _, p := range pods {
			in.Pods = append(in.Pods, decode.Pod(p))
		}
	}
	return in
}

// A run of any mix decides on every pod, and the result agrees with the
// decisions.
func TestRun(t *testing.T) {
	for _, mix := range generate.Mixes() {
		for seed := range uint64(6) {
			in := world(t, mix, seed)
			name := fmt.Sprintf("%s %d", mix, seed)
			record := &bytes.Buffer{}
			write, victims := writeTo(t, record), map[string]bool{}
			in.Decided = func(d *decision.Decision) {
				write(d)
				for _, v := range d.Victims {
					victims[v.String()] = true
				}
			}
			r, err := Run(in)
			if err != nil {
				t.Fatal(err)
			}
			everyPodHasOneEnd(t, name, in, r, victims)
			nothingOvercommitted(t, name, in, r)
			whoIsLeftCannotBePlaced(t, name, in, r)
			if !strings.HasSuffix(string(mix), "-preemption") {
				// There an eviction requeues pods that it does not help, too.
				nobodyIsTriedForNothing(t, name, in)
			}
			again := &bytes.Buffer{}
			in.Decided = writeTo(t, again)
			if _, err := Run(in); err != nil || again.String() != record.String() {
				t.Errorf("%s: a second run differs (%v)", name, err)
			}
		}
	}
}

func writeTo(t *testing.T, b *bytes.Buffer) func(*decision.Decision) {
	return func(d *decision.Decision) {
		data, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(b, "%s %v\n", data, d.Err)
	}
}

// everyPodHasOneEnd: a pod that was pending is placed or is not, unless a
// preemption took it away again after it was placed.
func everyPodHasOneEnd(t *testing.T, name string, in Input, r *Result, victims map[string]bool) {
	t.Helper()
	for _, p := range in.Pods {
		node, placed := r.Placed[p.Key()]
		why, unplaced := r.Unplaced[p.Key()]
		evicted := victims[p.Key()] && r.Cluster.Pod(p.Key()) == nil
		if pending := p.NodeName == "" && !evicted; pending && placed == unplaced || !pending && (placed || unplaced) {
			t.Errorf("%s: pod %s: placed on %q, unplaced because of %q", name, p.Key(), node, why)
		}
		if unplaced && why == "" {
			t.Errorf("%s: pod %s: unplaced without a reason", name, p.Key())
		}
	}
}

// nothingOvercommitted adds up, without the table, what the pods on each node
// request. Nodes that are too full from the start may have no pod more.
func nothingOvercommitted(t *testing.T, name string, in Input, r *Result) {
	t.Helper()
	cpu, memory, count := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, p := range r.Cluster.Pods() {
		cpu[p.NodeName] += p.Demand.Usage.MilliCPU
		memory[p.NodeName] += p.Demand.Usage.Memory
		count[p.NodeName]++
	}
	for _, p := range in.Pods {
		n := r.Cluster.Node(r.Placed[p.Key()])
		if n == nil {
			continue
		}
		d := &p.Demand.Requests
		if d.MilliCPU > 0 && cpu[n.Name] > n.Allocatable.MilliCPU || d.Memory > 0 && memory[n.Name] > n.Allocatable.Memory || count[n.Name] > n.AllowedPods {
			t.Errorf("%s: node %s is overcommitted by pod %s: cpu %d/%d, memory %d/%d, pods %d/%d", name, n.Name, p.Key(),
				cpu[n.Name], n.Allocatable.MilliCPU, memory[n.Name], n.Allocatable.Memory, count[n.Name], n.AllowedPods)
		}
	}
}

// whoIsLeftCannotBePlaced asks a fresh scheduler about each pod that is left,
// in the cluster as the run left it: the answer is the one that the run gave.
// Pods that hold a nomination (their victims never end) keep their room from
// the others, so they are part of that cluster.
func whoIsLeftCannotBePlaced(t *testing.T, name string, in Input, r *Result) {
	t.Helper()
	var room []*object.Pod
	for _, p := range r.Cluster.Pods() {
		if p.NodeName != "" || p.NominatedNode != "" {
			room = append(room, p)
		}
	}
	for _, p := range r.Cluster.Pods() {
		if p.NodeName != "" {
			continue
		}
		pods := room
		if p.NominatedNode == "" {
			pods = append(room[:len(room):len(room)], p)
		}
		fresh, err := Run(Input{Nodes: r.Cluster.Nodes(), Pods: pods, Objects: r.Cluster.Objects(), Machine: in.Machine})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r.Unplaced[p.Key()], fresh.Unplaced[p.Key()]; got != want {
			t.Errorf("%s: pod %s is left because of\n%q, a fresh scheduler says\n%q (placed: %v)", name, p.Key(), got, want, fresh.Placed)
		}
	}
}

// nobodyIsTriedForNothing: when nothing is placed or evicted any more, no pod
// is tried twice, unless an attempt ended a nomination, or it is the turn of those who
// have waited for so long that they are tried whatever happened.
func nobodyIsTriedForNothing(t *testing.T, name string, in Input) {
	t.Helper()
	tried := map[string]time.Time{}
	w := NewWorld(in.Machine, Epoch)
	if err := w.populate(in); err != nil {
		t.Fatal(err)
	}
	var twice []string
	w.Observe = func(e machine.Effect) {
		switch e := e.(type) {
		case machine.AttemptDone:
			if d := e.Decision; d.Result == decision.ResultUnschedulable {
				at, known := tried[d.Pod.String()]
				if known && w.Now.Sub(at) < in.Machine.MaxUnschedulable {
					twice = append(twice, d.Pod.String())
				}
				tried[d.Pod.String()] = w.Now
				return
			}
			clear(tried)
			twice = nil
		case machine.PatchStatus:
			if e.Nominated != nil {
				clear(tried)
			}
		}
	}
	w.Exhaust()
	if len(twice) > 0 {
		t.Errorf("%s: tried twice at the end: %v", name, twice)
	}
}

// Two objects of one name are an error that names the object.
func TestDuplicatesAreErrors(t *testing.T) {
	o, err := Options(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	n, p := &object.Node{Name: "a"}, &object.Pod{Namespace: "ns", Name: "p", UID: "u"}
	for want, in := range map[string]Input{
		"node a: exists twice":   {Nodes: []*object.Node{n, n}, Machine: o},
		"pod ns/p: exists twice": {Pods: []*object.Pod{p, p}, Machine: o},
	} {
		if _, err := Run(in); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Pods are tried by creation, those without one as if created at the start of
// the clock; each starts a second after whatever started last.
func TestCreationAndStart(t *testing.T) {
	o, err := Options(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	pod := func(name string, age time.Duration) *object.Pod {
		p := &object.Pod{UID: types.UID(name), Namespace: "ns", Name: name, SchedulerName: "default-scheduler"}
		if age > 0 {
			p.Created = Epoch.Add(-age)
		}
		return p
	}
	running := pod("running", time.Hour)
	running.NodeName, running.Started = "a", Epoch.Add(time.Minute)
	var order []string
	r, err := Run(Input{
		Nodes:   []*object.Node{{Name: "a", AllowedPods: 10}},
		Pods:    []*object.Pod{pod("new", 0), pod("newer", 0), pod("young", time.Second), running, pod("old", time.Hour)},
		Machine: o,
		Decided: func(d *decision.Decision) { order = append(order, d.Pod.String()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"ns/old", "ns/young", "ns/new", "ns/newer"}; !slices.Equal(order, want) {
		t.Errorf("tried %v, want %v", order, want)
	}
	for i, key := range order {
		if got, want := r.Cluster.Pod(key).Started, running.Started.Add(time.Duration(i+1)*time.Second); !got.Equal(want) {
			t.Errorf("%s started at %v, want %v", key, got, want)
		}
	}
}

// The API refuses what a real one would.
func TestClusterRefuses(t *testing.T) {
	c := NewCluster(Epoch)
	c.SetPod(&object.Pod{UID: "1", Namespace: "ns", Name: "p"})
	for what, err := range map[string]error{
		"bind a pod that is not there": c.Bind("ns/q", "1", "a"),
		"bind a pod of another UID":    c.Bind("ns/p", "2", "a"),
		"delete a pod that is not":     c.DeletePod("ns/q"),
		"delete a node that is not":    c.DeleteNode("a"),
	} {
		if err == nil {
			t.Errorf("%s: done", what)
		}
	}
	if err := c.Bind("ns/p", "1", "a"); err != nil {
		t.Fatal(err)
	}
	if err := c.Bind("ns/p", "1", "b"); err == nil || err.Error() != "pod ns/p: is bound to node a" {
		t.Errorf("a second binding: %v", err)
	}
	if _, err := c.Patch("ns/p", "1", &object.Condition{}, nil); err == nil {
		t.Error("the condition of a bound pod was patched")
	}
}

// A scheduler that keeps on trying does not keep the run from ending: here a
// plugin fails each attempt with an error, and there is no backoff.
func TestRunEnds(t *testing.T) {
	o, err := Options(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	o.MaxBackoff = 0
	failing := *o.Profiles[0]
	failing.Reserve = []*framework.Plugin{{
		Name: "Fails",
		ReservePlugin: framework.ReservePlugin{
			Reserve: func(*table.Table, *object.Pod, string) *decision.Status {
				return &decision.Status{Code: decision.Error, Err: errors.New("lost")}
			},
		},
	}}
	o.Profiles = []*profile.Profile{&failing}
	pod := &object.Pod{UID: "p", Namespace: "ns", Name: "p", SchedulerName: "default-scheduler"}
	r, err := Run(Input{Nodes: []*object.Node{{Name: "a", AllowedPods: 10}}, Pods: []*object.Pod{pod}, Machine: o})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Unplaced["ns/p"], `running Reserve plugin "Fails": lost`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if r.Decisions > 5 {
		t.Errorf("%d decisions", r.Decisions)
	}
	w := NewWorld(o, Epoch)
	w.Cluster.SetNode(&object.Node{Name: "a", AllowedPods: 10})
	w.Cluster.SetPod(pod)
	w.Advance(time.Hour)
	if !w.Now.Equal(Epoch.Add(time.Hour)) {
		t.Errorf("the clock stands at %v", w.Now)
	}
}
