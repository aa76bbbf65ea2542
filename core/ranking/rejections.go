package ranking

import (
	"math/bits"

	"github.com/berth-scheduler/berth/core/table"
)

// Rejections says of each row whether it is rejected by what classes share, before
// their own plugins are asked, and why. An index begins with it (Begin).
type Rejections struct {
	states []rowState // 0 where the row is not rejected
	causes causes
}

// Resize makes room for n rows; new ones are vacant.
func (x *Rejections) Resize(n int) {
	for r := len(x.states); r < n; r++ {
		x.states = append(x.states, vacant)
	}
}

// Reset forgets all: there are no nodes.
func (x *Rejections) Reset() {
	x.causes.reset()
	vacate(x.states)
}

// Reject notes that the row is rejected.
func (x *Rejections) Reject(r table.Row, c Cause) { x.states[r] = rejected(x.causes.id(c)) }

// RejectAll notes that all rows of the set are rejected.
func (x *Rejections) RejectAll(rows table.RowSet, c Cause) {
	state := rejected(x.causes.id(c))
	for i, word := range rows {
		for ; word != 0; word &= word - 1 {
			x.states[i<<6+bits.TrailingZeros64(word)] = state
		}
	}
}

// Admit notes that the row is not rejected, Vacate that it has no node.
func (x *Rejections) Admit(r table.Row)  { x.states[r] = 0 }
func (x *Rejections) Vacate(r table.Row) { x.states[r] = vacant }

// AdmitAll is Admit for rows.
func (x *Rejections) AdmitAll(rows []table.Row) {
	for _, r := range rows {
		x.Admit(r)
	}
}

// Cause is why the row is rejected. Its Filter is Feasible or NoNode where it is not.
func (x *Rejections) Cause(r table.Row) Cause {
	switch s := x.states[r]; s {
	case 0:
		return Cause{Filter: Feasible}
	case vacant:
		return Cause{Filter: NoNode}
	default:
		return x.causes.list[s.cause()]
	}
}

// Full tells that there are so many causes that some may be of the past: Reset is to
// follow.
func (x *Rejections) Full() bool { return len(x.causes.list) > (64+len(x.states))/2 }

// Begin is Reset with rows rejected, or without a node. The others are to be updated.
func (x *Index) Begin(with *Rejections) {
	if x.Grouped && x.shape.Shared.Full {
		x.ungroup()
	}
	x.forget()
	vacate(x.states[copy(x.states, with.states):])
	x.causes.copy(&with.causes)
}
