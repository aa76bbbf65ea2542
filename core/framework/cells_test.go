package framework

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Each row gets the answer for its cell, and each cell counts its rows once, however many
// rows and cells there are.
func TestRowsAnswerAsTheirCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb := table.New()
		for i := range rapid.IntRange(0, 600).Draw(t, "nodes") {
			tb.SetNode(&object.Node{Name: fmt.Sprint("n", i)})
		}
		most := rapid.Int64Range(0, 400).Draw(t, "cells")
		of := make([]int64, tb.Rows())
		for r := range of {
			of[r] = (int64(r)*7919%(most+1) - 1) << rapid.SampledFrom([]int{0, 8, 32}).Draw(t, "shift")
		}
		cells := func(_ *Input, rows []table.Row, out []int64) {
			for i, r := range rows {
				out[i] = of[r]
			}
		}
		want, got := map[int64]int{}, map[int64]int{}
		for _, r := range tb.All() {
			want[of[r]]++
		}
		in, rows := &Input{Table: tb}, slices.Clone(tb.All())
		filter := &CellFilter{Cells: cells, Filter: func(_ *Input, cell int64) Verdict { return Verdict(cell + 1) }}
		verdicts := make([]Verdict, len(rows))
		filter.AskRows(in, rows, verdicts)
		for i, r := range rows {
			if verdicts[i] != Verdict(of[r]+1) {
				t.Fatalf("row %d of cell %d has verdict %d", r, of[r], verdicts[i])
			}
		}
		score := &CellScore{Cells: cells, FeasibleNodes: func(_ *Input, counts []CellCount) {
			for _, c := range counts {
				if _, again := got[c.Cell]; again {
					t.Fatalf("cell %d is counted twice", c.Cell)
				}
				got[c.Cell] = c.Nodes
			}
		}}
		if score.TellFeasible(in, rows); !maps.Equal(got, want) {
			t.Fatalf("counted %v, want %v", got, want)
		}
	})
}
