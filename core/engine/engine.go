package engine

import (
	"github.com/berth-scheduler/berth/core/classes"
	"github.com/berth-scheduler/berth/core/nominations"
	"github.com/berth-scheduler/berth/core/table"
)

// maxScore is the most that a plugin may score after normalising.
const maxScore = 100

// Engine keeps the views of one table. It belongs to the table's owner.
type Engine struct {
	table   *table.Table
	seed    uint64
	workers int
	plain   bool // nothing is kept
	checks  bool // what is found by a short cut is compared with the long way

	classes classes.Set[view]
	cache   cache

	scratch  scratch
	buffers  buffers  // of the decision under way
	released *Outcome // by Reuse; nil: none
	runs     runs

	nominated nominations.Rows
	tracked   nominations.Tracked
}

// New returns an engine over the table. The seed decides between ties; workers is how
// many cores a full evaluation may use.
func New(t *table.Table, seed uint64, workers int) *Engine {
	workers = max(1, workers)
	return &Engine{
		table: t, seed: seed, workers: workers, classes: classes.New[view](t),
		cache: cache{table: t, budget: viewRows, views: map[string]*view{}, seen: map[uint64]seen{}},
	}
}

// NewPlain returns an engine with its views off: it keeps nothing, and for each
// pod asks every plugin about every node afresh, one by one. It is slow, and
// answers as New's does; that it does is what it is there to show.
func NewPlain(t *table.Table, seed uint64) *Engine {
	e := New(t, seed, 1)
	e.plain = true
	return e
}

// CheckShortCuts makes the engine compare each result of a short cut with the long way
// from now on. It panics where they differ.
func (e *Engine) CheckShortCuts() { e.checks = true }

// Reconfigure forgets all that was kept of profiles, none of which is used again.
// Requests under them may not be decided on any more.
func (e *Engine) Reconfigure(workers int) {
	e.Reset()
	e.classes.ForgetProfiles()
	clear(e.cache.seen)
	e.workers = max(1, workers)
}

// Reset forgets every view. Decisions stay the same; the next ones are slower.
func (e *Engine) Reset() {
	e.cache.reset()
	e.classes.Forget()
	e.runs.last, e.nominated = nil, nominations.Rows{}
}
