package engine

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Nominations tells which pods are nominated to nodes.
type Nominations interface {
	// NominatedTo lists the pods nominated to the node.
	NominatedTo(node string) []*object.Pod
	// NominatedNodes lists the nodes that pods are nominated to.
	NominatedNodes() []string
	// NominatedNode is the node that the pod is nominated to, "" for none.
	NominatedNode(uid types.UID) string
	// Renominated lists the nodes whose nominations changed after the revision,
	// and the revision now; false when that is not known any more.
	Renominated(since uint64) (nodes []string, now uint64, known bool)
}

// since lists the nodes whose nominations may have changed after the revision,
// or that have any where that is not known.
func since(n Nominations, revision uint64) (nodes []string, now uint64, known bool) {
	if nodes, now, known = n.Renominated(revision); !known {
		nodes = n.NominatedNodes()
	}
	return nodes, now, known
}

// learn has the table hear of the pod affinity of nominated pods: classes that
// it is about are told apart before such a pod is tried on a row.
func (e *Engine) learn(nominated Nominations) {
	if nominated == nil {
		return
	}
	nodes, now, _ := since(nominated, e.learnt)
	e.learnt = now
	if swept := e.table.Swept(); swept != e.swept {
		nodes, e.swept = nominated.NominatedNodes(), swept
	}
	for _, node := range nodes {
		for _, p := range nominated.NominatedTo(node) {
			e.table.Learn(p)
		}
	}
}

// considerNominated evaluates the feasible rows to which pods of at least this
// priority are nominated with those pods placed.
func (o *Outcome) considerNominated() {
	o.considered = true
	switch {
	case o.nominated == nil || len(o.nominated.NominatedNodes()) == 0 || o.rows == nil && o.view.feasible == 0:
	case o.Local() && o.rows == nil:
		o.blocked = o.tryStale(&o.view.opened, standing.feasible)
	default:
		o.blockNominated(standing.feasible)
	}
}

// blockNominated notes which of the rows with nominated pods, picked by what the
// view says of them, those pods block.
func (o *Outcome) blockNominated(pick func(standing) bool) {
	for _, node := range o.nominated.NominatedNodes() {
		row, ok := o.engine.table.Find(node)
		if !ok || (o.rows != nil && !slices.Contains(o.rows, row)) || !pick(o.view.at[row]) {
			continue
		}
		if b, blocks := o.tryNominated(row); blocks {
			o.setBlocked(row, b)
		}
	}
}

// blockedBy is how nominated pods block the row, if it is known to be so and the
// view does not say the same.
func (o *Outcome) blockedBy(row table.Row) (b block, blocks bool) {
	if o.blocked != nil {
		if b, blocks = o.blocked[row]; blocks {
			return b, true
		}
	}
	if len(o.rest) > 0 {
		b, blocks = o.rest[row]
	}
	return b, blocks
}

func (o *Outcome) setBlocked(row table.Row, b block) {
	if o.blocked == nil {
		o.blocked = map[table.Row]block{}
	}
	o.blocked[row] = b
}

// tryNominated runs the filters on the row with the nominated pods placed that
// count against the pod.
func (o *Outcome) tryNominated(row table.Row) (b block, blocks bool) {
	o.withNominated(row, o.nominated, func() { b, blocks = firstBlock(o.view.filters, row) })
	return b, blocks
}

// considerRest looks at the rows that are infeasible anyway. v1.36 looks at a
// node with the nominated pods placed first, and says what it finds then; that
// matters only to who wants to know why.
func (o *Outcome) considerRest() {
	if o.nominated == nil || o.complete {
		return
	}
	o.complete = true
	if len(o.nominated.NominatedNodes()) == 0 {
		return
	}
	if !o.considered { // the pod is where it was nominated to
		o.considerNominated()
	}
	infeasible := func(at standing) bool { return !at.feasible() && at != vacant }
	if o.Local() && o.rows == nil {
		o.rest = o.tryStale(&o.view.closed, infeasible)
	} else {
		o.blockNominated(infeasible)
	}
}

// tried is how nominated pods block rows, where the view does not say the same.
// It is kept from one pod of a class to the next: only rows that changed, or
// whose nominations did, are tried again.
type tried struct {
	priority    int32
	revision    uint64 // of the table
	nominations uint64
	blocks      map[table.Row]block
	again       table.Row // left out: the pod at hand was nominated there
}

// tryStale brings x up to date for the rows that pick picks, and returns its
// blocks, those for the pod at hand; nil: there are none.
func (o *Outcome) tryStale(x *tried, pick func(standing) bool) map[table.Row]block {
	v, t := o.view, o.engine.table
	own, nominated := t.Find(o.nominated.NominatedNode(o.pod.UID))
	for _, row := range x.stale(t, o.nominated, o.pod.Priority) {
		delete(x.blocks, row)
		if pick(v.at[row]) && !(nominated && row == own) {
			if b, blocks := o.tryNominated(row); blocks && blockKey(b) != v.first(row) {
				x.blocks[row] = b
			}
		}
	}
	blocks := x.blocks
	if nominated {
		delete(x.blocks, own)
		if x.again = own; pick(v.at[own]) {
			if b, refused := o.tryNominated(own); refused {
				blocks = maps.Clone(blocks)
				blocks[own] = b
			}
		}
	}
	if len(blocks) == 0 {
		return nil
	}
	return blocks
}

// stale lists the rows to be tried, some of them more than once, and takes them
// as done.
func (x *tried) stale(t *table.Table, nominated Nominations, priority int32) (rows []table.Row) {
	if x.blocks == nil || x.priority != priority {
		*x = tried{priority: priority, blocks: map[table.Row]block{}, again: -1}
	}
	nodes, now, known := since(nominated, x.nominations)
	if known = known && x.revision != 0; known {
		for _, row := range t.AppendChanged(nil, x.revision, t.Rows()) {
			if t.Lasting(row) > x.revision {
				rows = append(rows, row)
			}
		}
	} else {
		clear(x.blocks)
		nodes = nominated.NominatedNodes()
	}
	for _, node := range nodes {
		if row, ok := t.Find(node); ok {
			rows = append(rows, row)
		}
	}
	if x.again >= 0 {
		rows = append(rows, x.again)
	}
	x.revision, x.nominations, x.again = t.Revision(), now, -1
	return rows
}

// withNominated calls f while the nominated pods that count against the pod
// are placed on the row; it does not when none counts.
func (o *Outcome) withNominated(row table.Row, nominated Nominations, f func()) {
	t := o.engine.table
	list := nominated.NominatedTo(t.Name(row))
	counts := func(n *object.Pod) bool { return n.UID != o.pod.UID && n.Priority >= o.pod.Priority }
	if !slices.ContainsFunc(list, counts) {
		return
	}
	mark := t.Checkpoint()
	defer t.Undo(mark)
	for _, n := range list {
		if counts(n) {
			t.Place(n, t.Name(row))
		}
	}
	f()
}

// Local is for framework.PostFilterCall: no filter of the class looks beyond
// the row, and none can fail.
func (o *Outcome) Local() bool {
	return !o.view.fallible && !slices.ContainsFunc(o.view.filters, func(f filter) bool { return f.CellFilter != nil })
}

// Lack is for framework.PostFilterCall.
func (o *Outcome) Shortfall(r table.Row, lack []int64) []int64 {
	for k := range o.view.filters {
		if f := &o.view.filters[k]; f.AdditiveFilter != nil {
			lack = f.AdditiveFilter.Shortfall(&f.in, r, lack)
		}
	}
	return lack
}

// Gives is for framework.PostFilterCall.
func (o *Outcome) Frees(p *object.Pod, gives []int64) []int64 {
	for k := range o.view.filters {
		if f := &o.view.filters[k]; f.AdditiveFilter != nil {
			gives = f.AdditiveFilter.Frees(&f.in, p, gives)
		}
	}
	return gives
}

// keptRows bounds the rows of all views for which plugins keep something: about
// 100 bytes a row.
const keptRows = 1 << 19

// Kept is for framework.PostFilterCall: what the plugin left there lasts as
// long as the class's view, or as this decision where the view is not kept.
func (o *Outcome) Kept(plugin string) *any {
	v, e := o.view, o.engine
	if v.kept == nil {
		v.kept = map[string]*any{}
		if e.views[v.class.key] == v {
			e.keep(v)
		}
	}
	if v.kept[plugin] == nil {
		v.kept[plugin] = new(any)
	}
	return v.kept[plugin]
}

// keep lists the view among those for which plugins keep something.
func (e *Engine) keep(v *view) {
	e.keeping = append(e.keeping, v)
	if most := max(1, keptRows/max(1, e.table.Rows())); len(e.keeping) > most {
		e.keeping[0].kept = nil
		e.keeping = slices.Delete(e.keeping, 0, 1)
	}
}
