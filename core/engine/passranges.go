package engine

import (
	"sort"

	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/par"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

const (
	// leastRange is how many rows in a range are worth a loop of their own.
	leastRange = 16
	// passGrain is how many rows a pass looks at in the time that it takes to wake
	// another core.
	passGrain = 1 << 14
)

// passAlone reports whether the pass replaces all of the view's own plugins, and the
// index can add its results in place.
func (v *view) passAlone() bool {
	return v.pass != nil && len(v.rowFilters)+len(v.rowScorers) == 0 && !v.cellsKept && !v.asksScores && !v.shared.late &&
		v.index.Addable(&v.shared.start)
}

// passRanges evaluates rows that follow each other without a gap by the pass alone, right
// in the index, on top of the shared answers. It returns the rows left to evaluate one by
// one: those that the pass leaves out, and those outside of long ranges.
func (v *view) passRanges(rows []table.Row, workers int, found *scratch) (left []table.Row) {
	left = found.rows[:0]
	for len(rows) > 0 {
		n := rangeOf(rows[:min(len(rows), wave)])
		some := rows[:n]
		rows = rows[n:]
		if n < leastRange {
			left = append(left, some...)
			continue
		}
		found.at = resize(found.at, n)
		left = v.pass.addRange(some, v.index.Begun(some[0], n), found.at, workers, left)
	}
	found.rows = left
	return left
}

// addRange adds the pass to the states of rows that follow each other. It appends to left
// the rows that the pass leaves out. at is scratch with one entry a row.
func (p *pass) addRange(rows []table.Row, states []ranking.State, at []int32, workers int, left []table.Row) []table.Row {
	if len(rows) <= passGrain {
		for _, i := range at[:headroom.AddRange(&p.Pass, p.table, rows[0], states, at)] {
			left = append(left, rows[i])
		}
		return left
	}
	var out [wave / passGrain]int // how many are, of each part
	par.Each((len(rows)+passGrain-1)/passGrain, workers, func(_, part int) {
		from, to := part*passGrain, min((part+1)*passGrain, len(rows))
		out[part] = headroom.AddRange(&p.Pass, p.table, rows[from], states[from:to], at[from:to])
	})
	for part, n := range out {
		from := part * passGrain
		for k := range n {
			left = append(left, rows[from+int(at[from+k])])
		}
	}
	return left
}

// rangeOf returns how many rows at the head of the list, which is in order, follow each other
// without a gap.
func rangeOf(rows []table.Row) int {
	follows := func(i int) bool { return int(rows[i]-rows[0]) == i }
	n := min(len(rows), leastRange)
	for i := 1; i < n; i++ {
		if !follows(i) {
			return i
		}
	}
	if last := len(rows) - 1; follows(last) {
		return len(rows)
	}
	return n + sort.Search(len(rows)-n, func(i int) bool { return !follows(n + i) })
}
