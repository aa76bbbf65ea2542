package sums

import (
	"fmt"
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

const gpu = v1.ResourceName("example.com/gpu")

// The node has 2 CPUs, of which its pods use 1.6.
func ExampleSum() {
	tb := table.New()
	row := tb.SetNode(&object.Node{Name: "n", Allocatable: resource.Vector{MilliCPU: 2000}, AllowedPods: 110})
	low := &object.Pod{UID: "low", Demand: resource.Demand{Usage: resource.Vector{MilliCPU: 1600}}}
	tb.AddPod(low, "n")
	names := map[Answer]string{Fits: "fits", Short: "short", Never: "never"}
	for _, request := range []int64{400, 500, 2500} {
		s := New(tb, v1.ResourceCPU, request, false)
		without, _ := s.exchanged(tb, row, 1, nil)
		fmt.Println(request, names[s.On(tb, row)], "lacks", s.Lacking(tb, row), "- without pods below priority 1:", names[without])
	}
	// Output:
	// 400 fits lacks 0 - without pods below priority 1: fits
	// 500 short lacks 100 - without pods below priority 1: fits
	// 2500 never lacks 2100 - without pods below priority 1: never
}

// On, eachUnfit, exchanged and Lacking agree with one another, and with what happens to the
// table when pods leave and come.
func TestSumsFollowTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := func(name string) int64 { return rapid.Int64Range(0, 6).Draw(t, name) }
		vector := func() resource.Vector {
			v := resource.Vector{MilliCPU: amount("cpu"), Memory: amount("memory"), EphemeralStorage: amount("storage")}
			if n := amount("gpus"); n > 0 {
				v.Scalars = []resource.Scalar{{Name: gpu, Value: n}}
			}
			return v
		}
		tb := table.New()
		row := tb.SetNode(&object.Node{Name: "n", Allocatable: vector(), AllowedPods: amount("pods")})
		pod := func(uid string) *object.Pod {
			return &object.Pod{UID: types.UID(uid), Priority: rapid.Int32Range(0, 2).Draw(t, "priority"), Demand: resource.Demand{Usage: vector()}}
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "placed") {
			tb.AddPod(pod(fmt.Sprint(i)), "n")
		}
		below, came := rapid.Int32Range(0, 3).Draw(t, "below"), pod("came")
		for _, name := range []v1.ResourceName{v1.ResourcePods, v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, gpu} {
			s := New(tb, name, 1+amount("request"), rapid.Bool().Draw(t, "delegated") && name == gpu)
			equal := pod("equal")
			if n, known := Repeats([]Sum{s}, tb, row, nil, equal, 4); known && n != repeated(tb, &s, row, equal, 4) {
				t.Fatalf("%s: %d equal pods fit, and %d were placed", name, n, repeated(tb, &s, row, equal, 4))
			}
			unfit := Fits
			s.eachUnfit(tb, []table.Row{row}, func(_ int, a Answer) { unfit = a })
			if unfit != s.On(tb, row) {
				t.Fatalf("%s: eachUnfit says %d, On %d", name, unfit, s.On(tb, row))
			}
			if n, _ := Repeats([]Sum{s}, tb, row, nil, equal, 4); (n > 0) != (unfit == Fits) {
				t.Fatalf("%s: answer %d, and it fits %d times", name, unfit, n)
			}
			if lacks := s.Lacking(tb, row); lacks != math.MinInt64 && (lacks <= 0) != (unfit == Fits) {
				t.Fatalf("%s: answer %d, and %d is lacking", name, unfit, lacks)
			}
			for _, pods := range [][]*object.Pod{nil, {came}} {
				said, known := s.exchanged(tb, row, below, pods)
				lacked := s.Lacking(tb, row)
				mark := tb.Checkpoint()
				for _, placed := range append([]*table.Placed(nil), tb.Pods(row)...) {
					if placed.Pod.Priority < below {
						tb.RemovePod(placed.Pod.UID)
						lacked = resource.Sub(lacked, s.UsedBy(placed.Pod))
					}
				}
				for _, p := range pods {
					tb.AddPod(p, "n")
					lacked = resource.Add(lacked, s.UsedBy(p))
				}
				tried, lacks := s.On(tb, row), s.Lacking(tb, row)
				tb.Undo(mark)
				if known && said != tried {
					t.Fatalf("%s: exchanged says %d, a trial %d", name, said, tried)
				}
				if lacks != math.MinInt64 && lacks != lacked {
					t.Fatalf("%s: %d is lacking after the exchange, want %d", name, lacks, lacked)
				}
			}
		}
	})
}

// repeated returns how many such pods, at most most, are placed on the row before the sum says
// that one more does not fit.
func repeated(tb *table.Table, s *Sum, row table.Row, p *object.Pod, most int) (n int) {
	mark := tb.Checkpoint()
	defer tb.Undo(mark)
	for ; n < most && s.On(tb, row) == Fits; n++ {
		equal := *p
		equal.UID = types.UID(fmt.Sprint("equal-", n))
		tb.AddPod(&equal, "n")
	}
	return n
}

// What is not known of saturated sums is not said.
func TestSaturatedSumsAreUnknown(t *testing.T) {
	tb := table.New()
	row := tb.SetNode(&object.Node{Name: "n", Allocatable: resource.Vector{MilliCPU: 2}, AllowedPods: 110})
	for _, uid := range []types.UID{"a", "b"} {
		tb.AddPod(&object.Pod{UID: uid, Demand: resource.Demand{Usage: resource.Vector{MilliCPU: math.MaxInt64 - 1}}}, "n")
	}
	s := New(tb, v1.ResourceCPU, 1, false)
	if a, known := s.exchanged(tb, row, 1, nil); known {
		t.Errorf("the answer is said to be %d", a)
	}
}

// What is free on a row is what it has less what its pods use, and the largest request that
// fits is that and what pods of lower priority use, less what nominated pods would.
func TestFreeAndMost(t *testing.T) {
	tb := table.New()
	row := tb.SetNode(&object.Node{Name: "n", Allocatable: resource.Vector{MilliCPU: 1000}, AllowedPods: 3})
	pod := func(name string, cpu int64, priority int32) *object.Pod {
		return &object.Pod{UID: types.UID(name), Name: name, Priority: priority, Demand: resource.Demand{Usage: resource.Vector{MilliCPU: cpu}}}
	}
	tb.AddPod(pod("low", 300, 0), "n")
	tb.AddPod(pod("high", 600, 10), "n")
	for name, want := range map[v1.ResourceName][2]int64{v1.ResourceCPU: {1000, 100}, v1.ResourcePods: {3, 1}, "unheard.of/one": {0, 0}} {
		if has, free := Free(tb, name, row); has != want[0] || free != want[1] {
			t.Errorf("%s: %d, of which %d are free; want %v", name, has, free, want)
		}
	}
	tb.SetNode(&object.Node{Name: "over", Allocatable: resource.Vector{MilliCPU: 100}, AllowedPods: 2})
	tb.AddPod(pod("large", 300, 0), "over")
	for name, want := range map[v1.ResourceName]int64{v1.ResourceCPU: 100, v1.ResourcePods: 2, "unheard.of/one": 0} {
		if free := FreeOnAll(tb, name); free != want {
			t.Errorf("%s: %d are free on all nodes, want %d", name, free, want)
		}
	}
	sum := New(tb, v1.ResourceCPU, 0, false)
	for _, c := range []struct {
		below int32
		came  int64
		want  int64
	}{{0, 0, 100}, {5, 0, 400}, {5, 50, 350}, {5, 5000, 0}, {5, math.MaxInt64, math.MaxInt64}} {
		if got := sum.Most(tb, row, c.below, []*object.Pod{pod("comes", c.came, 10)}); got != c.want {
			t.Errorf("below %d, %d come: at most %d, want %d", c.below, c.came, got, c.want)
		}
	}
}
