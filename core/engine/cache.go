package engine

import (
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/answers"
	"github.com/berth-scheduler/berth/core/classes"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// viewRows bounds the memory of the views of classes that come back: a row of a view takes
// 4 bytes, and up to 40 more where there are as many groups as there may be, or 8 for its
// score and for each value without groups; a view itself as much as fixedRows rows. So
// 2^22 rows are about 200 MiB at the worst, and a tenth of that as a rule. A large table
// may have more, for 192 classes: with fewer views than classes that take turns each would
// be dropped just before its turn.
const (
	viewRows   = 1 << 22
	fixedRows  = 128
	largeTable = 1 << 15
	largeViews = 192
)

// fixedBytes is how many bytes of a class's signature and of its pod's labels and tolerations are
// part of fixedRows. Each byte beyond counts as a row: a view keeps the signature,
// what was compiled from the same fields, and the pod.
const fixedBytes = 2048

// seenClasses bounds the classes without a view whose last visit is remembered.
const seenClasses = 1 << 16

// mostTrials is how many views are on trial.
const mostTrials = 6

// cellsFrom is the visit in a row from which a view keeps the cells of rows.
const cellsFrom = 3

// cache holds views of classes: those that stay, and those on trial.
type cache struct {
	table     *table.Table
	budget    int               // rows that all views together may hold
	store     answers.Store     // what plugins say that read node objects alone
	views     map[string]*view  // by signature
	promoted  int               // of the views those that are not on trial
	trial     [mostTrials]*view // views of classes that came by once; some nil
	lastTrial int               // index of the newest of trial
	fewRows   ranking.Index     // of a pod that is narrowed to a few rows
	excess    int               // rows that views count for because of their bytes
	clock     uint64            // decisions so far
	seen      map[uint64]seen   // by hash, of classes
	withKept  []*view           // for which PostFilter plugins keep something, the oldest first
}

// reset forgets all views, and keeps when classes came by.
func (c *cache) reset() {
	for _, v := range c.views { // any order: each by itself
		v.class.Kept = nil
	}
	clear(c.views)
	clear(c.trial[:])
	c.store, c.fewRows = answers.Store{}, ranking.Index{}
	c.promoted, c.excess, c.withKept = 0, 0, nil
}

// viewOf finds or makes the view of the pod's class, and counts the visit.
func (c *cache) viewOf(of *class, k *classes.Keys, pod *object.Pod) *view {
	c.clock++
	v := c.findView(of)
	if v == nil {
		v = c.newView(of, k, pod)
	} else {
		v.visits++
	}
	if v.onTrial && v.visits > 1 {
		c.promote(v)
	}
	if v.visits >= cellsFrom && !v.grouped() && v.index != nil && v.narrowed == nil {
		v.keepCells()
		v.revision = 0 // all rows are to be grouped anew
	}
	return v
}

// findView returns the view of the class, nil if there is none that is still valid.
func (c *cache) findView(of *class) *view {
	v := of.Kept
	if v == nil {
		v = c.views[of.Signature] // the class was found anew in between
	}
	if v == nil || v.failed != nil || !v.current() { // PreScore may not fail the next time
		return nil
	}
	v.used = c.clock
	return v
}

// newView makes a view of the class. It is on trial until the class comes back, unless
// the class came by of late.
func (c *cache) newView(of *class, k *classes.Keys, pod *object.Pod) *view {
	visits := c.visit(of)
	v := prepare(c.table, k, pod)
	v.class, v.used, v.visits = of, c.clock, visits
	if v.rejected != nil {
		return v
	}
	if v.narrowed != nil {
		v.build(&c.store, &c.fewRows)
		return v
	}
	if visits >= cellsFrom || k.Profile.Host != nil { // hosted plugins are asked in the order of groups
		v.keepCells()
	}
	c.dropView(of.Signature)
	v.excess = v.excessBytes()
	v.build(&c.store, c.tryView(v))
	return v
}

// seen is when a class came by last, in decisions, and how often in a row it came back so
// soon that a view that was kept in between would still have been there.
type seen struct {
	at      uint64
	returns int
}

// visit returns how often in a row the class came by, this visit included. Nothing else
// is kept of rare classes: they may never come back.
func (c *cache) visit(of *class) int {
	s, known := c.seen[of.Hash]
	if !known && len(c.seen) >= seenClasses {
		clear(c.seen)
	}
	if known && c.clock-s.at <= uint64(c.mostViews()) {
		s.returns++
	} else {
		s.returns = 0
	}
	s.at = c.clock
	c.seen[of.Hash] = s
	return s.returns + 1
}

// excessBytes returns how many rows the view counts for beyond its own rows, because its
// signature is long, or labels and tolerations of its pod are.
func (v *view) excessBytes() int {
	n := len(v.class.Signature) + len(v.pod.Tolerations.Key)
	for key, value := range v.pod.Labels { // any order: a sum
		n += len(key) + len(value)
	}
	return max(0, n-fixedBytes)
}

// mostViews returns how many views the engine may keep, beside those on trial.
func (c *cache) mostViews() int {
	return max(1, (c.mostRows()-c.excess)/(fixedRows+c.table.Rows()))
}

// mostRows returns the number of rows that all views together may hold, each view
// counting fixedRows more than it has.
func (c *cache) mostRows() int {
	if n := c.table.Rows(); n > largeTable {
		return max(c.budget, largeViews*(fixedRows+n))
	}
	return c.budget
}

// Views on trial are of classes that came by once. They push out each other alone, so
// classes that never come back leave nothing behind. A new one has the index of the one
// that it pushes out.

// tryView puts the view on trial, in the place of the oldest one there. It returns the
// index to build the view with.
func (c *cache) tryView(v *view) *ranking.Index {
	v.onTrial, v.class.Kept, c.views[v.class.Signature] = true, v, v
	c.lastTrial = (c.lastTrial + 1) % len(c.trial)
	old := c.trial[c.lastTrial]
	if c.trial[c.lastTrial] = v; old == nil {
		return &ranking.Index{}
	}
	c.dropView(old.class.Signature)
	for k := range old.filters {
		releaseState(&old.filters[k].in)
	}
	for k := range old.scorers {
		releaseState(&old.scorers[k].in)
	}
	return old.index
}

// releaseState returns a state to its plugin for reuse. Nothing may read the state
// afterwards.
func releaseState(in *framework.Input) {
	if state, is := in.State.(framework.Releaser); is {
		state.Release()
		in.State = nil
	}
}

// promote keeps a view that was on trial. It drops the views used longest ago once all
// together are too large, a sixteenth of them at a time.
func (c *cache) promote(v *view) {
	if i := slices.Index(c.trial[:], v); i >= 0 {
		c.trial[i] = nil
	}
	v.onTrial = false
	c.promoted++
	if c.excess += v.excess; c.promoted > c.mostViews() {
		c.dropViews(v)
	}
}

// dropView removes the view of a class, if there is one.
func (c *cache) dropView(signature string) {
	v := c.views[signature]
	if v == nil {
		return
	}
	if v.kept != nil {
		c.withKept = slices.DeleteFunc(c.withKept, func(other *view) bool { return other == v })
	}
	if i := slices.Index(c.trial[:], v); i >= 0 {
		c.trial[i] = nil
	} else if !v.onTrial {
		c.promoted--
		c.excess -= v.excess
	}
	v.class.Kept = nil
	delete(c.views, signature)
}

// dropViews drops the views used longest ago, but not those on trial.
func (c *cache) dropViews(keep *view) {
	uses := make([]uint64, 0, len(c.views))
	for _, v := range c.views { // any order: sorted below
		if !v.onTrial {
			uses = append(uses, v.used)
		}
	}
	slices.Sort(uses)
	stay := min(max(1, c.mostViews()-c.mostViews()/16), len(uses))
	for _, signature := range slices.Collect(maps.Keys(c.views)) { // any order: each by itself
		if v := c.views[signature]; v != keep && !v.onTrial && v.used < uses[len(uses)-stay] {
			c.dropView(signature)
		}
	}
}
