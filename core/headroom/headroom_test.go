package headroom

import (
	"math"
	"math/big"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// passOf is a pass that all have joined.
func passOf(a Amounts, leastWeight, evenWeight int64) *Pass {
	p := &Pass{}
	p.JoinFilter(sumsOf(a))
	p.JoinScore(Score{LeastAllocated, a}, leastWeight)
	p.JoinScore(Score{Balanced, a}, evenWeight)
	return p
}

// sumsOf returns what a pod with the amounts requests.
func sumsOf(a Amounts) []sums.Sum {
	tb := table.New()
	return []sums.Sum{sums.New(tb, v1.ResourcePods, 1, false), sums.New(tb, v1.ResourceCPU, a.exactCPU, false), sums.New(tb, v1.ResourceMemory, a.exactMemory, false)}
}

func quotient(part, whole int64) int64 {
	x := new(big.Int).Mul(big.NewInt(part), big.NewInt(100))
	return x.Quo(x, big.NewInt(whole)).Int64()
}

// The percentage by way of the inverse is that of the division, up to the largest
// whole that has an inverse.
func TestPercent(t *testing.T) {
	for whole := range int64(400) {
		for part := int64(0); part <= whole && whole > 0; part++ {
			if got, want := Percent(float64(part), 1/float64(whole)), part*100/whole; got != want {
				t.Fatalf("%d of %d: %d, want %d", part, whole, got, want)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Int64Range(1, table.MostInverted), rapid.Int64Range(table.MostInverted-1000, table.MostInverted)).Draw(t, "whole")
		near := whole / 100 * rapid.Int64Range(0, 100).Draw(t, "percent")
		part := rapid.OneOf(rapid.Int64Range(0, whole), rapid.Int64Range(near-200, near+200)).Draw(t, "part")
		part = max(0, min(part, whole))
		if got, want := Percent(float64(part), 1/float64(whole)), quotient(part, whole); got != want {
			t.Fatalf("%d of %d: %d, want %d", part, whole, got, want)
		}
	})
}

// A pass gives a row what the plugins give it, in exact arithmetic and with kube-scheduler's
// divisions, or leaves it out: always where the pod does not fit, and where it does only
// if more than MostInverted is offered, or next to nothing is left, or pods that request
// nothing are counted.
func TestPassGivesWhatThePluginsGive(t *testing.T) {
	whole := rapid.OneOf(rapid.Int64Range(0, 200), rapid.Int64Range(1, 1<<20), rapid.Int64Range(1, table.MostInverted+9), rapid.Int64Range(1, math.MaxInt64))
	rapid.Check(t, func(t *rapid.T) {
		part := func(of, percent int64, off string) int64 { // at a whole percent, or next to it
			return max(0, of/100*percent+rapid.Int64Range(-1, 1).Draw(t, off))
		}
		alike := rapid.Bool().Draw(t, "alike") // the same percent of CPU and of memory is in use
		vector := func(what string, of resource.Vector) resource.Vector {
			percent := rapid.OneOf(rapid.Int64Range(0, 48), rapid.Int64Range(0, 103)) // mostly there is room
			cpu := percent.Draw(t, what+" CPU")
			memory := cpu
			if !alike {
				memory = percent.Draw(t, what+" memory")
			}
			return resource.Vector{MilliCPU: part(of.MilliCPU, cpu, what+" CPU off"), Memory: part(of.Memory, memory, what+" memory off")}
		}
		tb, offered := table.New(), resource.Vector{MilliCPU: whole.Draw(t, "CPU"), Memory: whole.Draw(t, "memory")}
		allowed := rapid.SampledFrom([]int64{9, 9, 9, 2, 1, 0}).Draw(t, "pods")
		tb.SetNode(&object.Node{Name: "other"})
		row := tb.SetNode(&object.Node{Name: "n", Allocatable: offered, AllowedPods: allowed})
		used, nonZero := vector("used", offered), vector("used, not zero", offered)
		tb.AddPod(&object.Pod{UID: "p", Demand: resource.Demand{Usage: used, NonZero: nonZero}}, "n")
		pod := vector("request", offered)
		pod.MilliCPU, pod.Memory = pod.MilliCPU+1, pod.Memory+1
		weights := [2]int64{rapid.Int64Range(1, 100).Draw(t, "weight"), rapid.Int64Range(1, 100).Draw(t, "weight")}
		a := Of(pod.MilliCPU, pod.Memory)

		states := []int32{-1, -1}
		left := AddMask(passOf(a, weights[0], weights[1]), tb, 0, table.RowSet{1 << row}, 7, states, nil)

		fits := allowed > 1
		var percents int64
		var with, without [2]float64
		for i, name := range []func(*resource.Vector) int64{func(v *resource.Vector) int64 { return v.MilliCPU }, func(v *resource.Vector) int64 { return v.Memory }} {
			all := name(&offered)
			fits = fits && name(&pod) <= all-min(name(&used), all)
			if all > 0 {
				percents += quotient(all-min(resource.Add(name(&nonZero), name(&pod)), all), all)
				with[i] = min(1, float64(resource.Add(name(&used), name(&pod)))/float64(all))
				without[i] = min(1, float64(name(&used))/float64(all))
			}
		}
		small := offered.MilliCPU <= table.MostInverted && offered.Memory <= table.MostInverted
		spread := func(f [2]float64) int64 { return int64((1 - math.Abs((f[0]-f[1])/2)) * 100) }
		balanced := 50 + (50+spread(with)-spread(without))/2
		want := 7 + weights[0]*(percents/2) + weights[1]*balanced
		room := min(offered.MilliCPU-nonZero.MilliCPU-pod.MilliCPU, offered.Memory-nonZero.Memory-pod.Memory)
		switch {
		case small && offered.MilliCPU > 0 && offered.Memory > 0 && a.Balanced(tb, row) != balanced:
			t.Fatalf("balanced %d, want %d", a.Balanced(tb, row), balanced)
		case states[0] != -1:
			t.Fatal("a row outside of the mask was written")
		case len(left) == 0 && (!fits || int64(states[1]) != want):
			t.Fatalf("the state is %d, want %d (fits %v)", states[1], want, fits)
		case len(left) > 0 && (len(left) > 1 || left[0] != row || states[1] != -1):
			t.Fatalf("left %v, with state %d", left, states[1])
		case len(left) > 0 && fits && small && room >= 64 && used.MilliCPU <= nonZero.MilliCPU && used.Memory <= nonZero.Memory:
			t.Fatalf("a row is left out that has room for %d more", room)
		}
	})
}

// A pass is for plugins that count the pod's requests alike.
func TestPassWantsOneAmount(t *testing.T) {
	same, other := Of(1, 1), Of(1, 2)
	for i, a := range [][3]Amounts{{same, same, same}, {other, same, same}, {same, other, same}, {same, same, other}} {
		p := &Pass{}
		joined := p.JoinFilter(sumsOf(a[0])) && p.JoinScore(Score{LeastAllocated, a[1]}, 1) && p.JoinScore(Score{Balanced, a[2]}, 1)
		if !joined || p.Complete() != (i == 0) {
			t.Errorf("amounts %v: all joined %t, complete %t", a, joined, p.Complete())
		}
	}
	p := passOf(same, 1, 1)
	switch more := append(sumsOf(same), sums.New(table.New(), v1.ResourceEphemeralStorage, 1, false)); {
	case p.JoinFilter(sumsOf(same)) || p.JoinScore(Score{Balanced, same}, 1):
		t.Error("a second plugin joins for the same")
	case (&Pass{}).JoinFilter(more) || (&Pass{}).JoinFilter(more[1:]) || (&Pass{}).JoinScore(Score{}, 1):
		t.Error("a plugin joins that asks for something else")
	}
}

// A pass that one of its watchers wants apart looks at no row; otherwise each is told how
// many it looked at. Parts of a mask give what the whole gives.
func TestWatchersOfAPass(t *testing.T) {
	tb := table.New()
	mask, rows := make(table.RowSet, 3), []table.Row(nil)
	for i := range 150 {
		n := &object.Node{Name: string(rune('a' + i)), Allocatable: resource.Vector{MilliCPU: 9 + int64(i), Memory: 9}, AllowedPods: int64(9 * (i % 3))}
		if r := tb.SetNode(n); i%7 != 0 {
			mask.Set(r, true)
			rows = append(rows, r)
		}
	}
	full := slices.DeleteFunc(slices.Clone(rows), func(r table.Row) bool { return r%3 != 0 })
	apart, seen := false, 0
	p := passOf(Of(1, 1), 1, 1)
	p.Watch(Watcher{Apart: func() bool { return apart }, Seen: func(rows int) { seen += rows }})
	states, parts := make([]int32, 150), make([]int32, 150)
	left := AddMask(p, tb, 0, mask, 7, states, nil)
	if !slices.Equal(left, full) || seen != len(rows)-len(full) {
		t.Errorf("left %v, seen %d; want the full nodes left", left, seen)
	}
	left = AddMask(p, tb, 0, mask[:1], 7, parts, left[:0])
	if left = AddMask(p, tb, 64, mask[1:], 7, parts, left); !slices.Equal(left, full) || !slices.Equal(states, parts) {
		t.Errorf("left %v of parts", left)
	}
	apart, seen = true, 0
	if left = AddMask(p, tb, 64, mask[1:], 7, states, nil); !slices.Equal(left, rows[len(rows)-len(left):]) || len(left) != mask[1:].Len() || seen != 0 {
		t.Errorf("left %v, seen %d; want all left", left, seen)
	}
}

// Rows of a list get the scores that a mask of them gets, also where the distance is next
// to a whole number. Those that may not fit come last, in their order.
func TestRowsOfAPass(t *testing.T) {
	tb := table.New()
	mask, rows := make(table.RowSet, 3), []table.Row(nil)
	for i := range 150 {
		n := &object.Node{Name: string(rune('a' + i)), Allocatable: resource.Vector{MilliCPU: 8 + int64(i%5), Memory: 8}, AllowedPods: int64(9 * (i % 3))}
		if r := tb.SetNode(n); i%7 != 0 {
			mask.Set(r, true)
			rows = append(rows, r)
		}
	}
	apart, seen := false, 0
	p := passOf(Of(2, 2), 3, 1)
	p.Watch(Watcher{Apart: func() bool { return apart }, Seen: func(rows int) { seen += rows }})
	states := make([]int32, 150)
	left := AddMask(p, tb, 0, mask, 7, states, nil)
	seen = 0
	sums, order, at := make([]int64, len(rows)), make([]table.Row, len(rows)), make([]int32, len(rows))
	fit := AddRows(p, tb, rows, sums, order, at)
	if !slices.Equal(order[fit:], left) || seen != fit {
		t.Errorf("left %v, %d seen; want %v, %d", order[fit:], seen, left, fit)
	}
	for k, r := range order {
		if want := int64(max(0, states[r]-7)); rows[at[k]] != r || sums[at[k]] != want {
			t.Errorf("row %d at %d has %d, want %d", r, at[k], sums[at[k]], want)
		}
	}
	apart, seen = true, 0
	if fit := AddRows(p, tb, rows, sums, order, at); fit != 0 || seen != 0 || !slices.Equal(order, rows) {
		t.Errorf("%d fit, %d seen, order %v; want all left", fit, seen, order)
	}
}

// Where CPU and memory are in use alike, their distance is next to a whole number.
func TestPassNextToAWholeNumber(t *testing.T) {
	tb := table.New()
	tb.SetNode(&object.Node{Name: "n", Allocatable: resource.Vector{MilliCPU: 8, Memory: 8}, AllowedPods: 9})
	states := []int32{0}
	left := AddMask(passOf(Of(2, 2), 1, 1), tb, 0, table.RowSet{1}, 7, states, nil)
	if want := int32(7 + 75 + 75); len(left) > 0 || states[0] != want {
		t.Errorf("left %v, state %d, want %d", left, states[0], want)
	}
}
