package ranking

// State is what the index keeps of one row, in one number, so that a change reads and
// writes few bytes. A negative state is a cause. Any other holds the row's group and, in
// the bits below, its score: adding to the state adds to the score.
type State int32

// scoreBits of a state hold the score.
const scoreBits = 12

// A closed row is rejected for a reason that the caller knows, or has no node. An open
// row waits for its first Update. The states below stand for causes.
const (
	closed State = -1
	open   State = -2
)

func rejected(cause int32) State { return -3 - State(cause) }

// closeAll makes all rows closed, many at a time.
func closeAll(states []State) {
	for n := copy(states, []State{closed}); n < len(states); n *= 2 {
		copy(states[n:], states[:n])
	}
}

func (s State) cause() int32 { return int32(-3 - s) }

func (s State) feasible() bool { return s >= 0 }

func (s State) rejected() bool { return s < open }

func stateOf(group, score int32) State {
	return State(group)<<scoreBits | State(score)
}

func (s State) score() int32 { return int32(s) & (1<<scoreBits - 1) }
