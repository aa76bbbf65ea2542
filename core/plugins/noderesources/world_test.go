package noderesources

import (
	"fmt"
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

const (
	gpu  v1.ResourceName = "example.com/gpu"
	huge v1.ResourceName = "hugepages-2Mi"
	fpga v1.ResourceName = "other.org/fpga"
)

var (
	small  = rapid.Int64Range(0, 20)
	memory = rapid.Int64Range(0, 1<<37)
	absurd = rapid.OneOf(small, rapid.SampledFrom([]int64{1 << 46, 1<<46 - 1, 1 << 60, math.MaxInt64 - 1, math.MaxInt64}), rapid.Int64Range(0, math.MaxInt64))
)

func drawVector(t *rapid.T, what string, n *rapid.Generator[int64]) resource.Vector {
	v := resource.Vector{MilliCPU: n.Draw(t, what+" cpu"), Memory: n.Draw(t, what+" memory"), EphemeralStorage: n.Draw(t, what+" storage")}
	for _, name := range []v1.ResourceName{gpu, huge, fpga} {
		if x := n.Draw(t, what+" "+string(name)); x > 0 && rapid.Bool().Draw(t, what+" has") {
			v.Scalars = append(v.Scalars, resource.Scalar{Name: name, Value: x})
		}
	}
	return v
}

func drawPod(t *rapid.T, uid string, n *rapid.Generator[int64]) *object.Pod {
	usage := drawVector(t, uid+" uses", n)
	nonZero := resource.Vector{MilliCPU: resource.Add(usage.MilliCPU, small.Draw(t, "cpu default")), Memory: resource.Add(usage.Memory, small.Draw(t, "memory default"))}
	return &object.Pod{UID: types.UID(uid), Demand: resource.Demand{
		Requests: drawVector(t, uid+" requests", n), Usage: usage, NonZero: nonZero, Scoring: drawVector(t, uid+" scoring", n),
	}}
}

func drawTable(t *rapid.T, n *rapid.Generator[int64]) *table.Table {
	tb := table.New()
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		name := fmt.Sprint("node", i)
		tb.SetNode(&object.Node{Name: name, Allocatable: drawVector(t, name, n), AllowedPods: rapid.Int64Range(0, 4).Draw(t, "allowed pods")})
		for j := range rapid.IntRange(0, 3).Draw(t, "pods") {
			tb.AddPod(drawPod(t, fmt.Sprint(name, "-pod", j), n), name)
		}
	}
	return tb
}

func drawArgs(t *rapid.T) *configv1.NodeResourcesFitArgs {
	args := &configv1.NodeResourcesFitArgs{ScoringStrategy: &configv1.ScoringStrategy{}}
	args.IgnoredResources = rapid.SampledFrom([][]string{nil, {string(gpu)}, {string(huge), "absent.org/x"}}).Draw(t, "ignored")
	args.IgnoredResourceGroups = rapid.SampledFrom([][]string{nil, {"other.org"}, {"other"}}).Draw(t, "ignored groups")
	s := args.ScoringStrategy
	s.Type = rapid.SampledFrom([]configv1.ScoringStrategyType{configv1.LeastAllocated, configv1.MostAllocated, configv1.RequestedToCapacityRatio}).Draw(t, "type")
	for range rapid.IntRange(0, 4).Draw(t, "resources") {
		s.Resources = append(s.Resources, configv1.ResourceSpec{
			Name:   string(rapid.SampledFrom([]v1.ResourceName{"cpu", "memory", "ephemeral-storage", gpu, huge, fpga, "absent.org/x", "pods"}).Draw(t, "resource")),
			Weight: rapid.Int64Range(0, 100).Draw(t, "weight"),
		})
	}
	if s.Type == configv1.RequestedToCapacityRatio {
		param := &configv1.RequestedToCapacityRatioParam{}
		last := int32(-1)
		for last < 100 && (last < 0 || rapid.Bool().Draw(t, "another point")) {
			last = rapid.Int32Range(last+1, 100).Draw(t, "utilization")
			param.Shape = append(param.Shape, configv1.UtilizationShapePoint{Utilization: last, Score: rapid.Int32Range(0, 10).Draw(t, "score")})
		}
		s.RequestedToCapacityRatio = param
	}
	return args
}

func plugin(t plugintest.Fatal, args *configv1.NodeResourcesFitArgs) framework.Plugin {
	t.Helper()
	p, err := New(args, nil)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return p
}

// Pods of equal signature get equal verdicts and scores.
func TestEqualPartsEqualAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pl := plugin(t, drawArgs(t))
		tb := drawTable(t, small)
		a, b := drawPod(t, "a", small), drawPod(t, "b", small)
		// Make them agree in most of what the plugin may read.
		for _, same := range []func(){
			func() { b.Demand.Requests = a.Demand.Requests },
			func() { b.Demand.Scoring = a.Demand.Scoring },
		} {
			if rapid.IntRange(0, 4).Draw(t, "differ") > 0 {
				same()
			}
		}
		if string(pl.Sign(nil, tb, a)) != string(pl.Sign(nil, tb, b)) {
			return
		}
		x, y := plugintest.Ask(t, pl, tb, a), plugintest.Ask(t, pl, tb, b)
		if fmt.Sprint(x) != fmt.Sprint(y) {
			t.Fatalf("signature %q: %v and %v", string(pl.Sign(nil, tb, a)), x, y)
		}
	})
}
