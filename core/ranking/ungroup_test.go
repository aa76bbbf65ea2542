package ranking

import (
	"testing"

	"github.com/berth-scheduler/berth/core/table"
)

// Groups that become too many in the middle of a first pass are given up. What the rows
// were updated to before stays, and no row has to be updated anew.
func TestGroupsAreGivenUpInAPass(t *testing.T) {
	const rows = 3 * block
	for _, brief := range []bool{false, true} {
		x := New(Shape{Shared: &Combinations{}, Own: 1, Highest: 300, Brief: brief}, nil)
		x.shape.Shared.Resize(rows)
		x.Resize(rows)
		x.Reset(nil)
		found := Answers{Filter: make([]int16, rows), Verdict: make([]uint64, rows), Score: make([]int64, rows)}
		list := make([]table.Row, rows)
		for r := range rows {
			list[r] = table.Row(r)
			x.shape.Shared.Set(table.Row(r), nil)
			x.Column(0)[r] = int64(r % (2 * block)) // few at first, then too many
			found.Score[r] = int64(r)
			if r%5 == 0 {
				found.Filter[r], found.Verdict[r] = 2, uint64(1+r%3)
			}
			if r < block {
				x.Column(0)[r] = 0
			}
		}
		first := Answers{Filter: found.Filter[:block], Verdict: found.Verdict[:block], Score: found.Score[:block]}
		rest := Answers{Filter: found.Filter[block:], Verdict: found.Verdict[block:], Score: found.Score[block:]}
		if !x.Update(list[:block], &first) || !x.Grouped {
			t.Fatalf("grouped is %v; want one group", x.Grouped)
		}
		if !x.Update(list[block:], &rest) || x.Grouped {
			t.Fatalf("grouped is %v; want an update without groups", x.Grouped)
		}
		x.Count()
		feasible, causes := 0, map[Cause]int{}
		for r := range table.Row(rows) {
			if r%5 == 0 {
				causes[Cause{2, uint64(1 + r%3)}]++
				if got := x.Cause(r); got != (Cause{2, uint64(1 + r%3)}) {
					t.Errorf("row %d: cause %v", r, got)
				}
				continue
			}
			if feasible++; !x.IsFeasible(r) || x.Score(r) != int64(r) {
				t.Errorf("row %d: feasible %v with score %d", r, x.IsFeasible(r), x.Score(r))
			}
		}
		for c, n := range x.Causes() {
			if causes[c] != n {
				t.Errorf("cause %v: %d rows, want %d", c, n, causes[c])
			}
		}
		if x.Feasible != feasible || x.OutOfRange != 0 {
			t.Errorf("%d feasible, %d out of range; want %d and 0", x.Feasible, x.OutOfRange, feasible)
		}
	}
}
