package engine

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// Nominator returns which pods are nominated to which nodes.
type Nominator interface {
	// NominatedTo lists the pods nominated to the node. The list does not change later.
	NominatedTo(node string) []*object.Pod
	// NominatedNodes lists the nodes that pods are nominated to.
	NominatedNodes() []string
	// NominatedNode returns the node that the pod is nominated to, "" for none.
	NominatedNode(uid types.UID) string
	// Renominated lists the nodes whose nominations changed after the revision,
	// and the revision now; false when that is not known any more.
	Renominated(since uint64) (nodes []string, now uint64, known bool)
}

// changedNominations returns the nodes whose nominations may have changed after the
// revision. If that is unknown, it returns all nodes that have any.
func changedNominations(n Nominator, since uint64) (nodes []string, now uint64, known bool) {
	if nodes, now, known = n.Renominated(since); !known {
		nodes = n.NominatedNodes()
	}
	return nodes, now, known
}

// trackTerms registers the pod affinity terms of nominated pods with the table. The terms
// then count in the signatures of the pods that they select, before a nominated pod is
// tried on a row.
func (e *Engine) trackTerms(nominated Nominator) {
	if nominated == nil {
		return
	}
	nodes, now, known := changedNominations(nominated, e.nominations)
	if !known { // some may have ended
		nodes = slices.AppendSeq(slices.Clone(nodes), e.table.TrackedNominations())
		slices.Sort(nodes)
	}
	e.nominations = now
	if swept := e.table.Swept(); swept != e.swept {
		nodes, e.swept = slices.Concat(nodes, nominated.NominatedNodes()), swept
	}
	for _, node := range nodes {
		e.table.TrackNominated(node, nominated.NominatedTo(node))
	}
}

// nominatedRows holds the rows whose verdict nominated pods change. Until complete is
// set, only feasible rows have been evaluated with the nominated pods placed.
type nominatedRows struct {
	Nominator                             // nil: there are none
	blocked   map[table.Row]ranking.Cause // feasible rows that they block
	others    map[table.Row]ranking.Cause // infeasible rows with another cause then
	tried     bool                        // feasible rows have been looked at
	complete  bool
}

// blocks reports whether nominated pods block the row, which is feasible without them.
func (n *nominatedRows) blocks(r table.Row) bool {
	if n.blocked == nil {
		return false
	}
	_, blocked := n.blocked[r]
	return blocked
}

// causeAt returns how nominated pods block the row. It returns no cause if they do not,
// were not tried, or leave the view's cause as it is.
func (n *nominatedRows) causeAt(r table.Row) ranking.Cause {
	if n.blocked != nil {
		if c, blocked := n.blocked[r]; blocked {
			return c
		}
	}
	if len(n.others) > 0 {
		return n.others[r]
	}
	return ranking.Cause{}
}

// changed returns the set of rows whose cause nominated pods change. rows is the number
// of rows of the table.
func (n *nominatedRows) changed(rows int) table.RowSet {
	if len(n.blocked)+len(n.others) == 0 {
		return nil
	}
	set := make(table.RowSet, (rows+63)/64)
	for _, causes := range []map[table.Row]ranking.Cause{n.blocked, n.others} {
		for r := range causes { // any order: fills a set
			set[r>>6] |= 1 << (r & 63)
		}
	}
	return set
}

// takeOwnNomination chooses the node that the pod itself is nominated to, if it is
// feasible, without looking at the others.
func (o *Outcome) takeOwnNomination() bool {
	if o.extenders != nil {
		return false
	}
	r, ok := o.engine.table.Find(o.pod.NominatedNode)
	if !ok || !o.isCandidate(r) || !o.view.index.IsFeasible(r) {
		return false
	}
	c := o.tryNominatedOn(r)
	o.view.syncCells() // for who asks for the scores of nodes, too
	if c.Rejects() || !o.fits(r) {
		return false
	}
	o.Row, o.Feasible = r, 1
	return true
}

// tryNominated evaluates the feasible rows to which pods of at least this priority
// are nominated with those pods placed.
func (o *Outcome) tryNominated() {
	n := &o.nominated
	n.tried = true
	switch {
	case n.Nominator == nil || len(n.NominatedNodes()) == 0 || o.narrowed == nil && o.view.index.Feasible == 0:
	case o.Local() && o.narrowed == nil:
		n.blocked = o.refreshCauses(&o.view.onFeasible, o.view.index.IsFeasible)
	default:
		n.blocked = o.tryNominatedRows(n.blocked, o.view.index.IsFeasible)
	}
}

// tryNominatedOthers finds the rows, infeasible anyway, for which nominated pods change
// the cause. v1.36 evaluates a node with the nominated pods placed first, and reports
// that cause; only explanations need it.
func (o *Outcome) tryNominatedOthers() {
	n := &o.nominated
	if n.Nominator == nil || n.complete {
		return
	}
	n.complete = true
	if len(n.NominatedNodes()) == 0 {
		return
	}
	if !n.tried { // the pod is where it was nominated to
		o.tryNominated()
	}
	rejected := func(r table.Row) bool { // by a filter that pods have a say in, or after one
		return o.view.index.Cause(r).Rejects()
	}
	if o.Local() && o.narrowed == nil {
		n.others = o.refreshCauses(&o.view.onRejected, rejected)
	} else {
		n.blocked = o.tryNominatedRows(n.blocked, rejected)
	}
}

// tryNominatedRows adds to the map the rows, of those that of selects, that nominated
// pods block, with the cause.
func (o *Outcome) tryNominatedRows(blocked map[table.Row]ranking.Cause, of func(table.Row) bool) map[table.Row]ranking.Cause {
	l := &o.engine.nominated
	l.follow(o.engine.table, o.nominated.Nominator)
	for i := range l.list {
		node := &l.list[i]
		r := node.row
		if node.highest < o.pod.Priority || !o.isCandidate(r) || !of(r) {
			continue
		}
		if c := o.tryPlaced(r, o.counted(node, o.nominated.Nominator)); c.Rejects() {
			if blocked == nil {
				blocked = map[table.Row]ranking.Cause{}
			}
			blocked[r] = c
		}
	}
	return blocked
}

// tryNominatedOn returns the first filter that rejects the row with the nominated pods
// placed that count against the pod. No filter: none counts, or they leave the row
// feasible.
func (o *Outcome) tryNominatedOn(r table.Row) ranking.Cause {
	return o.tryPlaced(r, o.countedOn(r, o.nominated.Nominator))
}

// tryPlaced returns the first filter that rejects the row once the pods have come to it.
// The pods are those nominated to the row that count against the pod; they are placed on
// the table only if the verdict cannot be told without.
func (o *Outcome) tryPlaced(r table.Row, came []*object.Pod) (c ranking.Cause) {
	if len(came) == 0 {
		return c
	}
	found, known := o.causeExchanged(r, framework.Nobody, came)
	if known && !o.engine.checks {
		return found
	}
	o.withNominated(r, o.nominated.Nominator, func() { c = firstCause(o.view.filters, r) })
	if known && c != found {
		panic(fmt.Sprintf("engine: node %q with %d nominated pods: filter %d, verdict %d; by a try %d, %d",
			o.engine.table.Name(r), len(came), found.Filter, found.Verdict, c.Filter, c.Verdict))
	}
	return c
}

// nominatedCauses holds how nominated pods block rows, where that differs from the view.
// It is kept between the pods of a class: only rows that changed, or whose nominations
// did, are tried again.
type nominatedCauses struct {
	priority    int32
	revision    uint64 // of the table
	nominations uint64
	causes      map[table.Row]ranking.Cause
	leftOut     table.Row // the pod at hand was nominated there; -1: none
}

// refreshCauses brings x up to date for the rows that of selects, and returns its causes
// for the pod at hand; nil means none.
func (o *Outcome) refreshCauses(x *nominatedCauses, of func(table.Row) bool) map[table.Row]ranking.Cause {
	v, own := o.view, o.ownRow(o.nominated.Nominator)
	for _, r := range x.stale(o) {
		delete(x.causes, r)
		if of(r) && r != own {
			if c := o.tryNominatedOn(r); c.Rejects() && c != v.cause(o.engine.table, r) {
				x.causes[r] = c
			}
		}
	}
	causes := x.causes
	if own >= 0 {
		delete(x.causes, own)
		if x.leftOut = own; of(own) {
			if c := o.tryNominatedOn(own); c.Rejects() {
				causes = maps.Clone(causes)
				causes[own] = c
			}
		}
	}
	if len(causes) == 0 {
		return nil
	}
	return causes
}

// stale returns the rows to try again for the pod at hand, some of them more than once,
// and marks them as done.
func (x *nominatedCauses) stale(o *Outcome) (rows []table.Row) {
	t, l := o.engine.table, &o.engine.nominated
	if x.causes == nil || x.priority != o.pod.Priority {
		*x = nominatedCauses{priority: o.pod.Priority, causes: map[table.Row]ranking.Cause{}, leftOut: -1}
	}
	nodes, now, known := o.nominated.Renominated(x.nominations)
	if known && x.revision != 0 {
		for _, r := range t.AppendChanged(nil, x.revision, t.Rows()) {
			if t.Lasting(r) > x.revision {
				rows = append(rows, r)
			}
		}
		for _, node := range nodes {
			if r, ok := t.Find(node); ok {
				rows = append(rows, r)
			}
		}
	} else {
		clear(x.causes)
		l.follow(t, o.nominated.Nominator)
		for i := range l.list {
			if l.list[i].highest >= o.pod.Priority {
				rows = append(rows, l.list[i].row)
			}
		}
	}
	if x.leftOut >= 0 {
		rows = append(rows, x.leftOut)
	}
	x.revision, x.nominations, x.leftOut = t.Revision(), now, -1
	return rows
}

// withNominated calls f while the nominated pods that count against the pod are placed on
// the row. It does not call f if none counts.
func (o *Outcome) withNominated(r table.Row, nominated Nominator, f func()) {
	counted := o.countedOn(r, nominated)
	if len(counted) == 0 {
		return
	}
	t := o.engine.table
	mark := t.Checkpoint()
	defer t.Undo(mark)
	for _, p := range counted {
		t.AddPod(p, t.Name(r))
	}
	f()
}
