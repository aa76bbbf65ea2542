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

// rejected reports whether a filter rejected the row, so that the state is a cause. A closed
// row is not.
func (s State) rejected() bool { return s < open }

func stateOf(group, score int32) State {
	return State(group)<<scoreBits | State(score)
}

func (s State) score() int32 { return int32(s) & (1<<scoreBits - 1) }

// Cause is the reason for which a row is rejected: the first filter that rejects it, and
// its verdict. Filters are numbered from 1.
type Cause struct {
	Filter  int16
	Verdict uint64
}

// Rejects reports whether a filter rejects the row.
func (c Cause) Rejects() bool { return c.Filter > Feasible }

// What stands for a filter where no Update named one: the row is feasible, or closed.
const (
	Feasible int16 = 0
	Closed   int16 = -1
)

// causes numbers the causes, and counts the rows of each.
type causes struct {
	ids  map[Cause]int32
	list []Cause
	rows []int
	// recent holds numbers of recent causes, by hash. Most rows are rejected for one of a
	// few causes.
	recent [recentCauses]int32
	last   int32 // the number found last; neighbours often have the same cause
}

const recentCauses = 64

// id finds or makes the number of a cause.
func (c *causes) id(k Cause) int32 {
	if int(c.last) < len(c.list) && c.list[c.last] == k {
		return c.last
	}
	c.last = c.find(k)
	return c.last
}

func (c *causes) find(k Cause) int32 {
	recent := &c.recent[mix(uint64(k.Filter), k.Verdict^k.Verdict>>57)%recentCauses]
	if int(*recent) < len(c.list) && c.list[*recent] == k {
		return *recent
	}
	id, known := c.ids[k]
	if !known {
		if c.ids == nil {
			c.ids = map[Cause]int32{}
		}
		id = int32(len(c.list))
		c.ids[k], c.list, c.rows = id, append(c.list, k), append(c.rows, 0)
	}
	*recent = id
	return id
}

func (c *causes) reset() {
	clear(c.ids)
	c.list, c.rows = c.list[:0], c.rows[:0]
}

// places maps tuples of values to their numbers in a list of the caller, by hash, with
// open addressing. It is asked about every row of a new view, where a Go map takes three
// times as long.
type places struct {
	slots []int32 // numbers plus 1; 0: empty. Their count is a power of two
	used  int
}

// reset removes all entries and keeps the memory.
func (p *places) reset() {
	if p.used > 0 {
		clear(p.slots)
		p.used = 0
	}
}

// mix adds a value to a hash.
func mix(hash, value uint64) uint64 {
	const odd = 0x9E3779B97F4A7C15 // spreads neighbours
	hash = (hash ^ value) * odd
	return hash ^ hash>>32
}

// start returns the slot at which the search for a hash begins.
func (p *places) start(hash uint64) uint64 { return hash & uint64(len(p.slots)-1) }

// find returns the number with the hash for which same holds; false where there is none.
func (p *places) find(hash uint64, same func(n int32) bool) (n int32, known bool) {
	if len(p.slots) == 0 {
		return 0, false
	}
	for at := p.start(hash); ; at = (at + 1) & uint64(len(p.slots)-1) {
		switch n := p.slots[at] - 1; {
		case n < 0:
			return 0, false
		case same(n):
			return n, true
		}
	}
}

// add adds a number that find did not find. hashOf returns the hash of a number.
func (p *places) add(n int32, hash uint64, hashOf func(n int32) uint64) {
	if p.used++; 2*p.used > len(p.slots) {
		p.grow(hashOf)
	}
	p.put(n, hash)
}

func (p *places) put(n int32, hash uint64) {
	at := p.start(hash)
	for p.slots[at] != 0 {
		at = (at + 1) & uint64(len(p.slots)-1)
	}
	p.slots[at] = n + 1
}

func (p *places) grow(hashOf func(n int32) uint64) {
	old := p.slots
	p.slots = make([]int32, max(64, 2*len(old)))
	for _, n := range old {
		if n != 0 {
			p.put(n-1, hashOf(n-1))
		}
	}
}
