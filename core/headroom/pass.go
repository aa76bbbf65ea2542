package headroom

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/sums"
)

// Form says how a score follows from CPU and memory.
type Form uint8

const (
	Other          Form = iota // in a way that a pass does not know
	LeastAllocated             // what is left with the pod, CPU and memory of equal weight
	Balanced                   // how even the use of CPU and memory is with the pod
)

// Score is the score of a plugin as data: its form, and what the pod takes.
type Score struct {
	Form    Form
	Amounts Amounts
}

// Pass evaluates CPU and memory for one class of pods, filter and both scores in one loop
// over rows (AddMask, AddRows). It serves profiles whose three plugins ask for no more than
// that. Each plugin joins with its rule as data; the loop can run once the pass is Complete.
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

// JoinFilter adds a filter that compares the sums, if they are those of one pod, of CPU and
// of memory. It returns false otherwise, and for a second filter.
func (p *Pass) JoinFilter(list []sums.Sum) bool {
	if len(list) != 3 || list[0].Name != v1.ResourcePods || list[1].Name != v1.ResourceCPU || list[2].Name != v1.ResourceMemory || !p.join(fits) {
		return false
	}
	p.fit = Of(list[1].Request, list[2].Request)
	return true
}

// JoinScore adds a score with its weight. It returns false if the form is Other, or another plugin's.
func (p *Pass) JoinScore(s Score, weight int64) bool {
	switch {
	case s.Form == LeastAllocated && p.join(leastAllocated):
		p.least, p.leastWeight = s.Amounts, weight
	case s.Form == Balanced && p.join(balanced):
		p.even, p.evenWeight = s.Amounts, weight
	default:
		return false
	}
	return true
}

// join returns false if another plugin does that part.
func (p *Pass) join(part int) bool {
	joins := p.joined&part == 0
	p.joined |= part
	return joins
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
