package headroom

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// passOf is a pass that all have joined.
func passOf(fit, least, even Amounts, leastWeight, evenWeight int64) *Pass {
	p := &Pass{}
	p.JoinFit(fit)
	p.JoinLeastAllocated(least, leastWeight)
	p.JoinBalanced(even, evenWeight)
	return p
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

// A pass gives a row what the plugins give it, in exact arithmetic and with v1.36's
// divisions, or leaves it out: always where the pod does not fit, and where it does only
// if more than MostInverted is offered, or all is in use, or more is taken than offered in
// another way of counting. In a range, where all count the pod alike, that is the same.
func TestPassGivesWhatThePluginsGive(t *testing.T) {
	whole := rapid.OneOf(rapid.Int64Range(0, 200), rapid.Int64Range(1, 1<<20), rapid.Int64Range(1, table.MostInverted+9), rapid.Int64Range(1, math.MaxInt64))
	rapid.Check(t, func(t *rapid.T) {
		part := func(what string, of int64) int64 { // at whole percents, or next to them
			return max(0, of/100*rapid.Int64Range(0, 103).Draw(t, what)+rapid.Int64Range(-1, 1).Draw(t, what+" off"))
		}
		vector := func(what string, of resource.Vector) resource.Vector {
			return resource.Vector{MilliCPU: part(what+" CPU", of.MilliCPU), Memory: part(what+" memory", of.Memory)}
		}
		tb, offered := table.New(), resource.Vector{MilliCPU: whole.Draw(t, "CPU"), Memory: whole.Draw(t, "memory")}
		allowed := rapid.Int64Range(0, 3).Draw(t, "pods")
		row := tb.SetNode(&object.Node{Name: "n", Allocatable: offered, AllowedPods: allowed})
		used, nonZero := vector("used", offered), vector("used, not zero", offered)
		tb.AddPod(&object.Pod{UID: "p", Demand: resource.Demand{Usage: used, NonZero: nonZero}}, "n")
		fit, least, even := vector("request", offered), vector("request, not zero", offered), vector("usage", offered)
		fit.MilliCPU, fit.Memory = fit.MilliCPU+1, fit.Memory+1
		if rapid.Bool().Draw(t, "alike") { // as most pods are counted
			least, even = fit, fit
		}
		weights := [2]int64{rapid.Int64Range(1, 100).Draw(t, "weight"), rapid.Int64Range(1, 100).Draw(t, "weight")}
		a, b, c := Of(fit.MilliCPU, fit.Memory), Of(least.MilliCPU, least.Memory), Of(even.MilliCPU, even.Memory)
		alike := a == b && b == c
		p := passOf(a, b, c, weights[0], weights[1])

		sums, states, left := []int64{7}, []int32{7}, []int32{-1}
		n := p.Add(tb, []table.Row{row}, sums, left)

		fits := allowed > 1
		ordinary := true
		var percents int64
		var with, without [2]float64
		for i, name := range []func(*resource.Vector) int64{func(v *resource.Vector) int64 { return v.MilliCPU }, func(v *resource.Vector) int64 { return v.Memory }} {
			all := name(&offered)
			fits = fits && name(&fit) <= all-min(name(&used), all)
			taken, inUse := resource.Add(name(&nonZero), name(&least)), resource.Add(name(&used), name(&even))
			ordinary = ordinary && all <= table.MostInverted && taken <= all && inUse < all
			if all > 0 {
				percents += quotient(all-min(taken, all), all)
				with[i], without[i] = min(1, float64(inUse)/float64(all)), min(1, float64(name(&used))/float64(all))
			}
		}
		small := offered.MilliCPU <= table.MostInverted && offered.Memory <= table.MostInverted
		if got := a.FitAll(tb.Headroom(), []table.Row{row}); got != (fits && small) {
			t.Fatalf("FitAll says %v, want %v (small %v)", got, fits, small)
		}
		if n == 1 && left[0] == 0 && sums[0] == 7 && (!fits || !ordinary) {
			if n := AddRange(p, tb, row, states, left); n != 1 || states[0] != 7 {
				t.Fatalf("a range has the row, with sum %d", states[0])
			}
			return
		}
		spread := func(f [2]float64) int64 { return int64((1 - math.Abs((f[0]-f[1])/2)) * 100) }
		want := 7 + weights[0]*(percents/2) + weights[1]*(50+(50+spread(with)-spread(without))/2)
		if n != 0 || !fits || sums[0] != want {
			t.Fatalf("left %d, sum %d, want 0 and %d (fits %v, ordinary %v)", n, sums[0], want, fits, ordinary)
		}
		n = AddRange(p, tb, row, states, left)
		room := min(offered.MilliCPU-nonZero.MilliCPU-fit.MilliCPU, offered.Memory-nonZero.Memory-fit.Memory)
		switch {
		case n == 0 && (!alike || int64(states[0]) != want):
			t.Fatalf("in a range it is %d, want %d (alike %v)", states[0], want, alike)
		case n == 1 && (left[0] != 0 || states[0] != 7):
			t.Fatalf("left %v of a range, with sum %d", left, states[0])
		case n == 1 && alike && room >= 64 && used.MilliCPU <= nonZero.MilliCPU && used.Memory <= nonZero.Memory:
			t.Fatalf("a row is left out of a range that has room for %d more", room)
		}
	})
}

// A pass that one of its watchers wants apart looks at no row; otherwise each is told how
// many it looked at.
func TestWatchersOfAPass(t *testing.T) {
	tb := table.New()
	for i, allowed := range []int64{9, 0, 9} {
		tb.SetNode(&object.Node{Name: string(rune('a' + i)), Allocatable: resource.Vector{MilliCPU: 9, Memory: 9}, AllowedPods: allowed})
	}
	one := Of(1, 1)
	apart, seen := false, 0
	p := passOf(one, one, one, 1, 1)
	p.Watch(Watcher{Apart: func() bool { return apart }, Seen: func(rows int) { seen += rows }})
	sums, states, left := make([]int64, 3), make([]int32, 3), make([]int32, 3)
	if n := p.Add(tb, tb.All(), sums, left); n != 1 || left[0] != 1 || seen != 2 || sums[0] == 0 || sums[1] != 0 {
		t.Errorf("left %v, seen %d, sums %v; want the full node left", left[:n], seen, sums)
	}
	if n := AddRange(p, tb, 0, states, left); n != 1 || left[0] != 1 || seen != 4 || int64(states[2]) != sums[2] {
		t.Errorf("left %v, seen %d, sums %v of a range; want the full node left", left[:n], seen, states)
	}
	apart = true
	clear(sums)
	if n := p.Add(tb, tb.All(), sums, left); n != 3 || left[2] != 2 || seen != 4 || sums[0] != 0 {
		t.Errorf("left %v, seen %d, sums %v; want all left", left[:n], seen, sums)
	}
	if n := AddRange(p, tb, 0, states, left); n != 3 || left[2] != 2 || seen != 4 {
		t.Errorf("left %v, seen %d of a range; want all left", left[:n], seen)
	}
}
