package balancedallocation

import (
	"fmt"
	"maps"
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/devices"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

var resources = []v1.ResourceName{"cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi", "absent.org/x", "pods"}

var (
	small  = rapid.Int64Range(0, 30)
	memory = rapid.Int64Range(0, 1<<37)
)

func drawVector(t *rapid.T, what string, n *rapid.Generator[int64]) resource.Vector {
	v := resource.Vector{MilliCPU: n.Draw(t, what), Memory: n.Draw(t, what), EphemeralStorage: n.Draw(t, what)}
	for _, name := range resources[3:5] {
		if x := n.Draw(t, what); x > 0 {
			v.Scalars = append(v.Scalars, resource.Scalar{Name: name, Value: x})
		}
	}
	return v
}

func drawPod(t *rapid.T, uid string, n *rapid.Generator[int64]) *object.Pod {
	p := &object.Pod{UID: types.UID(uid)}
	if rapid.Bool().Draw(t, uid+" takes some") {
		p.Demand.Usage = drawVector(t, uid, n)
	}
	return p
}

func drawTable(t *rapid.T, n *rapid.Generator[int64]) *table.Table {
	tb := table.New()
	for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
		name := fmt.Sprint(i)
		tb.SetNode(&object.Node{Name: name, Allocatable: drawVector(t, "node", n)})
		for j := range rapid.IntRange(0, 3).Draw(t, "pods") {
			tb.AddPod(drawPod(t, fmt.Sprint(i, j), n), name)
		}
	}
	return tb
}

func drawArgs(t *rapid.T) *configv1.NodeResourcesBalancedAllocationArgs {
	args := &configv1.NodeResourcesBalancedAllocationArgs{}
	for _, name := range resources {
		if rapid.Bool().Draw(t, string(name)) {
			args.Resources = append(args.Resources, configv1.ResourceSpec{Name: string(name), Weight: 1})
		}
	}
	return args
}

func plugin(t plugintest.Fatal, args *configv1.NodeResourcesBalancedAllocationArgs) framework.Plugin {
	t.Helper()
	p, err := New(args, nil)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return p
}

// spread is 100 less the standard deviation of the fractions in percent.
func spread(fractions []float64) int64 {
	deviation := 0.0
	if len(fractions) == 2 {
		deviation = math.Abs((fractions[0] - fractions[1]) / 2)
	} else if len(fractions) > 2 {
		sum, squares := 0.0, 0.0
		for _, f := range fractions {
			sum += f
		}
		mean := sum / float64(len(fractions))
		for _, f := range fractions {
			squares += (f - mean) * (f - mean)
		}
		deviation = math.Sqrt(squares / float64(len(fractions)))
	}
	return int64((1 - deviation) * 100)
}

// Scoring all nodes at once gives each node what a look at it alone gives.
func TestScoreEqualsOneNodeAtATime(t *testing.T) {
	for name, n := range map[string]*rapid.Generator[int64]{"small": small, "memory": memory, "absurd": rapid.Int64Range(0, math.MaxInt64)} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				args, tb, pod := drawArgs(t), drawTable(t, n), drawPod(t, "pod", n)
				configured := []v1.ResourceName{"cpu", "memory"}
				if len(args.Resources) > 0 {
					configured = nil
				}
				for _, r := range args.Resources {
					configured = append(configured, v1.ResourceName(r.Name))
				}
				var want map[string]int64
				for _, c := range configured {
					if pod.Demand.Usage.Of(c) > 0 {
						want = map[string]int64{}
					}
				}
				for r := 0; r < tb.Rows() && want != nil; r++ {
					var with, without []float64
					for _, c := range configured {
						request, allocatable := pod.Demand.Usage.Of(c), tb.Node(table.Row(r)).Allocatable.Of(c)
						if allocatable == 0 || request == 0 && c != "cpu" && c != "memory" && c != "ephemeral-storage" {
							continue
						}
						var used int64
						for _, p := range tb.Pods(table.Row(r)) {
							used = resource.Add(used, p.Pod.Demand.Usage.Of(c))
						}
						without = append(without, min(1, float64(used)/float64(allocatable)))
						with = append(with, min(1, float64(resource.Add(used, request))/float64(allocatable)))
					}
					want[tb.Name(table.Row(r))] = 50 + (50+spread(with)-spread(without))/2
				}
				if got := plugintest.Ask(t, plugin(t, args), tb, pod).Scores; !maps.Equal(got, want) {
					t.Fatalf("got  %v\nwant %v", got, want)
				}
			})
		})
	}
}

// Of CPU and memory the fractions that the table keeps give the same scores as the
// divisions of kube-scheduler, also where the evenness is a whole number or next to one.
func TestBasicScoresNearWholeNumbers(t *testing.T) {
	amount := rapid.OneOf(rapid.Int64Range(1, 200), rapid.Int64Range(1, 1<<20), rapid.Int64Range(1, 1<<45), rapid.Int64Range(1, math.MaxInt64))
	rapid.Check(t, func(t *rapid.T) {
		cpu, memory := amount.Draw(t, "CPU"), amount.Draw(t, "memory")
		part := func(what string, whole int64) int64 { // at whole percents, or next to them
			n := whole / 100 * rapid.Int64Range(0, 103).Draw(t, what+" percent")
			return max(0, n+rapid.Int64Range(-1, 1).Draw(t, what+" off"))
		}
		used := resource.Vector{MilliCPU: part("CPU used", cpu), Memory: part("memory used", memory)}
		request := resource.Vector{MilliCPU: 1 + part("CPU", cpu), Memory: part("memory", memory)}
		tb := plugintest.Table(&object.Node{Name: "a", Allocatable: resource.Vector{MilliCPU: cpu, Memory: memory}, AllowedPods: 9})
		tb.AddPod(&object.Pod{UID: "1", Demand: resource.Demand{Usage: used}}, "a")
		fractions := func(cpuUsed, memoryUsed int64) []float64 {
			return []float64{min(1, float64(cpuUsed)/float64(cpu)), min(1, float64(memoryUsed)/float64(memory))}
		}
		with := spread(fractions(resource.Add(used.MilliCPU, request.MilliCPU), resource.Add(used.Memory, request.Memory)))
		want := 50 + (50+with-spread(fractions(used.MilliCPU, used.Memory)))/2
		pod := &object.Pod{UID: "pod", Demand: resource.Demand{Usage: request}}
		if got := plugintest.Ask(t, plugin(t, nil), tb, pod).Scores["a"]; got != want {
			t.Fatalf("CPU %d and %d of %d, memory %d and %d of %d: %d, want %d", used.MilliCPU, request.MilliCPU, cpu, used.Memory, request.Memory, memory, got, want)
		}
	})
}

// A node scores by how much more even its use becomes with the pod.
func TestScores(t *testing.T) {
	vector := func(cpu, memory int64) resource.Vector { return resource.Vector{MilliCPU: cpu, Memory: memory} }
	for _, c := range []struct {
		name      string
		used, pod resource.Vector
		want      int64
	}{
		{"empty stays even", vector(0, 0), vector(100, 100), 75},
		{"from even to worst", vector(0, 0), vector(1000, 0), 50},
		{"from worst to even", vector(1000, 0), vector(0, 1000), 100},
		{"a little better", vector(300, 100), vector(0, 100), 77},
		{"overfull counts as full", vector(1000, 1000), vector(5000, 0), 75},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := plugintest.Table(&object.Node{Name: "a", Allocatable: vector(1000, 1000)})
			tb.AddPod(&object.Pod{UID: "1", Demand: resource.Demand{Usage: c.used}}, "a")
			if got := plugintest.Ask(t, plugin(t, nil), tb, &object.Pod{Demand: resource.Demand{Usage: c.pod}}).Scores["a"]; got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// Pods of equal signature get equal scores.
func TestEqualPartsEqualScores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pl, tb := plugin(t, drawArgs(t)), drawTable(t, small)
		a, b := drawPod(t, "a", rapid.Int64Range(0, 2)), drawPod(t, "b", rapid.Int64Range(0, 2))
		if string(pl.Sign(nil, tb, a)) != string(pl.Sign(nil, tb, b)) {
			return
		}
		if x, y := plugintest.Ask(t, pl, tb, a).Scores, plugintest.Ask(t, pl, tb, b).Scores; !maps.Equal(x, y) {
			t.Fatalf("signature %q: %v and %v", string(pl.Sign(nil, tb, a)), x, y)
		}
	})
}

// A state is kept while the table goes on: it must see resources that no node
// offered when it was made.
func TestStateOutlivesNewResources(t *testing.T) {
	pl := plugin(t, &configv1.NodeResourcesBalancedAllocationArgs{Resources: []configv1.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "example.com/gpu", Weight: 1}}})
	pod := &object.Pod{Demand: resource.Demand{Usage: resource.Vector{MilliCPU: 10, Scalars: []resource.Scalar{{Name: "example.com/gpu", Value: 1}}}}}
	tb := table.New()
	in := &framework.Input{Table: tb, Pod: pod, State: pl.PreScore(tb, pod).State}
	tb.SetNode(&object.Node{Name: "a", Allocatable: resource.Vector{MilliCPU: 100, Scalars: []resource.Scalar{{Name: "example.com/gpu", Value: 1}}}})
	var out [1]int64
	pl.Score(in, in.Table.All()[0:1], out[:])
	if want := int64(50 + (50+55-100)/2); out[0] != want {
		t.Errorf("got %d, want %d", out[0], want)
	}
}

// Weights other than one and resources that repeat are refused with their field.
func TestBadResourcesAreRefused(t *testing.T) {
	for _, c := range []struct {
		specs []configv1.ResourceSpec
		want  string
	}{
		{nil, ""},
		{[]configv1.ResourceSpec{{Name: "cpu"}, {Name: "memory", Weight: 1}}, ""},
		{[]configv1.ResourceSpec{{Name: "cpu", Weight: 2}}, "resources[0].weight: Invalid value: 2: must be 1"},
		{[]configv1.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "cpu", Weight: 1}}, `resources[1].name: Duplicate value: "cpu"`},
	} {
		got := ""
		if _, err := New(&configv1.NodeResourcesBalancedAllocationArgs{Resources: c.specs}, nil); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v: got %q, want %q", c.specs, got, c.want)
		}
	}
}

func fleet(nodes int) (*framework.Input, framework.Plugin) {
	tb := table.New()
	for i := range nodes {
		name := fmt.Sprint(i)
		tb.SetNode(&object.Node{Name: name, Allocatable: resource.Vector{MilliCPU: 16000, Memory: 64 << 30}})
		tb.AddPod(&object.Pod{UID: types.UID(name), Demand: resource.Demand{Usage: resource.Vector{MilliCPU: int64(i % 16000), Memory: int64(i%64) << 30}}}, name)
	}
	pod := &object.Pod{Demand: resource.Demand{Usage: resource.Vector{MilliCPU: 250, Memory: 1 << 30}}}
	pl, err := New(nil, nil)
	if err != nil {
		panic(err)
	}
	return &framework.Input{Table: tb, Pod: pod, State: pl.PreScore(tb, pod).State}, pl
}

// Score allocates nothing.
func TestKernelAllocatesNothing(t *testing.T) {
	in, pl := fleet(100)
	out := make([]int64, 100)
	if n := testing.AllocsPerRun(10, func() { pl.Score(in, in.Table.All(), out) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkScore5000 measures Score on 5000 nodes.
func BenchmarkScore5000(b *testing.B) {
	in, pl := fleet(5000)
	out := make([]int64, 5000)
	for b.Loop() {
		pl.Score(in, in.Table.All(), out)
	}
}

// BenchmarkScoreOneRow measures Score on one node.
func BenchmarkScoreOneRow(b *testing.B) {
	in, pl := fleet(5000)
	out := make([]int64, 1)
	for b.Loop() {
		pl.Score(in, in.Table.All()[7:8], out)
	}
}

// Devices count like any other resource where a class stands for it, whatever
// selects them, and the node offers none itself.
func TestDevicesAreBalanced(t *testing.T) {
	const cards = "example.com/card"
	args := &configv1.NodeResourcesBalancedAllocationArgs{Resources: []configv1.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: cards, Weight: 1}}}
	pl, err := New(args, devices.NewCounter(structured.Features{}))
	if err != nil {
		t.Fatal(err)
	}
	half := resource.Vector{MilliCPU: 1000, Scalars: []resource.Scalar{{Name: cards, Value: 1}}}
	whole := resource.Vector{MilliCPU: 2000, Scalars: []resource.Scalar{{Name: cards, Value: 2}}}
	tb := plugintest.Table(&object.Node{Name: "devices", Allocatable: resource.Vector{MilliCPU: 2000}}, &object.Node{Name: "own", Allocatable: whole},
		&object.Node{Name: "bare", Allocatable: resource.Vector{MilliCPU: 2000}})
	node, name := "devices", cards
	tb.Objects().Set(&object.ResourceSlice{Meta: object.Meta{Kind: object.ResourceSlices, Name: "s"}, API: &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
		Driver: "card", NodeName: &node, Pool: resourcev1.ResourcePool{Name: "p", Generation: 1, ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{Name: "a"}, {Name: "b"}}}}})
	tb.Objects().Set(&object.DeviceClass{Meta: object.Meta{Kind: object.DeviceClasses, Name: "card"}, API: &resourcev1.DeviceClass{Spec: resourcev1.DeviceClassSpec{
		ExtendedResourceName: &name, Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "card"`}}}}}})
	got := plugintest.Ask(t, pl, tb, &object.Pod{Demand: resource.Demand{Usage: half}}).Scores
	if want := map[string]int64{"devices": 75, "own": 75, "bare": 75}; !maps.Equal(got, want) {
		t.Errorf("half of both: %v, want %v", got, want)
	}
	half.Scalars[0].Value = 2
	got = plugintest.Ask(t, pl, tb, &object.Pod{Demand: resource.Demand{Usage: half}}).Scores
	if want := map[string]int64{"devices": 62, "own": 62, "bare": 75}; !maps.Equal(got, want) {
		t.Errorf("more of the devices: %v, want %v", got, want)
	}
}
