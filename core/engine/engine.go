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
	seed    uint64 // of the draws between ties
	workers int    // cores that an evaluation of all rows may use, at least 1
	plain   bool   // nothing is kept (NewPlain)
	checks  bool   // see CheckShortCuts

	classes classes.Set[view] // the classes of pods, each with its view if that is in the cache
	cache   cache             // the views

	scratch  scratch  // of evaluations of rows
	buffers  buffers  // of the decision under way
	released *Outcome // outcome that Reuse released; nil: none
	runs     runs     // the last decisions that asked hosted plugins

	nominated nominations.Rows    // the nominated pods by row
	tracked   nominations.Tracked // what the table knows of nominated pods
}

// New returns an engine over the table. The seed makes the draws between ties; workers is how many
// cores an evaluation of all rows may use. A number below 1 means 1.
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

// CheckShortCuts makes the engine place nominated pods on trial from now on, also where it can
// compute the verdict without. It panics where the two verdicts differ. It is for tests.
func (e *Engine) CheckShortCuts() { e.checks = true }

// Reconfigure drops all that was kept under the profiles so far, and sets the number of cores
// (below 1 means 1). Requests made under those profiles may not be passed to the engine any more.
func (e *Engine) Reconfigure(workers int) {
	e.Reset()
	e.classes.ForgetProfiles()
	clear(e.cache.seen)
	e.workers = max(1, workers)
}

// Reset drops every view, every class and all kept answers of plugins. Decisions stay the same; the
// next ones are slower.
func (e *Engine) Reset() {
	e.cache.reset()
	e.classes.Forget()
	e.runs.last, e.nominated = nil, nominations.Rows{}
}
