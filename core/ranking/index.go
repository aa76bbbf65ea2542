package ranking

import (
	"maps"

	"github.com/berth-scheduler/berth/core/table"
)

// rowState is what the index has of one row, in one number: few bytes are read
// and written with each change. A negative state is a cause. Any other holds the
// row's group and, in the bits below, its score.
type rowState int32

// vacant: there is no node. The states below stand for causes.
const vacant rowState = -1

func rejected(cause int32) rowState { return -2 - rowState(cause) }
func (s rowState) cause() int32     { return int32(-2 - s) }
func (s rowState) feasible() bool   { return s >= 0 }

// maxScore bounds the scores of an index with groups: a group has a count for
// each score.
const maxScore = 1 << 12

// Shape says what an index is to hold.
type Shape struct {
	// Shared are the values that classes share, as combinations.
	Shared *Combinations
	// Own is the number of values besides; each has a column of the index.
	Own int
	// Highest is the highest score that a row can have.
	Highest int64
	// Brief: the index is asked a time or two and then given up. It counts the best
	// rows of a group alone, which is done sooner. Where these are gone it looks at
	// all rows again.
	Brief bool
}

// Index ranks the rows of a table for one class of pods. It belongs to the
// owner of the class.
type Index struct {
	states []rowState // by row
	causes causes

	// Feasible is the number of feasible rows.
	Feasible int
	// OutOfRange is the number of feasible rows with a negative score.
	OutOfRange int

	shape  Shape
	own    [][]int64 // columns of own values
	groups []Group
	byKey  map[groupKey]int32
	bits   uint // of a rowState, that hold the score
	// counted: all counts agree with the states. While they do not, Update writes
	// states alone, and Count is to follow.
	counted bool

	// ungrouped: there are no groups. A feasible row has state 0, and its score is
	// in scores.
	ungrouped bool
	scores    []int64
}

// Answers are what was found out about a list of rows, by place in the list.
type Answers struct {
	// Filter is the first filter that rejects the row, from 1, or Feasible, or
	// NoNode. Verdict is the filter's.
	Filter  []int16
	Verdict []uint64
	// Score of a feasible row; a negative one is out of range.
	Score []int64
}

// New returns an index. It takes the room of an old one that nobody uses any more
// (nil: there is none). Nothing is known of the rows: Begin or BeginWith is to follow.
func New(shape Shape, old *Index) *Index {
	x := &Index{shape: shape, own: make([][]int64, shape.Own)}
	if old != nil {
		x.states, x.groups, x.causes, x.byKey, x.scores = old.states, old.groups, old.causes, old.byKey, old.scores
		copy(x.own, old.own)
	}
	for x.bits = 1; shape.Highest >= 1<<x.bits; x.bits++ {
	}
	x.ungrouped = shape.Own > maxValues || shape.Highest >= maxScore
	return x
}

// Grouped tells whether the index has groups.
func (x *Index) Grouped() bool { return !x.ungrouped }

// Ungroup gives up groups, for good. All rows are then to be updated anew.
func (x *Index) Ungroup() {
	x.ungrouped = true
	x.scores = extend(x.scores, len(x.states))
}

// Resize makes room for n rows; new ones are vacant.
func (x *Index) Resize(n int) {
	for r := len(x.states); r < n; r++ {
		x.states = append(x.states, vacant)
	}
	if x.ungrouped {
		x.scores = extend(x.scores, n)
	}
	for k := range x.own {
		x.own[k] = extend(x.own[k], n)
	}
}

// Rows is the number of rows.
func (x *Index) Rows() int { return len(x.states) }

// Column is the column of an own value. A row's entry is to be written before the
// row is updated.
func (x *Index) Column(k int) []int64 { return x.own[k] }

// Begin forgets all rows. Each is then to be updated once, up to Count.
func (x *Index) Begin() {
	if x.shape.Own > 0 || x.ungrouped { // else no state is read before it is written
		for r := range x.states {
			x.states[r] = vacant
		}
	}
	x.reset()
	x.counted = false
}

// BeginWith makes these rows vacant. They alone are to be updated and asked about;
// what the index says of others means nothing. It has no groups then.
func (x *Index) BeginWith(rows []table.Row) {
	x.Ungroup()
	for _, r := range rows {
		x.states[r] = vacant
	}
	x.reset()
	x.counted = true
}

func (x *Index) reset() {
	x.causes.reset()
	x.Feasible, x.OutOfRange = 0, 0
	x.groups = x.groups[:0]
	clear(x.byKey)
}

// Update notes what was found out about the rows. It returns false where it
// cannot: there are too many groups or causes, or a score is out of range. All
// rows are then to be updated anew, without groups. Count is to follow before the
// index is asked anything.
func (x *Index) Update(rows []table.Row, found *Answers) bool {
	if !x.ungrouped && x.shape.Own == 0 {
		if x.addCombinations(); !x.counted {
			return x.fill(rows, found)
		}
	}
	var before, after [block]rowState
	for from := 0; from < len(rows); from += block {
		some := rows[from:min(from+block, len(rows))]
		were, are := before[:len(some)], after[:len(some)]
		for i, r := range some { // all are asked of the memory before the first is needed
			were[i] = x.states[r]
		}
		if !x.statesFor(some, found, from, were, are) {
			return false
		}
		if x.ungrouped {
			for i, r := range some {
				x.keepScore(r, were[i], are[i], found.Score[from+i])
			}
		}
		x.move(some, were, are)
	}
	return len(x.causes.list) <= 64+len(x.states)
}

// fill is Update for rows that are not counted yet, and whose groups are the shared
// combinations.
func (x *Index) fill(rows []table.Row, found *Answers) bool {
	groups, bits, signs := x.shape.Shared.of, x.bits&31, int64(0)
	for i, r := range rows {
		if found.Filter[i] == Feasible {
			score := found.Score[i]
			signs |= score
			x.states[r] = rowState(groups[r])<<bits | rowState(score)
			continue
		}
		x.states[r], _ = x.stateFor(r, vacant, found, i)
	}
	return signs >= 0 // no score is negative
}

// move gives rows their new states.
func (x *Index) move(rows []table.Row, were, are []rowState) {
	for i, r := range rows {
		if !x.counted {
			x.states[r] = are[i]
		} else if were[i] != are[i] {
			x.states[r] = are[i]
			x.leave(were[i])
			x.join(r, are[i])
		}
	}
}

// block is how many rows Update takes at a time.
const block = 64

// statesFor finds the new states of rows, whose answers stand from there on in what
// was found out; false where one has none.
func (x *Index) statesFor(rows []table.Row, found *Answers, from int, were, are []rowState) bool {
	filters, scores := found.Filter[from:][:len(are)], found.Score[from:][:len(are)]
	quick := !x.ungrouped && x.shape.Own == 0
	groups, bits, signs := x.shape.sharedGroups(), x.bits&31, int64(0)
	for i, r := range rows {
		if quick && filters[i] == Feasible {
			are[i] = rowState(groups[r])<<bits | rowState(scores[i])
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

// stateFor is the state of the row that stands at i in what was found out; false
// where there is none.
func (x *Index) stateFor(r table.Row, was rowState, found *Answers, i int) (rowState, bool) {
	switch filter := found.Filter[i]; {
	case filter == Feasible && x.ungrouped:
		return 0, true
	case filter == Feasible:
		g, score := x.groupFor(r, was), found.Score[i]
		return x.stateOf(g, int32(score)), g != none && score >= 0
	case filter == NoNode:
		return vacant, true
	default:
		return rejected(x.causes.id(Cause{filter, found.Verdict[i]})), true
	}
}

// keepScore keeps the score of a row that is in no group.
func (x *Index) keepScore(r table.Row, was, now rowState, score int64) {
	if was.feasible() && x.scores[r] < 0 {
		x.OutOfRange--
	}
	if x.scores[r] = score; now.feasible() && score < 0 {
		x.OutOfRange++
	}
}

// leave takes a row out of the counts.
func (x *Index) leave(was rowState) {
	switch {
	case was == vacant:
	case !was.feasible():
		x.causes.rows[was.cause()]--
	default:
		x.Feasible--
		if !x.ungrouped {
			x.counted = x.groups[was>>x.bits].remove(x.scoreOf(was))
		}
	}
}

// join adds a row to the counts.
func (x *Index) join(r table.Row, now rowState) {
	switch {
	case now == vacant:
	case !now.feasible():
		x.causes.rows[now.cause()]++
	default:
		x.Feasible++
		if !x.ungrouped {
			x.addRow(int32(now>>x.bits), x.scoreOf(now), r)
		}
	}
}

func (x *Index) stateOf(group, score int32) rowState {
	return rowState(group)<<x.bits | rowState(score)
}

func (x *Index) scoreOf(s rowState) int32 { return int32(s) & (1<<x.bits - 1) }

// IsFeasible tells whether no filter rejects the row.
func (x *Index) IsFeasible(r table.Row) bool { return x.states[r].feasible() }

// IsRejected tells whether a filter rejects the row.
func (x *Index) IsRejected(r table.Row) bool { return x.states[r] < vacant }

// AppendFeasible appends the feasible rows, in order.
func (x *Index) AppendFeasible(list []table.Row) []table.Row {
	for r, s := range x.states {
		if s.feasible() {
			list = append(list, table.Row(r))
		}
	}
	return list
}

// Score is the score of a feasible row.
func (x *Index) Score(r table.Row) int64 {
	if x.ungrouped {
		return x.scores[r]
	}
	return int64(x.scoreOf(x.states[r]))
}

// Cause is why no pod may go to the row. Its Filter is Feasible or NoNode where no
// filter rejects the row.
func (x *Index) Cause(r table.Row) Cause {
	switch s := x.states[r]; {
	case s.feasible():
		return Cause{Filter: Feasible}
	case s == vacant:
		return Cause{Filter: NoNode}
	default:
		return x.causes.list[s.cause()]
	}
}

// Causes counts the rejected rows by cause.
func (x *Index) Causes() map[Cause]int {
	counts := map[Cause]int{}
	for id, n := range x.causes.rows {
		if n > 0 {
			counts[x.causes.list[id]] = n
		}
	}
	return counts
}

// HasCause tells whether some row is rejected for a cause that is so.
func (x *Index) HasCause(is func(Cause) bool) bool {
	for id, n := range x.causes.rows {
		if n > 0 && is(x.causes.list[id]) {
			return true
		}
	}
	return false
}

// Equal tells whether two indexes count the same.
func (x *Index) Equal(y *Index) bool {
	return x.Feasible == y.Feasible && x.OutOfRange == y.OutOfRange && maps.Equal(x.Causes(), y.Causes())
}
