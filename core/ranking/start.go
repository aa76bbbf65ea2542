package ranking

import (
	"math/bits"

	"github.com/berth-scheduler/berth/core/table"
)

// Start is what an index starts with (Begin): which rows are rejected by what classes
// share, before their own plugins are asked, and why. Of the other rows it has the
// combination and the score that classes share, where they share scores.
type Start struct {
	states []State
	causes causes
	signs  int64 // negative where one of the scores was, since Reset
}

// Resize makes room for n rows; new ones are vacant.
func (x *Start) Resize(n int) {
	for r := len(x.states); r < n; r++ {
		x.states = append(x.states, vacant)
	}
}

// Reset forgets all: there are no nodes.
func (x *Start) Reset() {
	x.signs = 0
	x.causes.reset()
	vacate(x.states)
}

// Reject notes that the row is rejected.
func (x *Start) Reject(r table.Row, c Cause) { x.states[r] = rejected(x.causes.id(c)) }

// RejectAll notes that all rows of the set are rejected.
func (x *Start) RejectAll(rows table.RowSet, c Cause) {
	state := rejected(x.causes.id(c))
	for i, word := range rows {
		for ; word != 0; word &= word - 1 {
			x.states[i<<6+bits.TrailingZeros64(word)] = state
		}
	}
}

// Admit notes that the row is not rejected, Vacate that it has no node.
func (x *Start) Admit(r table.Row)  { x.states[r] = 0 }
func (x *Start) Vacate(r table.Row) { x.states[r] = vacant }

// AdmitAll is Admit for rows.
func (x *Start) AdmitAll(rows []table.Row) {
	for _, r := range rows {
		x.Admit(r)
	}
}

// AdmitScored is Admit for a row with a combination of its own among these, and with a
// score.
func (x *Start) AdmitScored(r table.Row, c *Combinations, score int64) {
	x.signs |= score
	x.states[r] = stateOf(c.of[r], int32(score)&(maxScore-1))
}

// Cause is why the row is rejected. Its Filter is Feasible or NoNode where it is not.
func (x *Start) Cause(r table.Row) Cause {
	return causeOf(x.states[r], &x.causes)
}

// Full tells that there are so many causes that some may be of the past: Reset is to
// follow.
func (x *Start) Full() bool { return len(x.causes.list) > (64+len(x.states))/2 }

// Begin is Reset with rows rejected, or without a node. The others are to be updated.
func (x *Index) Begin(with *Start) {
	if x.Grouped && x.shape.Shared.Full {
		x.ungroup()
	}
	x.forget()
	vacate(x.states[copy(x.states, with.states):])
	x.causes.copy(&with.causes)
}

// Addable tells whether a class may add its own scores to the states that the index begins
// with: there are groups, none of them by values of its own, and no score is out of range.
func (x *Index) Addable(with *Start) bool {
	return x.Grouped && x.shape.Own == 0 && with.signs >= 0
}

// Begun are the states of n rows from first on, after Begin and before Count, to be added
// to. None of these rows is rejected. They need no Update.
func (x *Index) Begun(first table.Row, n int) []State {
	x.addCombinations()
	return x.states[first:][:n]
}
