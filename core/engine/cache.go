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

const (
	// viewRows bounds the memory of the views that are not on trial, in rows. A row takes 4 bytes,
	// up to 40 more where there are as many buckets as there may be, or 8 for its score and for each
	// value without buckets. So 2^22 rows are about 200 MiB at the worst, and a tenth of that as a
	// rule.
	viewRows = 1 << 22
	// fixedRows is what a view counts in addition to the rows of the table.
	fixedRows = 128
	// A table of more than largeTable rows may have largeViews views in any case: with fewer views
	// than classes that take turns, each would be dropped just before its turn.
	largeTable = 1 << 15
	largeViews = 192
)

// fixedBytes is the size of a class's signature plus its pod's labels and tolerations that
// fixedRows covers. Each byte beyond counts as a row, because a view keeps the signature,
// what was compiled from the same fields, and the pod.
const fixedBytes = 2048

// seenClasses is how many classes without a view are remembered with their last decision.
// All are forgotten when there are more.
const seenClasses = 1 << 16

// mostTrials is the number of views on trial, of classes with one decision so far, that
// may exist at a time. The next new view replaces the oldest.
const mostTrials = 6

// cellsFrom is the number of decisions on a class, each soon after the one before, from
// which its view keeps the cell (topology domain) of each row.
const cellsFrom = 3

// cache holds the views of classes: those that stay within the budget, and a few on trial,
// of classes on whose pods only one decision was made of late.
type cache struct {
	table     *table.Table
	budget    int               // rows that all views together may hold, those on trial left out
	store     answers.Store     // answers of plugins that read node objects alone, shared by all views
	views     map[string]*view  // by signature of the class, those on trial included
	promoted  int               // number of views that are not on trial
	trial     [mostTrials]*view // ring of views of classes with one decision so far; nil: free
	lastTrial int               // index of the newest of trial
	fewRows   ranking.Index     // index for a pod that is narrowed to named nodes; lent to one decision
	excess    int               // sum of view.excess over promoted views, in rows
	clock     uint64            // decisions so far
	seen      map[uint64]seen   // last decisions on classes, by hash of the signature
	withKept  []*view           // views for which PostFilter plugins keep something, the oldest first
}

// reset drops all views and all kept answers of plugins, so that nothing computed before
// is used again. It keeps the record of earlier decisions on classes.
func (c *cache) reset() {
	for _, v := range c.views { // any order: each by itself
		v.class.Kept = nil
	}
	clear(c.views)
	clear(c.trial[:])
	c.store, c.fewRows = answers.Store{}, ranking.Index{}
	c.promoted, c.excess, c.withKept = 0, 0, nil
}

// viewOf counts a decision on the pod's class and returns the view of the class, a new one if there
// is none that can be used again. The view may be out of date with the table until refresh. A new
// view is on trial: it may be replaced by that of another class. The second decision on the class
// soon after the first makes it stay. From the third on the view keeps the cells of rows (see
// cells).
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
	if v.visits >= cellsFrom && !v.bucketed() && v.index != nil && v.narrowed == nil {
		v.keepCells()
		v.revision = 0 // all rows are to be bucketed anew
	}
	return v
}

// findView returns the view of the class and marks it as used now; nil if there is none, or
// if PreFilter and PreScore must run again. A view whose PreScore failed is not reused,
// since it may not fail the next time.
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

// newView runs PreFilter and PreScore for the pod and makes a view of its class, which replaces a
// stale one. The view goes on trial. It is not put into the cache if PreFilter rejected the pod or
// narrowed it to named nodes.
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
	if visits >= cellsFrom || k.Profile.Host != nil { // hosted plugins are asked in the order of buckets
		v.keepCells()
	}
	c.dropView(of.Signature)
	v.excess = v.excessBytes()
	v.build(&c.store, c.tryView(v))
	return v
}

// seen records the last decision on a pod of a class that has no view, to find classes
// that come back.
type seen struct {
	at      uint64 // decision number
	returns int    // times in a row that the class returned while a view would still have been kept
}

// visit records a decision on a class without a view. It returns the number of decisions on the
// class that followed each other soon enough for a view to last, this one included: 1 if it is the
// first or the last was too long ago.
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

// excessBytes returns by how many bytes the class's signature and the pod's labels and
// tolerations exceed fixedBytes, 0 if they do not. Each counts as one row of the budget,
// so that pods with huge specs cannot fill the memory.
func (v *view) excessBytes() int {
	n := len(v.class.Signature) + len(v.pod.Tolerations.Key)
	for key, value := range v.pod.Labels { // any order: a sum
		n += len(key) + len(value)
	}
	return max(0, n-fixedBytes)
}

// mostViews returns how many views may be kept within the budget at the table's present
// size, those on trial not counted. It is at least 1.
func (c *cache) mostViews() int {
	return max(1, (c.mostRows()-c.excess)/(fixedRows+c.table.Rows()))
}

// mostRows returns the budget of memory, counted in rows, for all views but the few on
// trial (of classes with one decision so far). It is larger for a large table, so that
// largeViews views fit.
func (c *cache) mostRows() int {
	if n := c.table.Rows(); n > largeTable {
		return max(c.budget, largeViews*(fixedRows+n))
	}
	return c.budget
}

// Views on trial are of classes with one decision so far. They push out each other alone, so
// classes that never come back leave nothing behind. A new one has the index of the one
// that it pushes out.

// tryView puts the view on trial and into the cache, in the place of the oldest one on trial. That
// is dropped, and its plugins may reuse the states of their PreFilter and PreScore. tryView returns
// the index to build the new view with: that of the dropped view, for its memory, or a new one.
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

// releaseState returns a plugin's PreFilter or PreScore state to the plugin for reuse, if
// the plugin reuses states. Nothing may read the state afterwards.
func releaseState(in *framework.Input) {
	if state, is := in.State.(framework.Releaser); is {
		state.Release()
		in.State = nil
	}
}

// promote ends a view's trial, as its class came again. If the promoted views then exceed the
// budget, it drops those used longest ago until a sixteenth of the budget is free. It drops
// neither v nor views on trial.
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

// dropView removes the view of the class with that signature, on trial or not. It does
// nothing if there is none.
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

// dropViews drops the views used longest ago until a sixteenth of the budget is free. It
// does not drop keep, nor views on trial.
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
