package ranking

import (
	"testing"

	"github.com/berth-scheduler/berth/core/table"
)

// Buckets that become too many while rows are updated for the first time are given up. What
// the rows were updated to before stays, and no row has to be updated anew.
func TestBucketsAreGivenUpInTheMiddle(t *testing.T) {
	const rows = 3 * batch
	x := &Index{}
	x.Begin(Shape{Values: 1, Highest: 300}, rows)
	found := Answers{Filter: make([]int16, rows), Verdict: make([]uint64, rows), Score: make([]int64, rows), Values: [][]int64{make([]int64, rows)}}
	list := make([]table.Row, rows)
	for r := range rows {
		list[r] = table.Row(r)
		found.Values[0][r] = int64(r % (2 * batch)) // few at first, then too many
		found.Score[r] = int64(r)
		if r%5 == 0 {
			found.Filter[r], found.Verdict[r] = 2, uint64(1+r%3)
		}
		if r < batch {
			found.Values[0][r] = 0
		}
	}
	part := func(from, to int) *Answers {
		return &Answers{Filter: found.Filter[from:to], Verdict: found.Verdict[from:to], Score: found.Score[from:to], Values: [][]int64{found.Values[0][from:to]}}
	}
	if !x.Update(list[:batch], part(0, batch)) || !x.Bucketed {
		t.Fatalf("bucketed is %v; want one bucket", x.Bucketed)
	}
	if !x.Update(list[batch:], part(batch, rows)) || x.Bucketed {
		t.Fatalf("bucketed is %v; want an update without buckets", x.Bucketed)
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
		if feasible++; !x.IsFeasible(r) || x.Score(r) != int64(r) || x.Value(r, 0) != found.Values[0][r] {
			t.Errorf("row %d: feasible %v with score %d, value %d", r, x.IsFeasible(r), x.Score(r), x.Value(r, 0))
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

// Buckets that become too many once they were counted are mostly of the past: the caller is
// to begin anew, and has buckets again.
func TestBucketsOfThePastEnd(t *testing.T) {
	x, rows := &Index{}, []table.Row{0, 1}
	answers := func(value int64) *Answers {
		return &Answers{Filter: make([]int16, 2), Verdict: make([]uint64, 2), Score: make([]int64, 2), Values: [][]int64{{value, 0}}}
	}
	begin := func(value int64) bool {
		x.Begin(Shape{Values: 1, Highest: 9}, len(rows))
		done := x.Update(rows, answers(value))
		x.Count()
		return done
	}
	if !begin(0) {
		t.Fatal("the index is not done")
	}
	for value := int64(1); value < int64(maxBuckets(len(rows))); value++ {
		if !x.Update(rows, answers(value)) {
			t.Fatalf("value %d: the caller is to begin anew", value)
		}
		x.Count()
	}
	if x.Update(rows, answers(-1)) || !x.Bucketed {
		t.Errorf("bucketed is %v; want the caller to begin anew", x.Bucketed)
	}
	if !begin(-1) || len(x.Buckets()) != 2 || x.Value(0, 0) != -1 {
		t.Errorf("begun anew: %d buckets, value %d", len(x.Buckets()), x.Value(0, 0))
	}
}

// Of an index that begins with a few rows, these are read, whatever the others were before.
func TestBeginFew(t *testing.T) {
	x := &Index{}
	for round := range table.Row(3) {
		few := []table.Row{round, 5 + round}
		x.BeginFew(Shape{Values: 1, Highest: 9}, 10, few)
		x.Update(few, &Answers{Filter: []int16{0, 3}, Verdict: []uint64{0, uint64(round)}, Score: []int64{7, 0}, Values: [][]int64{{int64(round), 0}}})
		if x.Feasible != 1 || x.Score(round) != 7 || x.Value(round, 0) != int64(round) || x.Cause(5+round) != (Cause{3, uint64(round)}) {
			t.Errorf("round %d: %d feasible, %v", round, x.Feasible, x.Cause(5+round))
		}
	}
}
