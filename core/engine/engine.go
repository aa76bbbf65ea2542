package engine

import (
	"github.com/berth-scheduler/berth/core/classes"
	"github.com/berth-scheduler/berth/core/nominations"
	"github.com/berth-scheduler/berth/core/table"
)

// maxScore is the highest score that a plugin may give a node after normalising
// (framework.MaxNodeScore).
const maxScore = 100

// Engine decides on pods over one table and keeps views of their classes. It is used by the
// goroutine that owns the table.
type Engine struct {
	table   *table.Table
	seed    uint64
	workers int
	plain   bool // nothing is kept (NewPlain)
	checks  bool // results of short cuts are compared with a full computation

	classes classes.Set[view]
	cache   cache

	scratch  scratch
	buffers  buffers  // of the decision under way
	released *Outcome // outcome that Reuse released; nil: none
	runs     runs

	nominated nominations.Rows
	tracked   nominations.Tracked
}

// New returns an engine over the table. The seed makes the draws between ties; workers is
// how many cores an evaluation of all rows may use, at least 1.
func New(t *table.Table, seed uint64, workers int) *Engine {
	workers = max(1, workers)
	return &Engine{
		table: t, seed: seed, workers: workers, classes: classes.New[view](t),
		cache: cache{table: t, budget: viewRows, views: map[string]*view{}, seen: map[uint64]seen{}},
	}
}

// NewPlain returns an engine that keeps no views: for each pod it asks every plugin about
// every node afresh. It is slow and decides as an engine of New does; tests compare the
// two.
func NewPlain(t *table.Table, seed uint64) *Engine {
	e := New(t, seed, 1)
	e.plain = true
	return e
}

// CheckShortCuts makes the engine compare each result of a short cut with a full
// computation from now on. It panics where they differ. It is for tests.
func (e *Engine) CheckShortCuts() { e.checks = true }

// Reconfigure drops all that was kept under the profiles so far, and sets the number of
// cores. Requests made under those profiles may not be passed to the engine any more.
func (e *Engine) Reconfigure(workers int) {
	e.Reset()
	e.classes.ForgetProfiles()
	clear(e.cache.seen)
	e.workers = max(1, workers)
}

// Reset drops every view and class. Decisions stay the same; the next ones are slower.
func (e *Engine) Reset() {
	e.cache.reset()
	e.classes.Forget()
	e.runs.last, e.nominated = nil, nominations.Rows{}
}
