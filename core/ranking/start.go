package ranking

import (
	"math/bits"

	"github.com/berth-scheduler/berth/core/table"
)

// Start holds what an index begins with (Index.Begin): the rows that shared answers
// reject, and why, before a class asks its own plugins. Other rows have their shared
// combination and score, if scores are shared.
type Start struct {
	states []State
	causes causes
	signs  int64 // negative where one of the scores was, since Reset
}

// Resize sets the number of rows to n, if that is more; new ones are vacant.
func (x *Start) Resize(n int) {
	for r := len(x.states); r < n; r++ {
		x.states = append(x.states, vacant)
	}
}

// Reset makes all rows vacant and removes all causes.
func (x *Start) Reset() {
	x.signs = 0
	x.causes.reset()
	vacate(x.states)
}

// Reject marks the row as rejected.
func (x *Start) Reject(r table.Row, c Cause) { x.states[r] = rejected(x.causes.id(c)) }

// RejectAll marks all rows of the set as rejected.
func (x *Start) RejectAll(rows table.RowSet, c Cause) {
	state := rejected(x.causes.id(c))
	for i, word := range rows {
		for ; word != 0; word &= word - 1 {
			x.states[i<<6+bits.TrailingZeros64(word)] = state
		}
	}
}

// Admit marks the row as feasible, without a combination or a score.
func (x *Start) Admit(r table.Row) { x.states[r] = 0 }

// Vacate marks the row as one without a node.
func (x *Start) Vacate(r table.Row) { x.states[r] = vacant }

// AdmitAll marks the rows as feasible, without combinations or scores.
func (x *Start) AdmitAll(rows []table.Row) {
	for _, r := range rows {
		x.Admit(r)
	}
}

// AdmitScored marks the row as feasible, with its combination of c and a score.
func (x *Start) AdmitScored(r table.Row, c *Combinations, score int64) {
	x.signs |= score
	x.states[r] = stateOf(c.of[r], int32(score)&(maxScore-1))
}

// Cause returns why the row is rejected. Its Filter is Feasible or NoNode where it is not.
func (x *Start) Cause(r table.Row) Cause {
	return causeOf(x.states[r], &x.causes)
}

// Full reports whether the table of causes is full. Some causes may be stale then; call
// Reset.
func (x *Start) Full() bool { return len(x.causes.list) > (64+len(x.states))/2 }

// Begin clears the index and takes over the states and causes of a Start. Rows that it
// does not reject must then be updated.
func (x *Index) Begin(with *Start) {
	if x.Grouped && x.shape.Shared.Full {
		x.ungroup()
	}
	x.forget()
	vacate(x.states[copy(x.states, with.states):])
	x.causes.copy(&with.causes)
}

// Addable reports whether a class may add its own scores to the states of a Start in
// place: the groups are the shared combinations alone, and no score is out of range.
func (x *Index) Addable(with *Start) bool {
	return x.Grouped && x.shape.Own == 0 && with.signs >= 0
}

// Begun returns the states of n rows from first on, for the caller to add scores to,
// between Begin and Count. None of the rows may be rejected. They need no Update.
func (x *Index) Begun(first table.Row, n int) []State {
	x.addCombinations()
	return x.states[first:][:n]
}
