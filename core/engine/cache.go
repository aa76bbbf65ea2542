package engine

import (
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/ranking"
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

// viewOf finds or makes the view of the pod's class, and counts the visit.
func (e *Engine) viewOf(r *Request) *view {
	e.clock++
	c := e.classOf(r)
	v := e.findView(c)
	if v == nil {
		v = e.newView(r, c)
	} else {
		v.visits++
	}
	if v.onTrial && v.visits > 1 {
		e.promote(v)
	}
	if v.visits >= cellsFrom && !v.grouped() && v.index != nil && v.narrowed == nil {
		v.keepCells()
		v.revision = 0 // all rows are to be grouped anew
	}
	return v
}

// findView returns the view of the class, nil if there is none that is still valid.
func (e *Engine) findView(c *class) *view {
	v := c.view
	if v == nil {
		v = e.views[c.signature] // the class was found anew in between
	}
	if v == nil || v.failed != nil || !v.current(e.table) { // PreScore may not fail the next time
		return nil
	}
	v.used = e.clock
	return v
}

// newView makes a view of the class. It is on trial until the class comes back, unless
// the class came by of late.
func (e *Engine) newView(r *Request, c *class) *view {
	visits := e.visit(c)
	v := prepare(e.table, r.keys, r.Pod)
	v.class, v.used, v.visits = c, e.clock, visits
	if v.rejected != nil {
		return v
	}
	if v.narrowed != nil {
		v.build(&e.store, &e.fewRows)
		return v
	}
	if visits >= cellsFrom || r.keys.profile.Host != nil { // hosted plugins are asked in the order of groups
		v.keepCells()
	}
	e.dropView(c.signature)
	v.excess = v.excessBytes()
	v.build(&e.store, e.tryView(v))
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
func (e *Engine) visit(c *class) int {
	s, known := e.seen[c.hash]
	if !known && len(e.seen) >= seenClasses {
		clear(e.seen)
	}
	if known && e.clock-s.at <= uint64(e.mostViews()) {
		s.returns++
	} else {
		s.returns = 0
	}
	s.at = e.clock
	e.seen[c.hash] = s
	return s.returns + 1
}

// excessBytes returns how many rows the view counts for beyond its own rows, because its
// signature is long, or labels and tolerations of its pod are.
func (v *view) excessBytes() int {
	n := len(v.class.signature) + len(v.pod.Tolerations.Key)
	for key, value := range v.pod.Labels { // any order: a sum
		n += len(key) + len(value)
	}
	return max(0, n-fixedBytes)
}

// mostViews returns how many views the engine may keep, beside those on trial.
func (e *Engine) mostViews() int {
	return max(1, (e.mostRows()-e.excess)/(fixedRows+e.table.Rows()))
}

// mostRows returns the number of rows that all views together may hold, each view
// counting fixedRows more than it has.
func (e *Engine) mostRows() int {
	if n := e.table.Rows(); n > largeTable {
		return max(e.budget, largeViews*(fixedRows+n))
	}
	return e.budget
}

// Views on trial are of classes that came by once. They push out each other alone, so
// classes that never come back leave nothing behind. A new one has the index of the one
// that it pushes out.

// tryView puts the view on trial, in the place of the oldest one there. It returns the
// index to build the view with.
func (e *Engine) tryView(v *view) *ranking.Index {
	v.onTrial, v.class.view, e.views[v.class.signature] = true, v, v
	e.lastTrial = (e.lastTrial + 1) % len(e.trial)
	old := e.trial[e.lastTrial]
	if e.trial[e.lastTrial] = v; old == nil {
		return &ranking.Index{}
	}
	e.dropView(old.class.signature)
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
func (e *Engine) promote(v *view) {
	if i := slices.Index(e.trial[:], v); i >= 0 {
		e.trial[i] = nil
	}
	v.onTrial = false
	e.promoted++
	if e.excess += v.excess; e.promoted > e.mostViews() {
		e.dropViews(v)
	}
}

// dropView removes the view of a class, if there is one.
func (e *Engine) dropView(signature string) {
	v := e.views[signature]
	if v == nil {
		return
	}
	if v.kept != nil {
		e.withKept = slices.DeleteFunc(e.withKept, func(other *view) bool { return other == v })
	}
	if i := slices.Index(e.trial[:], v); i >= 0 {
		e.trial[i] = nil
	} else if !v.onTrial {
		e.promoted--
		e.excess -= v.excess
	}
	v.class.view = nil
	delete(e.views, signature)
}

// dropViews drops the views used longest ago, but not those on trial.
func (e *Engine) dropViews(keep *view) {
	uses := make([]uint64, 0, len(e.views))
	for _, v := range e.views { // any order: sorted below
		if !v.onTrial {
			uses = append(uses, v.used)
		}
	}
	slices.Sort(uses)
	stay := min(max(1, e.mostViews()-e.mostViews()/16), len(uses))
	for _, signature := range slices.Collect(maps.Keys(e.views)) { // any order: each by itself
		if v := e.views[signature]; v != keep && !v.onTrial && v.used < uses[len(uses)-stay] {
			e.dropView(signature)
		}
	}
}
