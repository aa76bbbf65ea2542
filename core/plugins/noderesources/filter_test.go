package noderesources

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// A pod that does not fit is told each resource that lacks, and whether preemption can
// help.
func TestReasons(t *testing.T) {
	vector := func(cpu, memory, storage, gpus int64) resource.Vector {
		v := resource.Vector{MilliCPU: cpu, Memory: memory, EphemeralStorage: storage}
		if gpus > 0 {
			v.Scalars = []resource.Scalar{{Name: gpu, Value: gpus}}
		}
		return v
	}
	node := vector(1000, 1000, 1000, 4)
	for _, c := range []struct {
		name           string
		requests, used resource.Vector
		pods           int64 // that the node takes
		ignored        string
		want           string
	}{
		{name: "fits exactly", requests: vector(400, 300, 1000, 4), used: vector(600, 700, 0, 0), pods: 2},
		{name: "nothing requested on a full node", used: vector(1000, 1000, 1000, 4), pods: 2},
		{name: "nothing requested on an overfull node", used: vector(2000, 0, 0, 9), pods: 2},
		{name: "one too much", requests: vector(401, 0, 0, 0), used: vector(600, 0, 0, 0), pods: 2, want: "Unschedulable: Insufficient cpu"},
		{name: "more than the node has", requests: vector(1001, 0, 0, 0), pods: 2, want: "UnschedulableAndUnresolvable: Insufficient cpu"},
		{name: "one beyond the node, one only taken", requests: vector(500, 1001, 0, 0), used: vector(600, 0, 0, 0), pods: 2,
			want: "UnschedulableAndUnresolvable: Insufficient cpu, Insufficient memory"},
		{name: "all", requests: vector(1, 1, 1, 1), used: vector(1000, 1000, 1000, 4), pods: 1,
			want: "Unschedulable: Too many pods, Insufficient cpu, Insufficient memory, Insufficient ephemeral-storage, Insufficient example.com/gpu"},
		{name: "no place for any pod", pods: 1, want: "Unschedulable: Too many pods"},
		{name: "scalar beyond the node", requests: vector(0, 0, 0, 5), pods: 2, want: "UnschedulableAndUnresolvable: Insufficient example.com/gpu"},
		{name: "ignored by name", requests: vector(0, 0, 0, 5), pods: 2, ignored: "example.com/gpu"},
		{name: "ignored by group", requests: vector(0, 0, 0, 5), pods: 2, ignored: "example.com"},
		{name: "basic resources are never ignored", requests: vector(1001, 0, 0, 0), pods: 2, ignored: "cpu", want: "UnschedulableAndUnresolvable: Insufficient cpu"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := &configv1.NodeResourcesFitArgs{}
			if strings.Contains(c.ignored, "/") {
				args.IgnoredResources = []string{c.ignored}
			} else if c.ignored != "" {
				args.IgnoredResourceGroups = []string{c.ignored}
			}
			tb := plugintest.Table(&object.Node{Name: "a", Allocatable: node, AllowedPods: c.pods})
			tb.AddPod(&object.Pod{UID: "placed", Demand: resource.Demand{Usage: c.used}}, "a")
			pod := &object.Pod{Demand: resource.Demand{Requests: c.requests}}
			if got := plugintest.Ask(t, plugin(t, args), tb, pod).Blocked["a"]; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A blocker names the resources of its reasons, which nobody has to read for that.
func TestBlockerNamesResources(t *testing.T) {
	tb := table.New()
	tb.SetNode(&object.Node{Name: "full", Allocatable: resource.Vector{MilliCPU: 1000, Memory: 1000}})
	p := &object.Pod{Demand: resource.Demand{Requests: resource.Vector{MilliCPU: 1001, Memory: 1, Scalars: []resource.Scalar{{Name: gpu, Value: 1}}}}}
	in := &framework.Input{Table: tb, Pod: p, Rules: framework.Rules{Sums: ignored{}.sums(tb, &p.Demand.Requests)}}
	verdicts := make([]framework.Verdict, 1)
	filter(in, tb.All(), verdicts)
	if got := explain(in, 0, verdicts[0]).Insufficient; !slices.Equal(got, []v1.ResourceName{v1.ResourcePods, v1.ResourceCPU, gpu}) {
		t.Errorf("the node is short of %q", got)
	}
}

// expected is the filter in plain words and exact arithmetic, for one node.
func expected(args *configv1.NodeResourcesFitArgs, tb *table.Table, r table.Row, pod *object.Pod) string {
	n := tb.Node(r)
	var reasons []string
	if int64(len(tb.Pods(r)))+1 > n.AllowedPods {
		reasons = append(reasons, "Too many pods")
	}
	code := "Unschedulable"
	for _, name := range []v1.ResourceName{"cpu", "memory", "ephemeral-storage", gpu, huge, fpga} {
		group := strings.Split(string(name), "/")[0]
		if name != huge && (slices.Contains(args.IgnoredResources, string(name)) || slices.Contains(args.IgnoredResourceGroups, group)) {
			continue
		}
		free := big.NewInt(n.Allocatable.Of(name))
		for _, p := range tb.Pods(r) {
			free.Sub(free, big.NewInt(p.Pod.Demand.Usage.Of(name)))
		}
		request := pod.Demand.Requests.Of(name)
		if request == 0 || big.NewInt(request).Cmp(free) <= 0 {
			continue
		}
		reasons = append(reasons, "Insufficient "+string(name))
		if request > n.Allocatable.Of(name) {
			code = "UnschedulableAndUnresolvable"
		}
	}
	if reasons == nil {
		return ""
	}
	return code + ": " + strings.Join(reasons, ", ")
}

// Filtering all nodes at once says of each node what a look at it alone says.
func TestFilterEqualsOneNodeAtATime(t *testing.T) {
	for name, n := range map[string]*rapid.Generator[int64]{"small": small, "absurd": absurd} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				args, tb, pod := drawArgs(t), drawTable(t, n), drawPod(t, "pod", n)
				want := map[string]string{}
				for r := range tb.Rows() {
					want[tb.Name(table.Row(r))] = expected(args, tb, table.Row(r), pod)
				}
				if got := plugintest.Ask(t, plugin(t, args), tb, pod).Blocked; !maps.Equal(got, want) {
					t.Fatalf("got  %v\nwant %v", got, want)
				}
			})
		})
	}
}

// A state is kept while the table goes on: it must see resources that no node
// offered when it was made.
func TestStateOutlivesNewResources(t *testing.T) {
	pl, tb := plugin(t, nil), plugintest.Table(&object.Node{Name: "a", AllowedPods: 9})
	pod := &object.Pod{Demand: resource.Demand{Requests: resource.Vector{Scalars: []resource.Scalar{{Name: gpu, Value: 1}}}}}
	in := &framework.Input{Table: tb, Pod: pod, Rules: pl.PreFilter(tb, pod).Rules}
	tb.SetNode(&object.Node{Name: "b", AllowedPods: 9, Allocatable: resource.Vector{Scalars: []resource.Scalar{{Name: gpu, Value: 1}}}})
	out := make([]framework.Verdict, 2)
	pl.Filter(in, in.Table.All()[0:2], out)
	if out[0] == framework.Fits || out[1] != framework.Fits {
		t.Errorf("verdicts %x", out)
	}
}

// The reasons are right for a pod that requests more resources than a verdict has bits.
func TestMoreResourcesThanBits(t *testing.T) {
	var requests resource.Vector
	for i := range 200 {
		requests.Scalars = append(requests.Scalars, resource.Scalar{Name: v1.ResourceName(fmt.Sprintf("example.com/r%03d", i)), Value: 2})
	}
	pl, pod := plugin(t, nil), &object.Pod{Demand: resource.Demand{Requests: requests}}
	rapid.Check(t, func(t *rapid.T) {
		tb, want := table.New(), map[string]string{}
		lacking := rapid.SliceOfN(rapid.IntRange(0, 199), 0, 4)
		for i := range 8 {
			n := &object.Node{Name: fmt.Sprint(i), AllowedPods: 1, Allocatable: resource.Vector{Scalars: slices.Clone(requests.Scalars)}}
			var reasons []string
			short := lacking.Draw(t, "lacking")
			slices.Sort(short)
			for _, s := range slices.Compact(short) {
				n.Allocatable.Scalars[s].Value = 1
				reasons = append(reasons, "Insufficient "+string(requests.Scalars[s].Name))
			}
			if want[n.Name] = ""; reasons != nil {
				want[n.Name] = "UnschedulableAndUnresolvable: " + strings.Join(reasons, ", ")
			}
			tb.SetNode(n)
		}
		if got := plugintest.Ask(t, pl, tb, pod).Blocked; !maps.Equal(got, want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
		// Equal verdicts, equal explanations.
		in := &framework.Input{Table: tb, Pod: pod, Rules: pl.PreFilter(tb, pod).Rules}
		out, seen := make([]framework.Verdict, 8), map[framework.Verdict]string{}
		pl.Filter(in, in.Table.All()[0:8], out)
		for i, v := range out {
			text, ok := seen[v]
			if seen[v] = want[tb.Name(table.Row(i))]; ok && text != seen[v] {
				t.Fatalf("verdict %x is both %q and %q", v, text, seen[v])
			}
		}
	})
}
