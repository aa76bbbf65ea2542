package engine

import (
	"github.com/berth-scheduler/berth/core/answers"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// maxScore is the most that a plugin may score after normalising.
const maxScore = 100

// Engine keeps the views of one table. It belongs to the table's owner.
type Engine struct {
	table   *table.Table
	seed    uint64
	workers int
	budget  int  // rows that all views together may hold
	plain   bool // nothing is kept
	checks  bool // what is found by a short cut is compared with the long way

	keys       map[*profile.Profile]*keys
	classes    map[string]*class // by signature, those that came by of late
	classBytes int               // of their signatures
	seen       map[uint64]seen   // by hash, of classes
	views      map[string]*view  // by signature
	promoted   int               // of the views those that are not on trial
	trial      [mostTrials]*view // views of classes that came by once; some nil
	lastTrial  int               // index of the newest of trial
	store      answers.Store     // what plugins say that read node objects alone
	fewRows    ranking.Index     // of a pod that is narrowed to a few rows
	excess     int               // rows that views count for because of their bytes
	clock      uint64            // decisions so far
	withKept   []*view           // for which PostFilter plugins keep something, the oldest first

	keyBuf    []byte
	scratch   scratch
	buffers   buffers  // of the decision under way
	released  *Outcome // by Reuse; nil: none
	evaluated int      // rows evaluated for the last decision
	runs      runs

	nominated   nominatedNodes
	nominations uint64 // the revision up to which their terms are tracked
	swept       uint64 // how often the table's terms were
}

// New returns an engine over the table. The seed decides between ties; workers is how
// many cores a full evaluation may use.
func New(t *table.Table, seed uint64, workers int) *Engine {
	workers = max(1, workers)
	return &Engine{
		table: t, seed: seed, workers: workers, budget: viewRows,
		keys: map[*profile.Profile]*keys{}, classes: map[string]*class{}, seen: map[uint64]seen{},
		views: map[string]*view{},
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
	clear(e.keys)
	clear(e.seen)
	e.workers = max(1, workers)
}

// Reset forgets every view. Decisions stay the same; the next ones are slower.
func (e *Engine) Reset() {
	for _, v := range e.views { // any order: each by itself
		v.class.view = nil
	}
	clear(e.views)
	clear(e.classes)
	clear(e.trial[:])
	e.store, e.fewRows = answers.Store{}, ranking.Index{}
	e.promoted, e.excess, e.classBytes, e.withKept = 0, 0, 0, nil
	e.runs.last, e.nominated = nil, nominatedNodes{}
}
