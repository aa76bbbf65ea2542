package headroom

import (
	"math"

	"github.com/berth-scheduler/berth/core/table"
)

// Pass is what a profile asks about CPU and memory for one class of pods, where it asks
// no more of both plugins. Each joins it; once it is Complete the loop can run.
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

// JoinFit has the amounts found free, both of which are positive.
func (p *Pass) JoinFit(a Amounts) {
	p.fit = a
	p.joined |= fits
}

// JoinLeastAllocated has what is left with the amounts rated, CPU and memory alike.
func (p *Pass) JoinLeastAllocated(a Amounts, weight int64) {
	p.least, p.leastWeight = a, weight
	p.joined |= leastAllocated
}

// JoinBalanced has the evenness with the amounts rated.
func (p *Pass) JoinBalanced(a Amounts, weight int64) {
	p.even, p.evenWeight = a, weight
	p.joined |= balanced
}

// Complete tells whether all have joined.
func (p *Pass) Complete() bool { return p.joined == all }

// Watch adds a watcher of a plugin that joins.
func (p *Pass) Watch(w Watcher) { p.watchers = append(p.watchers, w) }

// Watcher watches one plugin. Both functions may be called concurrently.
type Watcher struct {
	// Apart tells whether the plugin is to be asked by itself now, to be timed.
	Apart func() bool
	// Seen is told how many rows the loop looked at for the plugin.
	Seen func(rows int)
}

// Add adds the weighted scores of the rows to their sums. It leaves out rows that may
// not have room for the pod and rows out of the ordinary; all rows, where a plugin is to
// be asked by itself. It writes to left, which is as long as rows, where in the list they
// stand, and returns how many they are.
func (p *Pass) Add(t *table.Table, rows []table.Row, sums []int64, left []int32) int {
	if p.apart() {
		return leaveAll(left)
	}
	return addWhole(p, t, rows, sums, left, p.addOrdinary(t, rows, sums, left))
}

// Sum is something that the scores of a row are added to.
type Sum interface{ ~int32 | ~int64 }

// addWhole adds the scores of those of the n rows left whose distance is next to a whole
// number, and tells the watchers.
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

// apart tells whether a plugin is to be asked by itself.
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

// addOrdinary is Add, except that it leaves out rows whose distance is next to a whole
// number, too. Of these the complement of the place is in the list. It calls nothing,
// which keeps what the loop needs in registers.
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
