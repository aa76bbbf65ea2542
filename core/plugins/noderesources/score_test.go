package noderesources

import (
	"maps"
	"math"
	"math/big"
	"testing"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

func quotient(part *big.Int, whole int64) int64 {
	x := new(big.Int).Mul(part, big.NewInt(100))
	return x.Quo(x, big.NewInt(whole)).Int64()
}

// broken is the value at p of the line through the points, as kube-scheduler computes it.
func broken(shape []configv1.UtilizationShapePoint, p int64) int64 {
	prev := shape[0]
	for i, point := range shape {
		if p <= int64(point.Utilization) {
			if i == 0 {
				break
			}
			y0, y := 10*int64(prev.Score), 10*int64(point.Score)
			return y0 + (y-y0)*(p-int64(prev.Utilization))/int64(point.Utilization-prev.Utilization)
		}
		prev = point
	}
	return 10 * int64(prev.Score)
}

// rating is the score of one node, resource by resource, in exact arithmetic.
func rating(s *configv1.ScoringStrategy, tb *table.Table, r table.Row, pod *object.Pod) int64 {
	specs := s.Resources
	if len(specs) == 0 {
		specs = []configv1.ResourceSpec{{Name: "cpu"}, {Name: "memory"}}
	}
	var sum, weights int64
	for _, spec := range specs {
		name, weight := v1.ResourceName(spec.Name), max(spec.Weight, 1)
		request, allocatable := pod.Demand.Scoring.Of(name), tb.Node(r).Allocatable.Of(name)
		if allocatable == 0 || request == 0 && name != "cpu" && name != "memory" && name != "ephemeral-storage" {
			continue
		}
		taken := big.NewInt(request)
		for _, p := range tb.Pods(r) {
			used := p.Pod.Demand.Usage.Of(name)
			if name == "cpu" || name == "memory" {
				used = p.Pod.Demand.NonZero.Of(name)
			}
			taken.Add(taken, big.NewInt(used))
		}
		over := taken.Cmp(big.NewInt(allocatable)) > 0
		if over {
			taken = big.NewInt(allocatable)
		}
		var score int64
		switch s.Type {
		case configv1.LeastAllocated:
			score = quotient(new(big.Int).Sub(big.NewInt(allocatable), taken), allocatable)
		case configv1.MostAllocated:
			score = quotient(taken, allocatable)
		default:
			if score = broken(s.RequestedToCapacityRatio.Shape, quotient(taken, allocatable)); score == 0 {
				continue
			}
		}
		sum += score * weight
		weights += weight
	}
	if weights == 0 {
		return 0
	}
	if s.Type == configv1.RequestedToCapacityRatio {
		return int64(math.Round(float64(sum) / float64(weights)))
	}
	return sum / weights
}

// Scoring all nodes at once gives each node what a look at it alone gives.
func TestScoreEqualsOneNodeAtATime(t *testing.T) {
	for name, n := range map[string]*rapid.Generator[int64]{"small": small, "memory": memory, "absurd": absurd} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				args, tb, pod := drawArgs(t), drawTable(t, n), drawPod(t, "pod", n)
				want := map[string]int64{}
				for r := range tb.Rows() {
					want[tb.Name(table.Row(r))] = rating(args.ScoringStrategy, tb, table.Row(r), pod)
				}
				if got := plugintest.Ask(t, plugin(t, args), tb, pod).Scores; !maps.Equal(got, want) {
					t.Fatalf("got  %v\nwant %v", got, want)
				}
			})
		})
	}
}

// The percentage of any part of any whole is exact, and cut off.
func TestPercent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := max(1, rapid.OneOf(absurd, memory).Draw(t, "whole"))
		// Parts about a multiple of one percent are where rounding may hurt.
		near := new(big.Int).Mul(big.NewInt(whole), big.NewInt(rapid.Int64Range(0, 100).Draw(t, "percent")))
		part := near.Quo(near, big.NewInt(100)).Int64() + rapid.Int64Range(-1, 1).Draw(t, "off")
		part = max(0, min(part, whole))
		if got, want := percent(part, whole), quotient(big.NewInt(part), whole); got != want {
			t.Fatalf("%d of %d: %d, want %d", part, whole, got, want)
		}
	})
}

// Each strategy scores a node by its use with the pod.
func TestScores(t *testing.T) {
	shape := func(points ...int32) *configv1.RequestedToCapacityRatioParam {
		p := &configv1.RequestedToCapacityRatioParam{}
		for i := 0; i < len(points); i += 2 {
			p.Shape = append(p.Shape, configv1.UtilizationShapePoint{Utilization: points[i], Score: points[i+1]})
		}
		return p
	}
	cpuOnly := []configv1.ResourceSpec{{Name: "cpu"}}
	for _, c := range []struct {
		name string
		s    *configv1.ScoringStrategy
		cpu  int64 // of 1000 in use with the pod
		want int64 // memory is half in use
	}{
		{"default: most left", nil, 200, 65},
		{"cut off", nil, 201, 64},
		{"overfull", nil, 1001, 25},
		{"most", &configv1.ScoringStrategy{Type: configv1.MostAllocated}, 200, 35},
		{"most, overfull", &configv1.ScoringStrategy{Type: configv1.MostAllocated}, 1001, 75},
		{"weights", &configv1.ScoringStrategy{Type: configv1.MostAllocated, Resources: []configv1.ResourceSpec{{Name: "cpu", Weight: 3}, {Name: "memory"}}}, 200, 27},
		{"shape: the fuller the better", &configv1.ScoringStrategy{Type: configv1.RequestedToCapacityRatio, RequestedToCapacityRatio: shape(0, 0, 100, 10), Resources: cpuOnly}, 255, 25},
		{"shape: nothing for nothing", &configv1.ScoringStrategy{Type: configv1.RequestedToCapacityRatio, RequestedToCapacityRatio: shape(30, 0, 100, 10)}, 300, 28},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := plugintest.Table(&object.Node{Name: "a", Allocatable: resource.Vector{MilliCPU: 1000, Memory: 1000}, AllowedPods: 9})
			tb.AddPod(&object.Pod{UID: "1", Demand: resource.Demand{NonZero: resource.Vector{MilliCPU: c.cpu - 100}}}, "a")
			pod := &object.Pod{Demand: resource.Demand{Scoring: resource.Vector{MilliCPU: 100, Memory: 500}}}
			pl := plugin(t, &configv1.NodeResourcesFitArgs{ScoringStrategy: c.s})
			if got := plugintest.Ask(t, pl, tb, pod).Scores["a"]; got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
