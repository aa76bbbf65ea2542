package ranking

import (
	"iter"
	"slices"

	"github.com/berth-scheduler/berth/core/table"
)

// maxScore is the number of different scores in an index with buckets, from 0: a bucket has a
// count for each. With higher scores the index has no buckets.
const maxScore = 1 << scoreBits

// Shape describes the rows of an index.
type Shape struct {
	// Values is the number of values of a row. The caller can find the first Known of them
	// itself, so they are not kept by row where there are no buckets.
	Values, Known int
	// Highest is the highest score that a row can have.
	Highest int64
}

// Index ranks the rows of a table for one class of pods. It belongs to the
// owner of the class. The zero value is ready for Begin.
type Index struct {
	states []State // by row
	causes causes  // why rows are rejected, with the number of rows for each cause

	// Feasible is the number of feasible rows. Call Count before reading it.
	Feasible int
	// OutOfRange is the number of feasible rows with a negative score. Call Count before reading
	// it.
	OutOfRange int
	// Bucketed is set while the feasible rows are in buckets. Otherwise each has state 0,
	// and its score is in scores.
	Bucketed bool

	shape    Shape
	progress progress // which counts are up to date
	buckets  []Bucket
	byKey    places // index of a bucket by its values
	last     int32  // index of the bucket found last
	// Of an index without buckets: score by row, and values by column, then row, the Known
	// columns left out.
	scores []int64
	values [][]int64
}

// Answers holds what the plugins answered about a list of rows, by index in the list.
type Answers struct {
	// Filter is the number of the first filter that rejects the row, from 1, or Feasible.
	// Verdict is that filter's verdict.
	Filter  []int16
	Verdict []uint64
	// Score is the final, weighted score of a feasible row; a negative one is out of range.
	Score []int64
	// Values are those of feasible rows, by column, then index in the list.
	Values [][]int64
}

// Begin drops all rows and sets their number, all closed, before the rows are evaluated.
// Each row that may be feasible must then be updated once, or its State written through
// States, before Count.
func (x *Index) Begin(s Shape, rows int) {
	x.begin(s, rows)
	closeAll(x.states)
}

// BeginFew is used instead of Begin for a pod that may run on few nodes only, such as one
// that PreFilter narrows to named nodes. It closes the rows in few, and only these may be
// updated or read; it costs little in a large table. The index has no buckets then.
func (x *Index) BeginFew(s Shape, rows int, few []table.Row) {
	x.begin(s, rows)
	for _, r := range few {
		x.states[r] = closed
	}
	x.Bucketed, x.progress = false, counted
	x.extendColumns()
}

// begin drops all rows, causes and buckets of the index, for rows of the shape, and has
// buckets from now on if the shape allows. The caller must set the State of every row that
// is read.
func (x *Index) begin(s Shape, rows int) {
	x.shape, x.progress = s, uncounted
	x.states = extend(x.states, rows)
	x.causes.reset()
	x.Feasible, x.OutOfRange = 0, 0
	x.buckets = x.buckets[:0]
	x.byKey.reset()
	x.values = extend(x.values[:cap(x.values)], s.Values-s.Known)
	if x.Bucketed = s.Values <= maxValues && s.Highest < maxScore; !x.Bucketed {
		x.extendColumns()
	}
}

// dropBuckets gives up the buckets until the next Begin: scores and values are kept by row
// instead. Which rows are feasible stays.
func (x *Index) dropBuckets() {
	was := x.Bucketed
	x.Bucketed = false
	if x.extendColumns(); !was {
		return
	}
	for r, s := range x.states {
		if !s.feasible() {
			continue
		}
		x.states[r], x.scores[r] = 0, int64(s.score())
		for k := range x.values {
			if b := int(s >> scoreBits); b < len(x.buckets) {
				x.values[k][r] = x.buckets[b].key[x.shape.Known+k]
			}
		}
	}
	x.buckets = x.buckets[:0]
	x.byKey.reset()
	x.progress = outdated
}

// extendColumns gives every row a place for its score and its values, which an index
// without buckets keeps by row.
func (x *Index) extendColumns() {
	x.scores = extend(x.scores, len(x.states))
	for k := range x.values {
		x.values[k] = extend(x.values[k], len(x.states))
	}
}

// extend returns the slice with length n: its elements, then zeros. Elements between len(s)
// and its capacity are overwritten.
func extend[S ~[]T, T any](s S, n int) S {
	if n <= len(s) {
		return s[:n]
	}
	return append(s, make([]T, n-len(s))...)
}

// Resize extends the index to n rows; new ones are closed. It never removes rows.
func (x *Index) Resize(n int) {
	for r := len(x.states); r < n; r++ {
		x.states = append(x.states, closed)
	}
	if !x.Bucketed {
		x.extendColumns()
	}
}

// States returns the index's own states by row, for the caller to write between Begin and
// Count. Each must be what Bucket returned plus the row's score.
func (x *Index) States() []State { return x.states }

// Close marks a row as rejected for a reason that the caller keeps. Call Count before reading the
// index.
func (x *Index) Close(r table.Row) {
	was := x.states[r]
	if !x.Bucketed && was.feasible() && x.scores[r] < 0 {
		x.OutOfRange--
	}
	x.move([]table.Row{r}, []State{was}, []State{closed})
}

// Open marks a closed row as open, so that Update can record an answer. It changes no other
// row.
func (x *Index) Open(r table.Row) {
	if x.states[r] == closed {
		x.states[r] = open
	}
}

// AppendOpenOf appends to open those of rows that are not closed, in their order: the rows
// that other filters and scorers are to be asked about. The two may not share memory.
func (x *Index) AppendOpenOf(rows, open []table.Row) []table.Row {
	var states [batch]State
	for len(rows) > 0 {
		some := rows[:min(batch, len(rows))]
		rows = rows[len(some):]
		for i, r := range some { // all are asked of the memory before the first is needed
			states[i] = x.states[r]
		}
		for i, r := range some {
			if states[i] != closed {
				open = append(open, r)
			}
		}
	}
	return open
}

// Update replaces the answers about the rows. Call Count before reading the index. It returns false
// if there are too many causes or buckets, some of which may be stale, or a score is out of range;
// the caller then calls Begin and updates all rows. Before the first Count the index gives up
// buckets instead, so that any number of buckets and any score will do.
func (x *Index) Update(rows []table.Row, found *Answers) bool {
	var before, after [batch]State
	for from := 0; from < len(rows); {
		some := rows[from:min(from+batch, len(rows))]
		were, are := before[:len(some)], after[:len(some)]
		for i, r := range some { // all are asked of the memory before the first is needed
			were[i] = x.states[r]
		}
		if !x.statesFor(found, from, were, are) {
			if x.progress != uncounted {
				return false
			}
			x.dropBuckets()
			continue
		}
		if !x.Bucketed {
			for i, r := range some {
				x.keepRow(r, were[i], are[i], found, from+i)
			}
		}
		x.move(some, were, are)
		from += len(some)
	}
	return len(x.causes.list) <= 64+len(x.states)
}

// move changes the states of rows from were to are. It updates the counts too while all are
// kept (counted); otherwise Count will.
func (x *Index) move(rows []table.Row, were, are []State) {
	const bucket = ^(State(1)<<scoreBits - 1) // the bits of a state that do not hold the score
	for i, r := range rows {
		was, is := were[i], are[i]
		if was == is {
			continue
		}
		if x.states[r] = is; x.progress != counted {
			if x.progress == ranked {
				x.progress = outdated
			}
			continue
		}
		if x.Bucketed && is.feasible() && (was^is)&bucket == 0 {
			x.rescore(r, was, is)
			continue
		}
		x.leave(was)
		x.join(r, is)
	}
}

// rescore corrects the counts of rows by score, and the highest score, of a bucket after
// one of its rows got another score.
func (x *Index) rescore(r table.Row, was, now State) {
	b, before, after := &x.buckets[now>>scoreBits], was.score(), now.score()
	b.byScore[before]--
	b.byScore[after]++
	switch {
	case after > b.top:
		b.top, b.ties = after, 1
	case after == b.top:
		b.ties++
	case before == b.top:
		if b.ties--; b.ties == 0 {
			b.findTop(before)
		}
	}
	if after >= b.lowest {
		x.addToList(int32(now>>scoreBits), after, r)
	}
}

// Add records what more plugins answered about rows that are feasible so far, between Begin and
// Count. The scores are added to those that the rows have; a negative one makes the index give up
// buckets. A row that is rejected is feasible no more. The values of the rows, and so their buckets,
// stay.
func (x *Index) Add(rows []table.Row, found *Answers) {
	filters, scores, signs := found.Filter[:len(rows)], found.Score[:len(rows)], int64(0)
	for _, score := range scores {
		signs |= score
	}
	if signs < 0 && x.Bucketed { // one is out of range
		x.dropBuckets()
	}
	for i, r := range rows {
		switch {
		case filters[i] != Feasible:
			x.states[r] = rejected(x.causes.id(Cause{filters[i], found.Verdict[i]}))
		case x.Bucketed:
			x.states[r] += State(scores[i])
		default:
			x.scores[r] += scores[i]
		}
	}
}

// batch is how many rows are handled together: their states are fetched from memory at the
// same time, which is faster than one by one.
const batch = 64

// statesFor computes the new states of rows into are. Their answers begin at index from of found,
// and were are their present states. It returns false if a row cannot be in a bucket: there are too
// many buckets, or its score is negative.
func (x *Index) statesFor(found *Answers, from int, were, are []State) bool {
	filters, scores := found.Filter[from:][:len(are)], found.Score[from:][:len(are)]
	for i, was := range were {
		switch {
		case filters[i] != Feasible:
			are[i] = rejected(x.causes.id(Cause{filters[i], found.Verdict[from+i]}))
		case !x.Bucketed:
			are[i] = 0
		default:
			b := x.bucketOf(was, found, from+i)
			if b == none || scores[i] < 0 {
				return false
			}
			are[i] = stateOf(b, int32(scores[i]))
		}
	}
	return true
}

// keepRow stores the score and values of a row in an index without buckets, from the i-th
// answer of found, and updates OutOfRange. was and now are its states before and after.
func (x *Index) keepRow(r table.Row, was, now State, found *Answers, i int) {
	if was.feasible() && x.scores[r] < 0 {
		x.OutOfRange--
	}
	if x.scores[r] = found.Score[i]; !now.feasible() {
		return
	}
	for k := range x.values {
		x.values[k][r] = found.Values[x.shape.Known+k][i]
	}
	if x.scores[r] < 0 {
		x.OutOfRange++
	}
}

// leave removes a row with that state from the counts.
func (x *Index) leave(was State) {
	switch {
	case was.rejected():
		x.causes.rows[was.cause()]--
	case was.feasible():
		if x.Feasible--; x.Bucketed {
			x.buckets[was>>scoreBits].remove(was.score())
		}
	}
}

// join adds a row to the counts of its new state: those of its bucket, or of its cause of
// rejection.
func (x *Index) join(r table.Row, now State) {
	switch {
	case now.rejected():
		x.causes.rows[now.cause()]++
	case now.feasible():
		if x.Feasible++; x.Bucketed {
			x.addRow(int32(now>>scoreBits), now.score(), r)
		}
	}
}

// IsFeasible reports whether the row is feasible: it is not closed or open, and no filter rejects
// it.
func (x *Index) IsFeasible(r table.Row) bool { return x.states[r].feasible() }

// FeasibleRows returns the feasible rows, ascending, each with the index of its bucket in
// Buckets; 0 if the index is not Bucketed.
func (x *Index) FeasibleRows() iter.Seq2[table.Row, int] {
	return func(yield func(table.Row, int) bool) {
		for r, s := range x.states {
			if s.feasible() && !yield(table.Row(r), int(s>>scoreBits)) {
				return
			}
		}
	}
}

// AppendFeasible appends the feasible rows, ascending. It does not branch on the state of a
// row, which is unpredictable.
func (x *Index) AppendFeasible(rows []table.Row) []table.Row {
	n := len(rows)
	rows = slices.Grow(rows, len(x.states))[:n+len(x.states)]
	for r, s := range x.states {
		rows[n] = table.Row(r) // #nosec G115 -- rows are numbered so
		n += 1 + int(s>>31)
	}
	return rows[:n]
}

// Score returns the row's own score, without the bucket's bonus. The row must be feasible.
func (x *Index) Score(r table.Row) int64 {
	if !x.Bucketed {
		return x.scores[r]
	}
	return int64(x.states[r].score())
}

// Value returns the value, a raw score or a cell, of a feasible row in column k. Without
// buckets k must be at least Shape.Known, as the columns before are not kept.
func (x *Index) Value(r table.Row, k int) int64 {
	if !x.Bucketed {
		return x.values[k-x.shape.Known][r]
	}
	return x.buckets[x.states[r]>>scoreBits].key[k]
}

// Cause returns why the row is rejected. Its Filter is Feasible for a feasible row, and
// Closed for one that is closed or was not updated.
func (x *Index) Cause(r table.Row) Cause {
	switch s := x.states[r]; {
	case s.feasible():
		return Cause{Filter: Feasible}
	case s.rejected():
		return x.causes.list[s.cause()]
	}
	return Cause{Filter: Closed}
}

// AppendOpen appends the rows that are not closed, ascending. It does not branch on the
// state of a row.
func (x *Index) AppendOpen(rows []table.Row) []table.Row {
	n := len(rows)
	rows = slices.Grow(rows, len(x.states))[:n+len(x.states)]
	for r, s := range x.states {
		rows[n] = table.Row(r) // #nosec G115 -- rows are numbered so
		if s != closed {
			n++
		}
	}
	return rows[:n]
}

// Rejections calls visit for each cause for which filters reject rows, with the number of such rows
// and the lowest of them. Closed rows have no cause. Call Count first.
func (x *Index) Rejections(visit func(c Cause, rows int, first table.Row)) {
	seen, left := make([]bool, len(x.causes.list)), 0
	for _, n := range x.causes.rows {
		if n > 0 {
			left++
		}
	}
	for r, s := range x.states {
		if left == 0 {
			return
		}
		if !s.rejected() || seen[s.cause()] {
			continue
		}
		id := s.cause()
		seen[id] = true
		left--
		visit(x.causes.list[id], x.causes.rows[id], table.Row(r))
	}
}

// AddRejected adds to the set the rows whose cause is wanted. It calls wanted once for each
// cause, with some row that has it. Closed rows have no cause.
func (x *Index) AddRejected(set table.RowSet, wanted func(Cause, table.Row) bool) {
	const asked, yes = 2, 1
	known := make([]uint8, 3+len(x.causes.list)) // by the state's negative
	known[0], known[-closed], known[-open] = asked, asked, asked
	for r, s := range x.states {
		at := max(-s, 0)
		if known[at] == 0 {
			known[at] = asked
			if wanted(x.causes.list[s.cause()], table.Row(r)) {
				known[at] |= yes
			}
		}
		set[r>>6] |= uint64(known[at]&yes) << (r & 63)
	}
}

// Causes returns the causes for which filters reject rows, each with the number of rows, in no
// particular order. Call Count first.
func (x *Index) Causes() iter.Seq2[Cause, int] {
	return func(yield func(Cause, int) bool) {
		for id, n := range x.causes.rows {
			if n > 0 && !yield(x.causes.list[id], n) {
				return
			}
		}
	}
}
