package engine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// A range that several cores share gets what it gets in one piece, and the same rows are
// left out.
func TestRangeIsSplit(t *testing.T) {
	tb := table.New()
	for i := range int64(2*passGrain + 5) {
		tb.SetNode(&object.Node{Name: fmt.Sprint(i), Allocatable: resource.Vector{MilliCPU: 1 + i%4000, Memory: 4000 - i%1000}, AllowedPods: 9})
	}
	amounts := headroom.Of(100, 100)
	p := &pass{table: tb}
	p.JoinFit(amounts)
	p.JoinLeastAllocated(amounts, 1)
	p.JoinBalanced(amounts, 1)
	add := func(workers int, parts ...[]table.Row) (states []ranking.State, left []table.Row) {
		states, at := make([]ranking.State, tb.Rows()), make([]int32, tb.Rows())
		for _, rows := range parts {
			left = p.addRange(rows, states[rows[0]:][:len(rows)], at, workers, left)
		}
		return states, left
	}
	rows := tb.All()
	states, left := add(2, rows)
	statesToo, leftToo := add(1, rows[:7], rows[7:passGrain], rows[passGrain:2*passGrain], rows[2*passGrain:])
	if !slices.Equal(states, statesToo) || !slices.Equal(left, leftToo) || len(left) == 0 || len(left) == len(rows) {
		t.Errorf("%d rows left, want %d and the same scores", len(left), len(leftToo))
	}
}

// A range ends where a row is left out.
func TestRangeOf(t *testing.T) {
	for n := range 5 * leastRange {
		for gap := 1; gap <= n+1; gap++ {
			rows := make([]table.Row, n+1)
			for i := range rows {
				if rows[i] = table.Row(3 + i); i >= gap {
					rows[i]++
				}
			}
			if got := rangeOf(rows); got != gap {
				t.Errorf("%v: %d, want %d", rows, got, gap)
			}
		}
	}
}
