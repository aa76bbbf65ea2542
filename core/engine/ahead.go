package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/par"
)

const (
	// aheadMost is how many pods are worth looking at ahead of their turn, aheadEach
	// how many for each core: each that is placed before changes a row, to be looked
	// at again, and the first of them waits for all.
	aheadMost = 32
	aheadEach = 4
	// aheadRows bounds the rows that the views on trial hold together.
	aheadRows = 1 << 21
	// aheadLeast is how many rows a decision has to evaluate for others to be worth
	// doing ahead.
	aheadLeast = 64
)

// WorthAhead returns how many pods the engine would like to see ahead of their turn, 0
// where it keeps up without.
func (e *Engine) WorthAhead() int {
	if e.workers < 2 || e.plain || max(e.evaluated, e.evaluatedAhead) < aheadLeast {
		return 0
	}
	return e.mostAhead()
}

func (e *Engine) mostAhead() int {
	return min(aheadMost, aheadEach*e.workers, aheadRows/max(1, e.table.Rows()))
}

// RefreshAhead brings the views of pods that are decided on soon up to date,
// several at a time over the cores. What changes until a pod's turn is looked at
// then: no decision is another for it.
func (e *Engine) RefreshAhead(requests []*Request) {
	for _, r := range requests {
		e.clock++
		c := e.classOf(r)
		v := e.findView(c)
		if v == nil {
			v = e.newView(r, c)
			v.madeSoon = true
		}
		known := v.rejected == nil && v.narrowed == nil && v.failed == nil
		if known && !slices.ContainsFunc(v.rowFilters, costly) && !slices.Contains(e.ahead, v) {
			e.ahead = append(e.ahead, v)
		}
	}
	for _, v := range e.ahead {
		v.follow(&e.store)
	}
	live := e.store.Live(e.table)
	par.Each(len(e.ahead), e.workers, func(worker, i int) {
		e.ahead[i].evaluated = e.ahead[i].refreshRows(live, e.table, 1, &e.workerScratch[worker])
	})
	e.evaluatedAhead = 0
	for _, v := range e.ahead {
		e.evaluatedAhead = max(e.evaluatedAhead, v.evaluated)
	}
	clear(e.ahead)
	e.ahead = e.ahead[:0]
}
