package headroom

import (
	"math/bits"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// Form is the rule by which a plugin's score follows from a node's free CPU and memory. It
// tells a Pass whether and how it can compute the score.
type Form uint8

const (
	Other          Form = iota // a rule that a pass cannot compute
	LeastAllocated             // percent free with the pod, CPU and memory of equal weight
	Balanced                   // how even the use of CPU and memory is with the pod
)

// Score describes a plugin's score as data: its rule, and what the pod requests.
type Score struct {
	Form    Form
	Amounts Amounts
}

// Pass evaluates the filter and both scores on CPU and memory for one class of pods, in one
// loop over rows (AddMask, AddRows). It serves profiles whose three plugins look at nothing
// else. Each plugin joins with its rule as data; the loop may run once Complete.
type Pass struct {
	fit, least, even        Amounts   // what the filter and the two scores count of the pod
	leastWeight, evenWeight int64     // of the scores LeastAllocated and Balanced
	joined                  int       // a bit for each plugin that joined
	watchers                []Watcher // of the plugins that joined
}

// Bits of Pass.joined: the plugins that joined the pass, so that its loop computes what they
// would answer. They are the filter and the two scores.
const (
	fits = 1 << iota
	leastAllocated
	balanced
	all = 1<<iota - 1
)

// JoinFilter adds a filter to what the pass evaluates when it runs (see Complete). list must hold
// what the filter compares: exactly the number of pods, CPU and memory, in this order. JoinFilter
// returns false for any other list and for a second filter: ask that plugin itself.
func (p *Pass) JoinFilter(list []sums.Sum) bool {
	if len(list) != 3 || list[0].Name != v1.ResourcePods || list[1].Name != v1.ResourceCPU || list[2].Name != v1.ResourceMemory || !p.join(fits) {
		return false
	}
	p.fit = Of(list[1].Request, list[2].Request)
	return true
}

// JoinScore adds the score, times weight, to what the pass computes when it runs (see
// Complete). It returns false if the form is Other or a score of the form joined before:
// ask that plugin itself.
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

// join records that the plugin with the bit part joined. It returns false if it had already.
func (p *Pass) join(part int) bool {
	joins := p.joined&part == 0
	p.joined |= part
	return joins
}

// Complete reports whether the filter and both scores joined, all with the same amounts for
// the pod. Only then may the pass run; otherwise ask each plugin itself.
func (p *Pass) Complete() bool { return p.joined == all && p.fit == p.least && p.least == p.even }

// Watch adds a watcher, which measures one of the joined plugins for metrics: the pass
// calls it each time that it runs.
func (p *Pass) Watch(w Watcher) { p.watchers = append(p.watchers, w) }

// Watcher measures one plugin of a pass. Both functions may be called concurrently.
type Watcher struct {
	// Apart reports whether the plugin is to be called by itself this time, so that it can
	// be timed. The pass then evaluates no row.
	Apart func() bool
	// Seen is called with the number of rows that fit according to the loop, about which the plugin
	// is not asked. It is not called if a plugin is called by itself.
	Seen func(rows int)
}

// apart reports whether a watcher wants a plugin to be called by itself this time, so that
// it can be timed; the loop is left out then.
func (p *Pass) apart() bool {
	for _, w := range p.watchers {
		if w.Apart() {
			return true
		}
	}
	return false
}

// AddMask evaluates the rows of the mask, whose bit 0 stands for row base. For rows that
// fit it sets the state to first plus the weighted scores. It appends to left the rows that
// may not fit: the plugins are to be asked about them. These are all rows if a plugin is to
// be called by itself.
func AddMask[S ~int32](p *Pass, t *table.Table, base table.Row, mask table.RowSet, first S, states []S, left []table.Row) []table.Row {
	apart, rows, before := p.apart(), 0, len(left)
	for w, word := range mask {
		rows += bits.OnesCount64(word)
		from, out := base+table.Row(w<<6), word
		if !apart && word != 0 {
			var near uint64
			out, near = addWord(p, t.Percents()[from:], word, first, states[from:])
			for ; near != 0; near &= near - 1 {
				r := from + table.Row(bits.TrailingZeros64(near))
				states[r] = first + S(p.scoreNear(t, r))
			}
		}
		for ; out != 0; out &= out - 1 {
			left = append(left, from+table.Row(bits.TrailingZeros64(out)))
		}
	}
	if !apart {
		for _, w := range p.watchers {
			w.Seen(rows - (len(left) - before))
		}
	}
	return left
}

// AddRows evaluates the rows. It adds the weighted scores of rows that fit to sums, by
// index in rows. It writes to order the rows that fit, then those that may not, about which
// the plugins are to be asked, and to at the index of each in rows. It returns how many
// fit. No two slices may share memory.
func AddRows(p *Pass, t *table.Table, rows []table.Row, sums []int64, order []table.Row, at []int32) (fit int) {
	column, rest := t.Percents(), len(rows)
	apart := p.apart()
	for i, r := range rows {
		var score [1]int64
		out, near := uint64(1), uint64(0)
		if !apart {
			out, near = addWord(p, column[r:r+1], 1, 0, score[:])
		}
		if out != 0 {
			rest--
			order[rest], at[rest] = r, int32(i)
			continue
		}
		if near != 0 {
			score[0] = p.scoreNear(t, r)
		}
		sums[i] += score[0]
		order[fit], at[fit] = r, int32(i)
		fit++
	}
	slices.Reverse(order[rest:len(rows)])
	slices.Reverse(at[rest:len(rows)])
	if !apart {
		for _, w := range p.watchers {
			w.Seen(fit)
		}
	}
	return fit
}

// scoreNear returns the weighted score of one row by exact arithmetic, for rows where the
// loop's rounding might change the score.
func (p *Pass) scoreNear(t *table.Table, r table.Row) int64 {
	cpu, memory := p.least.LeastAllocated(&t.Headroom()[r])
	return p.leastWeight*((cpu+memory)>>1) + p.evenWeight*p.even.Balanced(t, r)
}

// addWord evaluates the rows of one 64-bit word of a mask: bit i stands for column[i] and
// states[i], which it sets to first plus the weighted score. It returns the rows that may
// not fit in out, and those for which rounding may matter in near; their states are not
// set. It calls nothing, which keeps the loop's values in registers.
//
// What is left with the pod is cut off to a unit: with 1,250 of 4,000 millicores left, and
// a pod of 250, it is 25.0125 percent, half a millicore of which is no more than 25. Floats
// make that wrong by less than 6e-14 percent. As it is 0.5/MostInverted percent away from
// any integer, which is 1.1e-13 or more, the percents are right. A row on which no unit is
// left, be it full or not, is left out.
//
// In the same units the difference between CPU and memory is twice their distance, which is
// what counts for Balanced, in units of 2^-32. It is wrong by three units at most.
func addWord[S ~int32 | ~int64](p *Pass, column []table.Percents, word uint64, first S, states []S) (out, near uint64) {
	cpu, memory := p.fit.CPU*(100*table.PercentUnits), p.fit.Memory*(100*table.PercentUnits)
	leastWeight, evenWeight := p.leastWeight, p.evenWeight
	states = states[:len(column)]
	for ; word != 0; word &= word - 1 {
		i := bits.TrailingZeros64(word)
		h := &column[i]
		cpuLeft, memoryLeft := int64(h.CPU.Left-cpu*h.CPU.Inverse), int64(h.Memory.Left-memory*h.Memory.Inverse)
		if cpuLeft < 1 || memoryLeft < 1 {
			out |= word & -word
			continue
		}
		distance := cpuLeft - memoryLeft + h.Apart
		sign := distance >> 63
		distance = distance ^ sign - sign
		if nearWhole(distance) {
			near |= word & -word
			continue
		}
		percent := cpuLeft>>table.PercentBits + memoryLeft>>table.PercentBits
		states[i] = first + S(leastWeight*(percent>>1)+evenWeight*((h.Uneven-distance)>>(unitBits+1)))
	}
	return out, near
}
