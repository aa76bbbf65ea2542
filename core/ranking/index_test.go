package ranking

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/table"
)

// row is what a naive index has of a row.
type row struct {
	cause  Cause
	score  int64
	values []int64
}

// naive keeps the rows alone, and computes everything else when it is asked.
type naive struct {
	rows  []row
	shape Shape
	index Index
	rand  *rand.Rand
}

func newNaive(r *rand.Rand) *naive {
	n := &naive{rand: r}
	n.draws()
	n.grow()
	n.rebuild()
	return n
}

// draws draws the shape.
func (n *naive) draws() {
	n.shape = Shape{Values: n.rand.IntN(4), Highest: 1 + n.rand.Int64N(300)}
	n.shape.Known = n.rand.IntN(n.shape.Values + 1)
	switch n.rand.IntN(10) { // not to be bucketed
	case 0:
		n.shape.Highest = maxScore
	case 1:
		n.shape.Values = maxValues + 1
	}
}

// draw makes a row. Values are few, so that rows share buckets; one in many is
// new, so that buckets become too many in the end.
func (n *naive) draw() row {
	r := row{score: n.rand.Int64N(n.shape.Highest + 1)}
	for range n.shape.Values {
		value := n.rand.Int64N(2)
		if n.rand.IntN(50) == 0 {
			value = n.rand.Int64()
		}
		r.values = append(r.values, value)
	}
	switch n.rand.IntN(6) {
	case 0:
		r.cause.Filter = Closed
	case 1:
		r.cause = Cause{1 + int16(n.rand.IntN(3)), 1 + n.rand.Uint64N(3)}
	}
	if n.rand.IntN(200) == 0 {
		r.score = -1
	}
	return r
}

func (n *naive) grow() {
	for range 1 + n.rand.IntN(200) {
		n.rows = append(n.rows, n.draw())
	}
}

// answers are those about the rows.
func (n *naive) answers(rows []table.Row) *Answers {
	found := &Answers{Values: make([][]int64, n.shape.Values)}
	for _, r := range rows {
		is := &n.rows[r]
		found.Filter, found.Verdict, found.Score = append(found.Filter, is.cause.Filter), append(found.Verdict, is.cause.Verdict), append(found.Score, is.score)
		for k, v := range is.values {
			found.Values[k] = append(found.Values[k], v)
		}
	}
	return found
}

// update tells the index of the rows; false where it cannot.
func (n *naive) update(rows ...table.Row) bool {
	for _, r := range rows {
		if n.rows[r].cause.Filter == Closed {
			n.index.Close(r)
		} else {
			n.index.Open(r)
		}
	}
	open := n.index.AppendOpenOf(rows, nil)
	return n.index.Update(open, n.answers(open))
}

// rebuild has all rows updated anew. Some of them get a state first, to which the rest of
// their scores is added.
func (n *naive) rebuild() {
	n.index.Begin(n.shape, len(n.rows))
	var some, others []table.Row
	for i := range n.rows {
		is, r := &n.rows[i], table.Row(i)
		switch {
		case is.cause.Filter == Closed:
		case n.index.Bucketed && n.rand.IntN(2) == 0:
			if state, bucketed := n.index.Bucket(is.values); bucketed {
				n.index.States()[r] = state + State(max(0, is.score/2))
				some = append(some, r)
				continue
			}
			fallthrough
		default:
			others = append(others, r)
		}
	}
	found := n.answers(some)
	for i := range found.Score {
		found.Score[i] -= max(0, found.Score[i]/2)
	}
	if n.index.Add(some, found); !n.index.Update(others, n.answers(others)) {
		panic("the index is not done")
	}
	n.index.Count()
}

func (n *naive) change(*rapid.T) {
	var rows []table.Row
	for range 1 + n.rand.IntN(10) {
		if r := n.rand.IntN(len(n.rows)); !slices.Contains(rows, table.Row(r)) {
			rows, n.rows[r] = append(rows, table.Row(r)), n.draw()
		}
	}
	if !n.update(rows...) {
		n.rebuild()
	}
	n.index.Count()
}

func (n *naive) addRows(*rapid.T) {
	from := len(n.rows)
	n.grow()
	n.index.Resize(len(n.rows))
	for r := from; r < len(n.rows); r++ {
		if !n.update(table.Row(r)) {
			n.rebuild()
			return
		}
	}
	n.index.Count()
}

// renew has the index begin with other rows, in another shape.
func (n *naive) renew(*rapid.T) {
	n.rows = nil
	n.draws()
	n.grow()
	n.rebuild()
}

// bonus of a row, and whether its bucket fits: whatever, but alike for equal values.
func bonus(seed int64, values ...int64) (int64, bool) {
	h := draw.Hash(fmt.Sprint(seed, values))
	return int64(h % 50), h%7 != 0
}

func (n *naive) pick(t *rapid.T) {
	if !n.index.Bucketed {
		return
	}
	seed, best, tied := n.rand.Int64(), int64(math.MinInt64), map[table.Row]bool{}
	for i, r := range n.rows {
		b, fits := bonus(seed, r.values...)
		if r.cause.Filter != Feasible || !fits {
			continue
		}
		if total := b + r.score; total > best {
			best = total
			clear(tied)
		}
		if b+r.score == best {
			tied[table.Row(i)] = true
		}
	}
	for i := range n.index.Buckets() {
		g := &n.index.Buckets()[i]
		var values []int64
		for k := range n.shape.Values {
			values = append(values, g.Value(k))
		}
		g.Bonus, g.Fits = bonus(seed, values...)
	}
	if len(tied) == 0 {
		return
	}
	row, total, ties := n.index.Pick(uint64(seed))
	if !tied[row] || total != best || ties != len(tied) {
		t.Fatalf("picked row %d, total %d, %d ties; want one of %v with %d", row, total, ties, slices.Sorted(maps.Keys(tied)), best)
	}
}

func (n *naive) check(t *rapid.T) {
	feasible, outOfRange, causes := 0, 0, map[Cause]int{}
	var list []table.Row
	for i, is := range n.rows {
		r := table.Row(i)
		if got := n.index.Cause(r); got.Filter != is.cause.Filter || (is.cause.Rejects() && got != is.cause) {
			t.Fatalf("row %d: %v, want %v", r, got, is.cause)
		}
		if n.index.IsFeasible(r) != (is.cause.Filter == Feasible) {
			t.Fatalf("row %d is feasible: %t", r, n.index.IsFeasible(r))
		}
		switch {
		case is.cause.Rejects():
			causes[is.cause]++
		case is.cause.Filter == Feasible:
			feasible, list = feasible+1, append(list, r)
			if got := n.index.Score(r); got != is.score {
				t.Fatalf("row %d has score %d, want %d", r, got, is.score)
			}
			for k, want := range is.values {
				if k < n.shape.Known && !n.index.Bucketed {
					continue
				}
				if got := n.index.Value(r, k); got != want {
					t.Fatalf("row %d has value %d, want %d", r, got, want)
				}
			}
			if is.score < 0 {
				outOfRange++
			}
		}
	}
	if n.index.Feasible != feasible || n.index.OutOfRange != outOfRange || !maps.Equal(maps.Collect(n.index.Causes()), causes) {
		t.Fatalf("%d feasible, %d out of range, %v; want %d, %d, %v", n.index.Feasible, n.index.OutOfRange, maps.Collect(n.index.Causes()), feasible, outOfRange, causes)
	}
	n.index.Rejections(func(c Cause, rows int, first table.Row) {
		at := slices.IndexFunc(n.rows, func(is row) bool { return is.cause == c })
		if rows != causes[c] || int(first) != at {
			t.Fatalf("%v rejects %d rows, the first %d; want %d, %d", c, rows, first, causes[c], at)
		}
		delete(causes, c)
	})
	if len(causes) > 0 {
		t.Fatalf("not listed: %v", causes)
	}
	n.checkRejected(t)
	var got []table.Row
	for r, g := range n.index.FeasibleRows() {
		if got = append(got, r); n.index.Bucketed && n.index.Buckets()[g].Rows == 0 {
			t.Fatalf("row %d is in bucket %d, which has no rows", r, g)
		}
	}
	if !slices.Equal(got, list) || !slices.Equal(n.index.AppendFeasible([]table.Row{7}), append([]table.Row{7}, list...)) {
		t.Fatalf("feasible rows %v, want %v", got, list)
	}
	var open []table.Row
	for i, is := range n.rows {
		if is.cause.Filter != Closed {
			open = append(open, table.Row(i))
		}
	}
	if !slices.Equal(n.index.AppendOpen(nil), open) {
		t.Fatalf("open rows %v, want %v", n.index.AppendOpen(nil), open)
	}
	if n.index.Bucketed {
		if err := n.index.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// checkRejected compares the rows that are rejected for some of the causes.
func (n *naive) checkRejected(t *rapid.T) {
	wanted := func(c Cause) bool { return (uint64(c.Filter)^c.Verdict)%2 == 0 }
	got, asked := make(table.RowSet, (len(n.rows)+63)/64), map[Cause]bool{}
	n.index.AddRejected(got, func(c Cause, r table.Row) bool {
		if asked[c] || n.rows[r].cause != c {
			t.Fatalf("%v: asked with row %d, before that: %t", c, r, asked[c])
		}
		asked[c] = true
		return wanted(c)
	})
	for i, is := range n.rows {
		if r := table.Row(i); got.Has(r) != (is.cause.Rejects() && wanted(is.cause)) {
			t.Fatalf("row %d, %v: listed %t", r, is.cause, got.Has(r))
		}
	}
}

// Whatever rows are updated, in whatever order, the index says of all rows what a
// walk over them says, and picks the best.
func TestIndexIsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := newNaive(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)))
		t.Repeat(map[string]func(*rapid.T){
			"change": n.change, "change more": n.change, "pick": n.pick, "pick more": n.pick,
			"add rows": n.addRows, "renew": n.renew, "": n.check,
		})
	})
}

// equals is a counted index of n rows with one score each, none where it is negative.
func equals(n int, score func(r int) int64) *Index {
	x := &Index{}
	x.Begin(Shape{Highest: 100}, n)
	for r := range n {
		x.set(table.Row(r), score(r))
	}
	x.Count()
	x.set(0, -1) // all are counted then
	x.set(0, score(0))
	return x
}

func (x *Index) set(r table.Row, score int64) {
	filter := Feasible
	if score < 0 {
		filter, score = 1, 0
	}
	x.Update([]table.Row{r}, &Answers{Filter: []int16{filter}, Verdict: []uint64{1}, Score: []int64{score}})
	if x.progress != uncounted {
		x.Count()
	}
}

// Check finds whatever does not agree with the states of the rows.
func TestCheckFindsDifferences(t *testing.T) {
	for name, plant := range map[string]func(*Index){
		"score":   func(x *Index) { x.states[4]++ },
		"state":   func(x *Index) { x.states[4] = rejected(0) },
		"highest": func(x *Index) { x.buckets[0].top-- },
		"count":   func(x *Index) { x.buckets[0].byScore[7]++ },
		"ties":    func(x *Index) { x.buckets[0].ties++ },
		"rows":    func(x *Index) { x.buckets[0].Rows++ },
		"list":    func(x *Index) { x.buckets[0].lowest, x.buckets[0].lists = 0, make([][]table.Row, 101) },
	} {
		x := equals(10, func(r int) int64 { return int64(r) })
		x.set(9, -1)
		x.set(9, 9)
		if err := x.Check(); err != nil {
			t.Fatal(err)
		}
		if plant(x); x.Check() == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

// Lists of a bucket's best rows are no longer than the bucket is large, however its
// rows come and go.
func TestListsAreBounded(t *testing.T) {
	const n = 600
	x := equals(n, func(int) int64 { return 100 })
	for round := range 40 {
		for r := range n {
			x.set(table.Row(r), int64(100-(round+r%3)%20))
			if g := &x.buckets[0]; r%8 == 0 {
				g.Fits = true
				x.Pick(uint64(r))
				listed := 0
				for _, list := range g.lists {
					listed += len(list)
				}
				if listed != g.listed || listed > 65+2*g.Rows || len(g.lists) > 1+int(g.top) {
					t.Fatalf("a bucket of %d rows lists %d (%d counted) by %d scores", g.Rows, listed, g.listed, len(g.lists))
				}
			}
		}
		if err := x.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// Each of the ties has the same chance, few or many.
func TestTiesAreUniform(t *testing.T) {
	for _, best := range []int{3, 600} {
		x := equals(600, func(r int) int64 {
			if r < best {
				return 50
			}
			return 10
		})
		x.buckets[0].Fits = true
		counts := make([]int, best)
		for seed := range 100 * best {
			row, _, ties := x.Pick(uint64(seed))
			if ties != best {
				t.Fatalf("%d ties, want %d", ties, best)
			}
			counts[row]++
		}
		sum := 0.0
		for _, n := range counts {
			sum += float64((n-100)*(n-100)) / 100
		}
		if free := float64(best - 1); sum > free+4*math.Sqrt(2*free)+10 {
			t.Errorf("%d ties: chi square %.0f", best, sum)
		}
	}
}

// The order has every row of the buckets that fit once, the highest totals first, also
// where totals are far apart.
func TestOrderIsByTotal(t *testing.T) {
	for _, apart := range []int64{1, 50, 2 * mostTotals} {
		x, rows := &Index{}, make([]table.Row, 300)
		x.Begin(Shape{Values: 1, Highest: 100}, 300)
		found := &Answers{Filter: make([]int16, 300), Verdict: make([]uint64, 300), Score: make([]int64, 300), Values: [][]int64{make([]int64, 300)}}
		for i := range rows {
			rows[i] = table.Row(i)
			found.Values[0][i] = int64(i % 4)
			found.Score[i] = int64(i * 37 % 101)
			if i%5 == 0 {
				found.Filter[i] = 1
			}
		}
		x.Update(rows, found)
		x.Count()
		buckets, want := x.Buckets(), map[Rated]bool{}
		for i := range buckets {
			buckets[i].Fits, buckets[i].Bonus = buckets[i].Value(0) != 3, apart*buckets[i].Value(0)
		}
		for i := range rows {
			if fits := i%5 != 0 && i%4 != 3; x.Fits(rows[i]) != fits {
				t.Errorf("row %d: fits is not %v", i, fits)
			} else if fits {
				want[Rated{rows[i], found.Score[i] + apart*int64(i%4)}] = true
			}
		}
		list := (&Order{}).Of(x)
		if len(list) != len(want) || !slices.IsSortedFunc(list, func(a, b Rated) int { return cmp.Compare(b.Total, a.Total) }) {
			t.Errorf("%d apart: %d rows of %d, or out of order", apart, len(list), len(want))
		}
		for _, r := range list {
			if !want[r] {
				t.Errorf("%d apart: %v is wrong, or there twice", apart, r)
			}
			delete(want, r)
		}
	}
}
