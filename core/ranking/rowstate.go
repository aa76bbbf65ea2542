package ranking

// rowState is what the index has of one row, in one number: few bytes are read
// and written with each change. A negative state is a cause. Any other holds the
// row's group and, in the bits below, its score.
type rowState int32

// vacant: there is no node. The states below stand for causes.
const vacant rowState = -1

func rejected(cause int32) rowState { return -2 - rowState(cause) }

// vacate makes all rows vacant, many at a time.
func vacate(states []rowState) {
	for n := copy(states, []rowState{vacant}); n < len(states); n *= 2 {
		copy(states[n:], states[:n])
	}
}

func (s rowState) cause() int32 { return int32(-2 - s) }

func (s rowState) feasible() bool { return s >= 0 }

func (x *Index) stateOf(group, score int32) rowState {
	return rowState(group)<<x.bits | rowState(score)
}

func (x *Index) scoreOf(s rowState) int32 { return int32(s) & (1<<x.bits - 1) }
