package engine

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// A pass that several cores share gives rows what it gives them in one piece, and leaves
// out the same rows.
func TestPassIsSplit(t *testing.T) {
	tb, mask := table.New(), table.RowSet(nil)
	for i := range int64(64*(2*passWords) + 5) {
		r := tb.SetNode(&object.Node{Name: fmt.Sprint(i), Allocatable: resource.Vector{MilliCPU: 1 + i%4000, Memory: 4000 - i%1000}, AllowedPods: 9})
		if i%64 == 0 {
			mask = append(mask, 0)
		}
		mask.Set(r, i%3 != 0)
	}
	amounts := headroom.Of(100, 100)
	p := &headroom.Pass{}
	p.JoinFilter([]sums.Sum{sums.New(tb, v1.ResourcePods, 1, false), sums.New(tb, v1.ResourceCPU, 100, false), sums.New(tb, v1.ResourceMemory, 100, false)})
	p.JoinScore(headroom.Score{Form: headroom.LeastAllocated, Amounts: amounts}, 1)
	p.JoinScore(headroom.Score{Form: headroom.Balanced, Amounts: amounts}, 1)
	add := func(workers int) ([]ranking.State, []table.Row) {
		v := &view{table: tb, pass: p, index: &ranking.Index{}}
		v.index.Begin(ranking.Shape{Highest: 300}, tb.Rows())
		b := &beginning{view: v, workers: workers}
		b.add(mask, 7)
		return v.index.States(), b.left
	}
	states, left := add(2)
	whole, leftToo := add(1)
	if !slices.Equal(states, whole) || !slices.Equal(left, leftToo) || len(left) == 0 || len(left) == mask.Len() {
		t.Errorf("%d rows left, want %d and the same states", len(left), len(leftToo))
	}
}
