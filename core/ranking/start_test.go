package ranking

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/table"
)

// An index that begins with what classes share is one that was told of each row. Of rows
// that share a score, it may be told by an addition to their states.
func TestBeginIsAnUpdateOfEachRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var known Start
		var begun, told *Index
		shared := &Combinations{}
		want := map[table.Row]Cause{} // of the rows that are rejected
		scored := map[table.Row]bool{}
		shares := func(r table.Row) int64 { return int64(r) % 4 }
		own := func(r table.Row) int64 { return int64(r) % 6 }
		rows := rapid.IntRange(1, 200).Draw(t, "rows")
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			known.Resize(rows)
			shared.Resize(rows)
			if known.Full() || rapid.Bool().Draw(t, "reset") {
				known.Reset()
				clear(want)
			}
			some := make(table.RowSet, (rows+63)/64)
			cause := func() Cause {
				return Cause{rapid.Int16Range(1, 3).Draw(t, "filter"), rapid.Uint64Range(1, 3).Draw(t, "verdict")}
			}
			all := cause()
			for r := range table.Row(rows) {
				if known.Cause(r).Filter == NoNode {
					known.Admit(r)
					delete(scored, r)
				}
				shared.Set(r, nil)
				switch rapid.IntRange(0, 5).Draw(t, "row") {
				case 0:
					some.Set(r, true)
					want[r] = all
				case 1:
					want[r] = cause()
					known.Reject(r, want[r])
				case 2:
					known.Admit(r)
					delete(want, r)
					delete(scored, r)
				case 3:
					known.AdmitScored(r, shared, shares(r))
					scored[r] = true
					delete(want, r)
				}
			}
			known.RejectAll(some, all)

			shape, outOfRange := Shape{Shared: shared, Highest: 9, Brief: true}, 0
			if rapid.Bool().Draw(t, "no groups") {
				shape.Shared, outOfRange = nil, rapid.IntRange(-1, 9).Draw(t, "out of range")
			}
			begun, told = New(shape, begun), New(shape, told)
			begun.Resize(rows)
			told.Resize(rows)
			begun.Begin(&known)
			told.Reset(nil)
			for r := range table.Row(rows) {
				c := known.Cause(r)
				if c != want[r] {
					t.Fatalf("row %d: %v, want %v", r, c, want[r])
				}
				found := &Answers{Filter: []int16{c.Filter}, Verdict: []uint64{c.Verdict}, Score: []int64{shares(r) + own(r)}}
				if shape.Shared == nil && int(r)%10 == outOfRange {
					found.Score[0] = math.MinInt64 / 1024
				}
				told.Update([]table.Row{r}, found)
				switch {
				case c.Rejects():
				case scored[r] && begun.Addable(&known):
					begun.Begun(r, 1)[0] += State(own(r))
				default:
					begun.Update([]table.Row{r}, found)
				}
			}
			if begun.CountFeasible(); begun.Feasible != rows-len(want) {
				t.Fatalf("%d feasible, want %d", begun.Feasible, rows-len(want))
			}
			counted := begun.OutOfRange
			begun.Count()
			told.Count()
			if counted != told.OutOfRange || begun.OutOfRange != told.OutOfRange {
				t.Fatalf("%d out of range, counted again %d, want %d", counted, begun.OutOfRange, told.OutOfRange)
			}
			for r := range table.Row(rows) {
				if a, b := begun.Cause(r), told.Cause(r); a != b || !a.Rejects() && begun.Score(r) != told.Score(r) {
					t.Fatalf("row %d: %v, want %v", r, a, b)
				}
			}
			if begun.Feasible != told.Feasible {
				t.Fatalf("%d feasible, want %d", begun.Feasible, told.Feasible)
			}
			counts := map[Cause]int{}
			for c, n := range told.Causes() {
				counts[c] = n
			}
			for c, n := range begun.Causes() {
				if counts[c] != n {
					t.Fatalf("%v on %d rows, want %d", c, n, counts[c])
				}
			}
		}
	})
}

// Where a score is out of range, the index is told of each row.
func TestScoresOutOfRangeAreNotAddedTo(t *testing.T) {
	var known Start
	shared := &Combinations{}
	shared.Resize(2)
	known.Resize(2)
	for r := range table.Row(2) {
		shared.Set(r, nil)
		known.AdmitScored(r, shared, 1-2*int64(r)) // the second is below 0
	}
	x := New(Shape{Shared: shared, Highest: 9}, nil)
	x.Resize(2)
	x.Begin(&known)
	if x.Addable(&known) {
		t.Error("it may be added to a score below 0")
	}
}
