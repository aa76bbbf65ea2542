package ranking

import (
	"iter"
	"slices"

	"github.com/berth-scheduler/berth/core/table"
)

// maxScore bounds the scores of an index with groups: a group has a count for
// each score.
const maxScore = 1 << scoreBits

// Shape describes what an index holds.
type Shape struct {
	// Shared are the values that classes share, as combinations; nil: there are no
	// groups.
	Shared *Combinations
	// Own is the number of values besides; each has a column of the index.
	Own int
	// Highest is the highest score that a row can have.
	Highest int64
	// Brief is for an index that is asked a time or two and then given up. It counts only
	// the best rows of each group, which is faster, and walks all rows again once these
	// are gone.
	Brief bool
}

// Index ranks the rows of a table for one class of pods. It belongs to the
// owner of the class.
type Index struct {
	states []State // by row
	causes causes

	// Feasible is the number of feasible rows.
	Feasible int
	// OutOfRange is the number of feasible rows with a negative score.
	OutOfRange int
	// Grouped is set while the feasible rows are in groups. Otherwise each has state 0,
	// and its score is in scores.
	Grouped bool

	shape  Shape
	own    [][]int64 // columns of own values
	groups []Group
	byKey  places // the groups by their key, where there are own values
	// counted is set while all counts agree with the states. Until then Update writes
	// states alone, and Count must be called.
	counted bool
	scores  []int64
	signs   int64 // negative where one of the scores was, since Reset
}

// Answers holds the answers about a list of rows, by index in the list.
type Answers struct {
	// Filter is the first filter that rejects the row, from 1, or Feasible, or
	// NoNode. Verdict is the filter's.
	Filter  []int16
	Verdict []uint64
	// Score of a feasible row; a negative one is out of range.
	Score []int64
}

// New returns an index. It takes over the memory of old, which must not be used any more;
// nil means none. Call Reset before anything else.
func New(shape Shape, old *Index) *Index {
	x := &Index{shape: shape}
	if old != nil {
		x.states, x.groups, x.causes, x.byKey, x.scores = old.states, old.groups, old.causes, old.byKey, old.scores
		x.own = old.own[:cap(old.own)] // the last one may have used few of its columns
	}
	x.own = extend(x.own, shape.Own)
	x.Grouped = shape.Shared != nil && shape.Own <= maxValues && shape.Highest < maxScore
	return x
}

// ungroup gives up groups, for good.
func (x *Index) ungroup() {
	x.Grouped = false
	x.scores = extend(x.scores, len(x.states))
}

// Resize sets the number of rows to n; new ones are vacant.
func (x *Index) Resize(n int) {
	for r := len(x.states); r < n; r++ {
		x.states = append(x.states, vacant)
	}
	if !x.Grouped {
		x.scores = extend(x.scores, n)
	}
	for k := range x.own {
		x.own[k] = extend(x.own[k], n)
	}
}

// Column returns the column of the k-th own value. Write a row's entry before the row is
// updated.
func (x *Index) Column(k int) []int64 { return x.own[k] }

// Reset clears the index. Each row must then be updated once, before Count. If only is
// not nil, the index has no groups and covers the rows of only; it is undefined for
// others.
func (x *Index) Reset(only []table.Row) {
	if only != nil || x.Grouped && x.shape.Shared.Full {
		x.ungroup()
	}
	switch {
	case only != nil:
		for _, r := range only {
			x.states[r] = vacant
		}
	case x.shape.Own > 0 || !x.Grouped: // else no state is read before it is written
		vacate(x.states)
	}
	x.forget()
	x.counted = only != nil
}

// forget clears causes, groups and counts, and leaves the states of rows as they are.
func (x *Index) forget() {
	x.counted = false
	x.causes.reset()
	x.Feasible, x.OutOfRange, x.signs = 0, 0, 0
	x.groups = x.groups[:0]
	x.byKey.reset()
}

// Update records the answers about the rows. It returns false if it cannot: there are too
// many groups or causes, or a score is out of range. The caller then calls Reset and
// updates all rows again; the index is without groups if no row was counted yet. Call
// Count before reading the index.
//
// If groups by own values become too many while no row is counted, the index goes on
// without groups, and nothing has to be updated again.
func (x *Index) Update(rows []table.Row, found *Answers) bool {
	if x.update(rows, found) {
		return true
	}
	switch {
	case x.counted:
		return false
	case x.Grouped && x.shape.Own > 0:
		x.ungroupRows()
		return x.update(rows, found)
	}
	x.ungroup()
	return false
}

// ungroupRows gives up groups, for good, and keeps the feasibility and scores of rows.
func (x *Index) ungroupRows() {
	x.ungroup()
	for r, s := range x.states {
		if s.feasible() {
			x.states[r], x.scores[r] = 0, int64(s.score())
		}
	}
	x.groups = x.groups[:0]
	x.byKey.reset()
}

func (x *Index) update(rows []table.Row, found *Answers) bool {
	if x.Grouped && x.shape.Own == 0 {
		if x.addCombinations(); !x.counted {
			return x.fill(rows, found)
		}
	}
	if !x.Grouped && !x.counted {
		return x.fillUngrouped(rows, found)
	}
	var before, after [block]State
	for from := 0; from < len(rows); from += block {
		some := rows[from:min(from+block, len(rows))]
		were, are := before[:len(some)], after[:len(some)]
		for i, r := range some { // all are asked of the memory before the first is needed
			were[i] = x.states[r]
		}
		if !x.statesFor(some, found, from, were, are) {
			return false
		}
		if !x.Grouped {
			for i, r := range some {
				x.keepScore(r, were[i], are[i], found.Score[from+i])
			}
		}
		x.move(some, were, are)
	}
	return len(x.causes.list) <= 64+len(x.states)
}

// fill writes the states of rows into an index that is not counted and whose groups are
// the shared combinations. It returns false if a score is negative.
func (x *Index) fill(rows []table.Row, found *Answers) bool {
	signs := int64(0)
	filters, scores := found.Filter[:len(rows)], found.Score[:len(rows)]
	states := x.states
	groups := x.shape.Shared.of[:len(states)]
	for i, r := range rows {
		if filters[i] == Feasible {
			signs |= scores[i]
			states[r] = State(groups[r])<<scoreBits | State(scores[i])
			continue
		}
		states[r] = vacant
		if filters[i] != NoNode {
			states[r] = rejected(x.causes.id(Cause{filters[i], found.Verdict[i]}))
		}
	}
	return signs >= 0 // no score is negative
}

// fillUngrouped writes the states and scores of rows into an index that is not counted
// and has no groups. It returns false if there are too many causes.
func (x *Index) fillUngrouped(rows []table.Row, found *Answers) bool {
	filters, scores := found.Filter[:len(rows)], found.Score[:len(rows)]
	for i, r := range rows {
		state := State(0)
		if filters[i] != Feasible {
			if state = vacant; filters[i] != NoNode {
				state = rejected(x.causes.id(Cause{filters[i], found.Verdict[i]}))
			}
		}
		x.states[r], x.scores[r] = state, scores[i]
		x.signs |= scores[i]
	}
	return len(x.causes.list) <= 64+len(x.states)
}

// move changes the states of rows from were to are, and the counts with them.
func (x *Index) move(rows []table.Row, were, are []State) {
	const group = ^(State(1)<<scoreBits - 1) // the bits of a state that do not hold the score
	for i, r := range rows {
		was, is := were[i], are[i]
		if !x.counted {
			x.states[r] = is
			continue
		}
		if was == is {
			continue
		}
		x.states[r] = is
		if x.Grouped && !x.shape.Brief && is.feasible() && (was^is)&group == 0 {
			x.rescore(r, was, is)
			continue
		}
		x.leave(was)
		x.join(r, is)
	}
}

// rescore updates a group's counts for a row that stays in the group and changes its
// score.
func (x *Index) rescore(r table.Row, was, now State) {
	g, before, after := &x.groups[now>>scoreBits], was.score(), now.score()
	g.byScore[before]--
	g.byScore[after]++
	switch {
	case after > g.top:
		g.top, g.ties = after, 1
	case after == g.top:
		g.ties++
	case before == g.top:
		if g.ties--; g.ties == 0 {
			g.findTop(before)
		}
	}
	if after >= g.lowest {
		x.addToList(int32(now>>scoreBits), after, r)
	}
}

// block is how many rows Update handles at a time.
const block = 64

// statesFor computes the new states of rows, whose answers begin at index from of found.
// It returns false if a row cannot have one.
func (x *Index) statesFor(rows []table.Row, found *Answers, from int, were, are []State) bool {
	filters, scores := found.Filter[from:][:len(are)], found.Score[from:][:len(are)]
	quick := x.Grouped && x.shape.Own == 0
	groups, signs := x.shape.sharedGroups(), int64(0)
	for i, r := range rows {
		if quick && filters[i] == Feasible {
			are[i] = State(groups[r])<<scoreBits | State(scores[i])
			signs |= scores[i]
			continue
		}
		var ok bool
		if are[i], ok = x.stateFor(r, were[i], found, from+i); !ok {
			return false
		}
	}
	return signs >= 0 // no score is negative
}

// stateFor returns the state of the row that stands at i in what was found out; false
// where there is none.
func (x *Index) stateFor(r table.Row, was State, found *Answers, i int) (State, bool) {
	switch filter := found.Filter[i]; {
	case filter == Feasible && !x.Grouped:
		return 0, true
	case filter == Feasible:
		g, score := x.groupFor(r, was), found.Score[i]
		return stateOf(g, int32(score)), g != none && score >= 0
	case filter == NoNode:
		return vacant, true
	default:
		return rejected(x.causes.id(Cause{filter, found.Verdict[i]})), true
	}
}

// keepScore stores the score of a row of an index without groups, and counts it if it is
// out of range.
func (x *Index) keepScore(r table.Row, was, now State, score int64) {
	if was.feasible() && x.scores[r] < 0 {
		x.OutOfRange--
	}
	if x.scores[r] = score; now.feasible() && score < 0 {
		x.OutOfRange++
	}
}

// leave takes a row out of the counts.
func (x *Index) leave(was State) {
	switch {
	case was == vacant:
	case !was.feasible():
		x.causes.rows[was.cause()]--
	default:
		x.Feasible--
		if x.Grouped {
			x.counted = x.groups[was>>scoreBits].remove(was.score())
		}
	}
}

// join adds a row to the counts.
func (x *Index) join(r table.Row, now State) {
	switch {
	case now == vacant:
	case !now.feasible():
		x.causes.rows[now.cause()]++
	default:
		x.Feasible++
		if x.Grouped {
			x.addRow(int32(now>>scoreBits), now.score(), r)
		}
	}
}

// IsFeasible reports whether no filter rejects the row.
func (x *Index) IsFeasible(r table.Row) bool { return x.states[r].feasible() }

// FeasibleRows returns the feasible rows, in order, each with the index of its group
// among the Groups; 0 if the index is not Grouped.
func (x *Index) FeasibleRows() iter.Seq2[table.Row, int] {
	return func(yield func(table.Row, int) bool) {
		for r, s := range x.states {
			if s.feasible() && !yield(table.Row(r), int(s>>scoreBits)) {
				return
			}
		}
	}
}

// AppendFeasible appends the feasible rows, in order. It does not branch on the state of
// a row, which is unpredictable.
func (x *Index) AppendFeasible(rows []table.Row) []table.Row {
	n := len(rows)
	rows = slices.Grow(rows, len(x.states))[:n+len(x.states)]
	for r, s := range x.states {
		rows[n] = table.Row(r) // #nosec G115 -- rows are numbered so
		n += 1 + int(s>>31)
	}
	return rows[:n]
}

// Score returns the score of a feasible row.
func (x *Index) Score(r table.Row) int64 {
	if !x.Grouped {
		return x.scores[r]
	}
	return int64(x.states[r].score())
}

// Cause returns why no pod may go to the row. Its Filter is Feasible or NoNode where no
// filter rejects the row.
func (x *Index) Cause(r table.Row) Cause {
	return causeOf(x.states[r], &x.causes)
}

func causeOf(s State, causes *causes) Cause {
	switch {
	case s.feasible():
		return Cause{Filter: Feasible}
	case s == vacant:
		return Cause{Filter: NoNode}
	default:
		return causes.list[s.cause()]
	}
}

// Rejections calls visit for each cause that rejects rows, with their number and the
// first of them. It stops once it has found one row a cause.
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
		if s.feasible() || s == vacant || seen[s.cause()] {
			continue
		}
		id := s.cause()
		seen[id] = true
		left--
		visit(x.causes.list[id], x.causes.rows[id], table.Row(r))
	}
}

// AddRejected adds to the set the rows that are rejected for a wanted cause. It calls
// wanted once a cause, with some row that has it, and does not branch on the state of a
// row.
func (x *Index) AddRejected(set table.RowSet, wanted func(Cause, table.Row) bool) {
	const asked, yes = 2, 1
	known := make([]uint8, 2+len(x.causes.list)) // by the state's negative
	known[0], known[-vacant] = asked, asked
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

// Causes returns the causes for which rows are rejected, each with the number of rows.
func (x *Index) Causes() iter.Seq2[Cause, int] {
	return func(yield func(Cause, int) bool) {
		for id, n := range x.causes.rows {
			if n > 0 && !yield(x.causes.list[id], n) {
				return
			}
		}
	}
}
