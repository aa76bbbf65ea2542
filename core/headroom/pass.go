package headroom

import (
	"math"

	"github.com/berth-scheduler/berth/core/table"
)

// Pass evaluates CPU and memory for one class of pods, filter and both scores in one loop
// over the rows. It serves profiles whose three plugins ask for no more than that. Each
// plugin joins; the loop can run once the pass is Complete.
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

// Complete reports whether all have joined.
func (p *Pass) Complete() bool { return p.joined == all }

// Watch adds a watcher of a plugin that joins.
func (p *Pass) Watch(w Watcher) { p.watchers = append(p.watchers, w) }

// Watcher watches one plugin. Both functions may be called concurrently.
type Watcher struct {
	// Apart reports whether the plugin is to be asked by itself now, to be timed.
	Apart func() bool
	// Seen is called with the number of rows that the loop evaluated for the plugin.
	Seen func(rows int)
}

// Add adds the weighted scores of the rows to their sums. It leaves out rows that may not
// fit the pod, or that a scorer's amounts overfill; all rows, if a plugin is to be asked
// by itself. It writes the indexes of rows left out to left, which is as long as rows,
// and returns their number.
func (p *Pass) Add(t *table.Table, rows []table.Row, sums []int64, left []int32) int {
	if p.apart() {
		return leaveAll(left)
	}
	return addWhole(p, t, rows, sums, left, p.addOrdinary(t, rows, sums, left))
}

// Sum is something that the scores of a row are added to.
type Sum interface{ ~int32 | ~int64 }

// addWhole scores the rows that the loop marked as next to a whole number, by exact
// arithmetic, and calls the watchers. left holds n indexes of rows; those of marked rows
// are complemented. It returns the number of rows that stay left out.
func addWhole[S Sum](p *Pass, t *table.Table, rows []table.Row, sums []S, left []int32, n int) int {
	kept := 0
	for _, at := range left[:n] {
		if at >= 0 {
			left[kept] = at
			kept++
			continue
		}
		i := ^at
		cpu, memory := p.least.LeastAllocated(&t.Headroom()[rows[i]])
		sums[i] += S(p.leastWeight*((cpu+memory)>>1) + p.evenWeight*p.even.Balanced(t, rows[i]))
	}
	for _, w := range p.watchers {
		w.Seen(len(rows) - kept)
	}
	return kept
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

func leaveAll(left []int32) int {
	for i := range left {
		left[i] = int32(i)
	}
	return len(left)
}

// addOrdinary is the loop of Add over scattered rows. It leaves out rows that may not
// fit, and marks rows whose distance is next to a whole number by the complement of their
// index in left. It calls nothing, which keeps the loop's values in registers.
func (p *Pass) addOrdinary(t *table.Table, rows []table.Row, sums []int64, left []int32) (n int) {
	column := t.Headroom()
	evenness := t.Evenness()[:len(column)]
	fit, least, even := p.fit, p.least, p.even
	leastWeight, evenWeight := p.leastWeight, p.evenWeight
	sums, left = sums[:len(rows)], left[:len(rows)]
	for i, r := range rows {
		h := &column[r]
		cpu, memory := h.CPU.FreeNonZero-least.CPU, h.Memory.FreeNonZero-least.Memory
		withCPU, withMemory := h.CPU.InUse+even.CPU*h.CPU.Inverse, h.Memory.InUse+even.Memory*h.Memory.Inverse
		if h.CPU.Free < fit.CPU || h.Memory.Free < fit.Memory || cpu < 0 || memory < 0 || withCPU > 1 || withMemory > 1 {
			left[n] = int32(i)
			n++
			continue
		}
		percent := int64((cpu*100+0.5)*h.CPU.Inverse) + int64((memory*100+0.5)*h.Memory.Inverse)
		distance := int64(math.Abs(withCPU-withMemory) * (50 * unit))
		if nearWhole(distance) {
			left[n] = ^int32(i)
			n++
			continue
		}
		sums[i] += leastWeight*(percent>>1) + evenWeight*Rating(evennessOf(distance), int64(evenness[r]))
	}
	return n
}
