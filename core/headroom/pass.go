package headroom

// Pass evaluates CPU and memory for one class of pods, filter and both scores in one loop
// over rows (AddMask, AddRows). It serves profiles whose three plugins ask for no more than
// that. Each plugin joins; the loop can run once the pass is Complete.
type Pass struct {
	fit, least, even        Amounts
	leastWeight, evenWeight int64
	joined                  int
	watchers                []Watcher
}

// What there is to join.
const (
	fits = 1 << iota
	leastAllocated
	balanced
	all = 1<<iota - 1
)

// JoinFit makes the pass require the amounts, both positive, to be free.
func (p *Pass) JoinFit(a Amounts) {
	p.fit = a
	p.joined |= fits
}

// JoinLeastAllocated makes the pass score what is left after the amounts, with CPU and
// memory of equal weight.
func (p *Pass) JoinLeastAllocated(a Amounts, weight int64) {
	p.least, p.leastWeight = a, weight
	p.joined |= leastAllocated
}

// JoinBalanced makes the pass score how even the use of CPU and memory is with the
// amounts.
func (p *Pass) JoinBalanced(a Amounts, weight int64) {
	p.even, p.evenWeight = a, weight
	p.joined |= balanced
}

// Complete reports whether all have joined, and count the pod's requests alike.
func (p *Pass) Complete() bool { return p.joined == all && p.fit == p.least && p.least == p.even }

// Watch adds a watcher of a plugin that joins.
func (p *Pass) Watch(w Watcher) { p.watchers = append(p.watchers, w) }

// Watcher watches one plugin. Both functions may be called concurrently.
type Watcher struct {
	// Apart reports whether the plugin is to be asked by itself now, to be timed.
	Apart func() bool
	// Seen is called with the number of rows that the loop evaluated for the plugin.
	Seen func(rows int)
}

// apart reports whether one of the plugins is to be asked by itself now.
func (p *Pass) apart() bool {
	for _, w := range p.watchers {
		if w.Apart() {
			return true
		}
	}
	return false
}
