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

	shape   Shape
	own     [][]int64 // columns of own values
	groups  []Group
	byKey   map[groupKey]int32
	bits    uint // of a rowState, that hold the score
	filling bool // between Begin and End, rows are counted by score alone

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

// Begin makes every row vacant. Each row is then to be updated once, up to End.
func (x *Index) Begin() {
	for r := range x.states {
		x.states[r] = vacant
	}
	x.reset()
	x.filling = !x.ungrouped && x.shape.Own == 0
}

// BeginWith makes these rows vacant. They alone are to be updated and asked about;
// what the index says of others means nothing. It has no groups then.
func (x *Index) BeginWith(rows []table.Row) {
	x.Ungroup()
	for _, r := range rows {
		x.states[r] = vacant
	}
	x.reset()
}

func (x *Index) reset() {
	x.causes.reset()
	x.Feasible, x.OutOfRange = 0, 0
	x.groups = x.groups[:0]
	clear(x.byKey)
}

// Update notes what was found out about the rows. It returns false where it
// cannot: there are too many groups or causes, or a score is out of range. All
// rows are then to be updated anew, without groups.
func (x *Index) Update(rows []table.Row, found *Answers) bool {
	if x.filling {
		return x.fill(rows, found)
	}
	if !x.ungrouped && x.shape.Own == 0 {
		x.addCombinations()
	}
	for i, r := range rows {
		was, now := x.states[r], vacant
		switch filter := found.Filter[i]; {
		case filter == NoNode:
		case filter != Feasible:
			now = rejected(x.causes.id(Cause{filter, found.Verdict[i]}))
		case x.ungrouped:
			now = 0
		default:
			g := x.groupFor(r, was)
			if g == none || found.Score[i] < 0 {
				return false
			}
			now = x.stateOf(g, int32(found.Score[i]))
		}
		if x.ungrouped {
			x.keepScore(r, was, now, found.Score[i])
		}
		if was != now {
			x.leave(was)
			x.join(r, now)
			x.states[r] = now
		}
	}
	return len(x.causes.list) <= 64+len(x.states)
}

// fill is Update for vacant rows whose groups are the shared combinations. It
// counts the rows of a group by score alone; End adds up.
func (x *Index) fill(rows []table.Row, found *Answers) bool {
	x.addCombinations()
	for i, r := range rows {
		switch filter := found.Filter[i]; {
		case filter == Feasible:
			g, score := x.shape.Shared.of[r], found.Score[i]
			if score < 0 {
				return false
			}
			x.groups[g].byScore[score]++
			x.states[r] = x.stateOf(g, int32(score))
		case filter != NoNode:
			cause := x.causes.id(Cause{filter, found.Verdict[i]})
			x.causes.rows[cause]++
			x.states[r] = rejected(cause)
		}
	}
	return true
}

// End ends what Begin began, once every row is updated.
func (x *Index) End() {
	if !x.filling {
		return
	}
	x.filling = false
	for id := range x.groups {
		g := &x.groups[id]
		for score, n := range g.byScore {
			if n > 0 {
				g.Rows += int(n)
				g.top = int32(score)
			}
		}
		x.Feasible += g.Rows
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
			x.groups[was>>x.bits].remove(x.scoreOf(was))
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
