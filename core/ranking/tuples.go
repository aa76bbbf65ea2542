package ranking

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
