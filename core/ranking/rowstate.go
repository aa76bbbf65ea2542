package ranking

// State is what the index keeps of one row. A state from 0 on is feasible: it holds the
// row's bucket and, in the low scoreBits, its score, so that adding to the state adds to the
// score. A negative state is closed, open, or a cause of rejection.
type State int32

// scoreBits is the number of low bits of a feasible row's State that hold its score; the
// bits above hold its bucket.
const scoreBits = 12

// A closed row is rejected for a reason that the caller knows, or has no node. An open
// row waits for its first Update. The states below stand for causes.
const (
	closed State = -1
	open   State = -2
)

// rejected returns the State of a row that a filter rejects. cause is the number of the
// reason in causes.
func rejected(cause int32) State { return -3 - State(cause) }

// closeAll sets all states to closed.
func closeAll(states []State) {
	for n := copy(states, []State{closed}); n < len(states); n *= 2 {
		copy(states[n:], states[:n])
	}
}

// cause returns the number of the cause of a rejected row.
func (s State) cause() int32 { return int32(-3 - s) }

// feasible reports whether the state is that of a feasible row.
func (s State) feasible() bool { return s >= 0 }

// rejected reports whether a filter rejected the row, so that the state has a cause. A
// closed or open row is not rejected.
func (s State) rejected() bool { return s < open }

// stateOf returns the State of a feasible row with that score, in the bucket with that
// index.
func stateOf(bucket, score int32) State {
	return State(bucket)<<scoreBits | State(score)
}

// score returns the score that a feasible row has in its State, without the bonus of its
// bucket. It holds only while the index has buckets.
func (s State) score() int32 { return int32(s) & (1<<scoreBits - 1) }

// Cause is the reason for which a row is rejected: the number of the first filter that
// rejects it, from 1, and that filter's verdict. Filter may also be Feasible or Closed.
type Cause struct {
	Filter  int16
	Verdict uint64
}

// Rejects reports whether a filter rejects the row; false for Feasible, Closed and the zero
// Cause.
func (c Cause) Rejects() bool { return c.Filter > Feasible }

// Values of Cause.Filter where no filter rejects: the row is feasible, or closed.
const (
	Feasible int16 = 0
	Closed   int16 = -1
)

// causes numbers the reasons (filter and verdict) for which rows of an index are rejected,
// so that a State can hold one, and counts the rows of each.
type causes struct {
	ids  map[Cause]int32 // number of each cause
	list []Cause         // by number
	rows []int           // number of rows, by number of the cause
	// recent holds numbers of recent causes, by hash. Most rows are rejected for one of a
	// few causes.
	recent [recentCauses]int32
	last   int32 // the number found last; neighbours often have the same cause
}

// recentCauses is the size of the cache in front of the map of causes, which spares most
// look-ups in the map.
const recentCauses = 64

// id returns the number of a cause, for the State of a row that is rejected for it; a new
// number if it has none.
func (c *causes) id(k Cause) int32 {
	if int(c.last) < len(c.list) && c.list[c.last] == k {
		return c.last
	}
	c.last = c.find(k)
	return c.last
}

// find returns the number of the cause k from the cache or the map, a new number if it has none.
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

// reset removes all causes, as the index begins anew, and keeps the memory.
func (c *causes) reset() {
	clear(c.ids)
	c.list, c.rows = c.list[:0], c.rows[:0]
}

// places maps tuples of values to their indexes in a list that the caller keeps: a hash
// table with open addressing. It is used for every row of a new view, where a Go map takes
// three times as long.
type places struct {
	slots []int32 // indexes plus 1; 0: empty. The length is a power of two
	used  int     // slots that are not empty
}

// reset removes all entries and keeps the memory.
func (p *places) reset() {
	if p.used > 0 {
		clear(p.slots)
		p.used = 0
	}
}

// mix returns the hash of a sequence whose hash was hash, with one more value.
func mix(hash, value uint64) uint64 {
	const odd = 0x9E3779B97F4A7C15 // spreads neighbours
	hash = (hash ^ value) * odd
	return hash ^ hash>>32
}

// start returns the slot at which the search for a hash begins.
func (p *places) start(hash uint64) uint64 { return hash & uint64(len(p.slots)-1) }

// find returns the index with that hash for which same is true; false if there is none.
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

// add adds index n, which find did not find, under its hash. hashOf returns the hash of any
// index and is used to grow.
func (p *places) add(n int32, hash uint64, hashOf func(n int32) uint64) {
	if p.used++; 2*p.used > len(p.slots) {
		p.grow(hashOf)
	}
	p.put(n, hash)
}

// put writes index n to the next empty slot for the hash.
func (p *places) put(n int32, hash uint64) {
	at := p.start(hash)
	for p.slots[at] != 0 {
		at = (at + 1) & uint64(len(p.slots)-1)
	}
	p.slots[at] = n + 1
}

// grow doubles the slots and puts all indexes in again.
func (p *places) grow(hashOf func(n int32) uint64) {
	old := p.slots
	p.slots = make([]int32, max(64, 2*len(old)))
	for _, n := range old {
		if n != 0 {
			p.put(n-1, hashOf(n-1))
		}
	}
}
