package engine

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// viewRows bounds the memory of all views: a row of a view takes 4 bytes, 8 more
// for each plugin that answers by cells, and up to 40 where there are as many
// groups as there may be; a view itself as much as fixedRows rows. So 2^22 rows are
// about 200 MiB at the worst, and a tenth of that as a rule. A large table may have
// more, for 192 classes: with fewer views than classes that take turns each would
// be dropped just before its turn.
const (
	viewRows   = 1 << 22
	fixedRows  = 128
	largeTable = 1 << 15
	largeViews = 192
)

// fixedBytes is how many bytes of a class's signature and of its pod's labels are
// part of fixedRows. Each byte beyond counts as a row: a view keeps the signature,
// what was compiled from the same fields, and the pod.
const fixedBytes = 2048

// seenClasses bounds the classes without a view whose last visit is remembered.
const seenClasses = 1 << 16

// viewOf finds or makes the view of the pod's class.
func (e *Engine) viewOf(r *Request) *view {
	e.releaseTransient()
	e.clock++
	c := e.classOf(r)
	v := e.findView(c)
	if v == nil {
		v = e.newView(r, c)
	}
	if v.buffers != nil {
		delete(e.madeAhead, c.signature)
		e.transient = v
	}
	return v
}

// findView returns the view of the class, nil if there is none that is still valid.
func (e *Engine) findView(c *class) *view {
	v := c.view
	if v == nil {
		v = e.views[c.signature] // the class was found anew in between
	}
	if v != nil && v.current(e.table) {
		v.used = e.clock
		return v
	}
	if v := e.madeAhead[c.signature]; v != nil {
		if v.current(e.table) {
			return v
		}
		e.release(v)
	}
	return nil
}

// newView makes a view of the class: one to keep, or a transient one if the class is
// rare.
func (e *Engine) newView(r *Request, c *class) *view {
	seldom := e.views[c.signature] == nil && !e.comesOften(c)
	v := prepare(e.table, r.keys, r.Pod)
	v.class, v.used = c, e.clock
	if v.rejected != nil {
		return v
	}
	once := v.forOneDecision() || seldom
	shared := e.sharedOf(v, once)
	if once {
		e.acquire(v, shared)
		return v
	}
	v.build(shared, nil)
	v.excess = v.excessBytes()
	e.dropView(c.signature)
	e.views[c.signature], c.view = v, v
	e.makeRoom(v)
	return v
}

// forOneDecision reports whether the view serves one decision only. Either PreFilter
// narrowed the class to a few nodes, which are evaluated alone, or PreScore failed, which
// it may not the next time.
func (v *view) forOneDecision() bool { return v.narrowed != nil || v.failed != nil }

// build connects the view to its shared answers and makes its index. The index uses the
// memory of the old one; nil means there is none.
func (v *view) build(on *sharedAnswers, old *ranking.Index) {
	v.shared = on
	v.rowFilters = selected(v.filters, func(f *filter) bool {
		return f.Locality != framework.NodeOnly && f.cells == nil && !f.hosted
	})
	v.keepCells()
	shape := ranking.Shape{Shared: &on.combinations, Highest: v.highest, Brief: v.buffers != nil}
	if v.asksScores = !on.scored; v.asksScores {
		shape.Shared = nil
		v.takeColumns()
	}
	v.rowScorers = selected(v.scorers, func(s *scorer) bool {
		return s.cells == nil && (v.asksScores || s.Locality != framework.NodeOnly)
	})
	v.joinPass(on.table)
	shape.Own = v.ownColumns
	v.index = ranking.New(shape, old)
}

// takeColumns moves the scores that could be shared into columns of the view's own index.
func (v *view) takeColumns() {
	for k := range v.scorers {
		if s := &v.scorers[k]; s.column.shared {
			s.column = v.ownColumn()
		}
	}
}

// seen is when a class came by last, in decisions, and how often in a row it came back so
// soon that a view that was kept in between would still have been there.
type seen struct {
	at      uint64
	returns int
}

// returnsToKeep is how often in a row a class comes back that soon before its view is kept.
// To make a view that is kept takes as long as to make four that are not, and a pod that
// fits nowhere comes back a time or two.
const returnsToKeep = 2

// comesOften reports whether pods of the class come often enough to keep a view, and
// records this visit. Nothing else is kept of rare classes: they may never come back.
func (e *Engine) comesOften(c *class) bool {
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
	return s.returns >= returnsToKeep
}

// sharedOf finds or makes the answers that the view shares with other classes. If once is
// set, the class is rare: answers that no other class asks for are then made without
// scores, and the view scores feasible rows itself.
func (e *Engine) sharedOf(v *view, once bool) *sharedAnswers {
	if v.forOneDecision() {
		return newSharedAnswers(e.table, v, &e.parts)
	}
	e.keyBuf = v.keys.appendSharedSignature(e.keyBuf[:0], e.table, v.pod)
	e.keyBuf = binary.AppendUvarint(e.keyBuf, v.epochs)
	e.keyBuf = binary.AppendUvarint(e.keyBuf, v.columns)
	if known := e.shared[string(e.keyBuf)]; known != nil && known.agrees(v) {
		known.used = e.clock
		if !known.scored && (!once || known.madeFor != v.class.hash) {
			known.scored, known.revision = true, 0
		}
		return known
	}
	s := newSharedAnswers(e.table, v, &e.parts)
	s.madeFor, s.used, s.scored = v.class.hash, e.clock, !once || v.keys.profile.Host != nil
	if n := len(e.idleShared); n > 0 {
		s.reuse(e.idleShared[n-1])
		e.idleShared = e.idleShared[:n-1]
	}
	s.signature = string(e.keyBuf)
	e.shared[s.signature] = s
	e.dropShared(s)
	return s
}

// appendSharedSignature appends the profile's name and what its NodeOnly plugins read of
// the pod. Classes that agree in it share answers.
func (k *keys) appendSharedSignature(b []byte, t *table.Table, pod *object.Pod) []byte {
	b = append(append(b, k.profile.Name...), 0)
	for _, pl := range k.signers {
		if pl.Locality == framework.NodeOnly {
			b = appendOne(b, t, amongNodes(pl), pod)
		}
	}
	return b
}

// excessBytes returns how many rows the view counts for beyond its own rows, because its
// signature and labels are long.
func (v *view) excessBytes() int {
	n := len(v.class.signature)
	for key, value := range v.pod.Labels { // any order: a sum
		n += len(key) + len(value)
	}
	return max(0, n-fixedBytes)
}

// mostViews returns how many views the engine may keep.
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

// makeRoom drops the views used longest ago once all together are too large, a
// sixteenth of them at a time, and shared answers that no view uses.
func (e *Engine) makeRoom(keep *view) {
	if e.excess += keep.excess; len(e.views) > e.mostViews() {
		e.dropViews(keep)
	}
	e.dropShared(keep.shared)
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
	v.class.view = nil
	delete(e.views, signature)
}

func (e *Engine) dropViews(keep *view) {
	uses := make([]uint64, 0, len(e.views))
	e.excess = 0                // of views replaced since it may still hold some
	for _, v := range e.views { // any order: sorted below, and a sum
		uses = append(uses, v.used)
		e.excess += v.excess
	}
	slices.Sort(uses)
	stay := min(max(1, e.mostViews()-e.mostViews()/16), len(uses))
	maps.DeleteFunc(e.views, func(_ string, v *view) bool {
		drop := v != keep && v.used < uses[len(uses)-stay]
		if drop {
			e.excess -= v.excess
			v.class.view = nil
		}
		return drop
	})
	e.withKept = slices.DeleteFunc(e.withKept, func(v *view) bool { return e.views[v.class.signature] != v })
}

// dropShared drops the least recently used of the shared answers that no view uses, once
// they are many. It keeps their memory for new ones.
func (e *Engine) dropShared(keep *sharedAnswers) {
	excess := len(e.shared) - 2*len(e.views) - 16
	if excess <= 0 {
		return
	}
	inUse := map[*sharedAnswers]bool{keep: true}
	for _, views := range []map[string]*view{e.views, e.madeAhead} {
		for _, v := range views { // any order: fills a set
			inUse[v.shared] = true
		}
	}
	for _, v := range e.ahead { // some may have been dropped since
		inUse[v.shared] = true
	}
	if e.transient != nil {
		inUse[e.transient.shared] = true
	}
	if e.run != nil && e.run.view != nil {
		inUse[e.run.view.shared] = true
	}
	var idle []*sharedAnswers
	for _, s := range e.shared { // any order: sorted below
		if !inUse[s] {
			idle = append(idle, s)
		}
	}
	slices.SortFunc(idle, func(a, b *sharedAnswers) int {
		return cmp.Or(cmp.Compare(a.used, b.used), cmp.Compare(a.signature, b.signature))
	})
	for _, s := range idle[:min(len(idle), max(excess, idleShared))] {
		delete(e.shared, s.signature)
		if n := len(e.idleShared); n < idleShared && (n+1)*e.table.Rows() <= idleRows {
			e.idleShared = append(e.idleShared, s)
		}
	}
}

// idleShared and idleRows bound the shared answers that nobody uses and whose room is
// kept: about 20 bytes a row.
const (
	idleShared = 16
	idleRows   = 1 << 20
)

// A transient view is not kept. Its class comes by seldom, or its answers hold for one
// decision. When the decision is over the next transient view has its buffers.

// buffers are the columns of a transient view.
type buffers struct {
	index  *ranking.Index
	shared *sharedAnswers // where the view shares its answers with no other
}

// acquire makes v a transient view, in reused buffers.
func (e *Engine) acquire(v *view, s *sharedAnswers) {
	b := &buffers{}
	if n := len(e.buffers); n > 0 {
		b, e.buffers = e.buffers[n-1], e.buffers[:n-1]
	}
	if s.signature == "" && b.shared != nil {
		s.reuse(b.shared)
	}
	v.buffers, e.madeAhead[v.class.signature] = b, v
	v.build(s, b.index)
}

// release takes back the buffers of a transient view and releases the states of its
// plugins.
func (e *Engine) release(v *view) {
	for k := range v.filters {
		releaseState(v.filters[k].Plugin, &v.filters[k].in)
	}
	for k := range v.scorers {
		releaseState(v.scorers[k].Plugin, &v.scorers[k].in)
	}
	if v.buffers.index = v.index; v.shared.signature == "" {
		v.buffers.shared = v.shared
	}
	if e.madeAhead[v.class.signature] == v {
		delete(e.madeAhead, v.class.signature)
	}
	e.buffers = append(e.buffers, v.buffers)
}

// releaseState returns a state to its plugin for reuse. Nothing may read the state
// afterwards. It skips NodeOnly plugins, whose states the shared answers still use.
func releaseState(pl *framework.Plugin, in *framework.Input) {
	if pl.Release != nil && in.State != nil && pl.Locality != framework.NodeOnly {
		pl.Release(in.State)
		in.State = nil
	}
}

// releaseTransient releases the transient view of the last decision.
func (e *Engine) releaseTransient() {
	if e.transient != nil {
		e.release(e.transient)
		e.transient = nil
	}
}
