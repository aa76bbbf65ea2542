package engine

import (
	"fmt"
	"iter"
	"maps"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/nominations"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// Nominator tells which pods are nominated to which nodes; see nominations.Nominator.
type Nominator = nominations.Nominator

// nominatedRows holds, for one decision, the rows on which the nominated pods change the
// verdict.
type nominatedRows struct {
	Nominator // nil: there are no nominations
	// blocked holds the rows that a filter rejects once the nominated pods are placed, with the
	// cause.
	blocked map[table.Row]ranking.Cause
	// others holds the infeasible rows that another filter rejects first then, with the cause.
	others map[table.Row]ranking.Cause
	// tried is set once feasible rows were evaluated with the nominated pods placed.
	tried bool
	// complete is set once infeasible rows were, too.
	complete bool
	// own is the row that the pod itself is nominated to, -1 if none; valid if ownKnown.
	own      table.Row
	ownKnown bool
}

// blocks reports whether a filter rejects the row, feasible without the nominated pods, with them
// placed. It is false before tryNominated.
func (n *nominatedRows) blocks(r table.Row) bool {
	if n.blocked == nil {
		return false
	}
	_, blocked := n.blocked[r]
	return blocked
}

// causeAt returns the first filter that rejects the row with the nominated pods placed. It
// returns the zero Cause if they make no difference or were not tried.
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

// changed returns the set of rows whose first cause the nominated pods change; nil if there
// are none. rows is the number of rows of the table.
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

// feasibleOwn returns the row that the pod itself is nominated to (Pod.NominatedNode), if that is
// feasible with the other nominated pods counted; else false. No other row is evaluated. With
// extenders it is always false.
func (x *feasibility) feasibleOwn() (r table.Row, feasible bool) {
	if x.pod.NominatedNode == "" || x.extenders != nil {
		return 0, false
	}
	r, ok := x.engine.table.Find(x.pod.NominatedNode)
	if !ok || !x.isCandidate(r) || !x.view.index.IsFeasible(r) {
		return 0, false
	}
	c := x.tryNominatedOn(r)
	x.view.syncCells() // for who asks for the scores of nodes, too
	return r, !c.Rejects() && x.fits(r)
}

// tryNominated finds the feasible rows that the pod does not fit once the other pods that
// are nominated there, with at least its priority, are placed. It records them in
// nominated.blocked; they are not chosen.
func (x *feasibility) tryNominated() {
	n := &x.nominated
	n.tried = true
	switch {
	case n.Nominator == nil || len(n.NominatedNodes()) == 0 || x.narrowed == nil && x.view.index.Feasible == 0:
	case x.view.local() && x.narrowed == nil:
		n.blocked = x.refreshCauses(&x.view.onFeasible, x.view.index.IsFeasible)
	default:
		n.blocked = x.tryNominatedRows(n.blocked, x.view.index.IsFeasible)
	}
}

// tryNominatedOthers evaluates the infeasible rows with the nominated pods placed, once a decision,
// and records causes that differ: kube-scheduler reports the cause with the nominated pods placed.
// They go to nominated.others, or to blocked where verdicts on a row depend on other rows or the
// pod is narrowed. Only explanations need them.
func (x *feasibility) tryNominatedOthers() {
	n := &x.nominated
	if n.Nominator == nil || n.complete {
		return
	}
	n.complete = true
	if len(n.NominatedNodes()) == 0 {
		return
	}
	if !n.tried { // the pod is where it was nominated to
		x.tryNominated()
	}
	rejected := func(r table.Row) bool { // by a filter that pods have a say in, or after one
		return x.view.index.Cause(r).Rejects()
	}
	if x.view.local() && x.narrowed == nil {
		n.others = x.refreshCauses(&x.view.onRejected, rejected)
	} else {
		n.blocked = x.tryNominatedRows(n.blocked, rejected)
	}
}

// tryNominatedRows evaluates with the nominated pods placed each row that has some and for which of
// is true. It adds the rows that are rejected, with the cause, to the map blocked, which may be
// nil, and returns that map.
func (x *feasibility) tryNominatedRows(blocked map[table.Row]ranking.Cause, of func(table.Row) bool) map[table.Row]ranking.Cause {
	nodes := x.engine.nominated.Follow(x.engine.table, x.nominated.Nominator)
	for i := range nodes {
		node := &nodes[i]
		r := node.Row
		if !node.Concerns(x.pod.Priority) || !x.isCandidate(r) || !of(r) {
			continue
		}
		if c := x.tryPlaced(r, x.counted(node, x.nominated.Nominator)); c.Rejects() {
			if blocked == nil {
				blocked = map[table.Row]ranking.Cause{}
			}
			blocked[r] = c
		}
	}
	return blocked
}

// tryNominatedOn returns the first filter that rejects the row with the nominated pods
// placed that count against the pod. The Cause rejects nothing if none counts or the row
// stays feasible.
func (x *feasibility) tryNominatedOn(r table.Row) ranking.Cause {
	return x.tryPlaced(r, x.countedOn(r, x.nominated.Nominator))
}

// tryPlaced returns the first filter that rejects the row once the pods in came are on it, the zero
// Cause if came is empty. came are the pods nominated to the row that count against the pod; they
// are placed on the table for the trial only if the verdict cannot be told without, or under
// CheckShortCuts.
func (x *feasibility) tryPlaced(r table.Row, came []*object.Pod) (c ranking.Cause) {
	if len(came) == 0 {
		return c
	}
	found, known := x.causeExchanged(r, framework.Nobody, came)
	if known && !x.engine.checks {
		return found
	}
	x.withNominated(r, x.nominated.Nominator, func() { c = firstCause(x.view.filters, r) })
	if known && c != found {
		panic(fmt.Sprintf("engine: node %q with %d nominated pods: filter %d, verdict %d; by a try %d, %d",
			x.engine.table.Name(r), len(came), found.Filter, found.Verdict, c.Filter, c.Verdict))
	}
	return c
}

// setNominated passes the nominated pods that count against the pod, on all rows, to the
// filters whose verdicts depend on whole topology domains (SetNominated), as a pod that is
// nominated to one node may rule out others.
func (x *feasibility) setNominated(nominated Nominator) {
	for _, f := range x.view.cellFilters {
		if f.CellFilter.SetNominated != nil {
			f.CellFilter.SetNominated(&f.in, x.pod, x.ownRow(nominated), x.allCounted(nominated))
		}
	}
}

// allCounted returns all nominated pods that count against the pod (others, of at least its
// priority), with the row that each is nominated to, in any order; none if nominated is nil.
func (x *feasibility) allCounted(nominated Nominator) iter.Seq2[table.Row, *object.Pod] {
	return func(yield func(table.Row, *object.Pod) bool) {
		if nominated == nil {
			return
		}
		nodes := x.engine.nominated.Follow(x.engine.table, nominated)
		for i := range nodes {
			for _, p := range x.counted(&nodes[i], nominated) {
				if !yield(nodes[i].Row, p) {
					return
				}
			}
		}
	}
}

// nominatedCauses keeps, between decisions on pods of a class, the causes by which nominated pods
// make a filter reject a row, where they differ from the view's. Only rows that changed, or whose
// nominations changed, are tried again.
type nominatedCauses struct {
	priority    int32                       // of the pods; for another one all causes are dropped
	revision    uint64                      // of the table at the last try; 0: no row was tried
	nominations uint64                      // version of the nominations
	causes      map[table.Row]ranking.Cause // by row; rows whose cause is the view's are left out
	// leftOut is the row that the last pod was nominated to itself, so that causes lacks it; -1:
	// none.
	leftOut table.Row
}

// refreshCauses brings kept up to date and returns it for the pod at hand: by row, the first filter
// that rejects the row with the nominated pods placed, if that is not the view's cause; nil if
// there is no such row. Only rows for which of is true count. A pod's own nomination does not count
// against it, so the map may be a copy that differs at its own row.
func (x *feasibility) refreshCauses(kept *nominatedCauses, of func(table.Row) bool) map[table.Row]ranking.Cause {
	v, own := x.view, x.ownRow(x.nominated.Nominator)
	for _, r := range kept.stale(x) {
		delete(kept.causes, r)
		if of(r) && r != own {
			if c := x.tryNominatedOn(r); c.Rejects() && c != v.cause(r) {
				kept.causes[r] = c
			}
		}
	}
	causes := kept.causes
	if own >= 0 {
		delete(kept.causes, own)
		if kept.leftOut = own; of(own) {
			if c := x.tryNominatedOn(own); c.Rejects() {
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

// stale returns the rows to try again for the pod at hand, some more than once, and marks
// the causes as up to date with the table and the nominations. It drops all causes if the
// priority changed or the changes of nominations are not known.
func (kept *nominatedCauses) stale(x *feasibility) (rows []table.Row) {
	t := x.engine.table
	if kept.causes == nil || kept.priority != x.pod.Priority {
		*kept = nominatedCauses{priority: x.pod.Priority, causes: map[table.Row]ranking.Cause{}, leftOut: -1}
	}
	nodes, now, known := x.nominated.Renominated(kept.nominations)
	if known && kept.revision != 0 {
		for _, r := range t.AppendChanged(nil, kept.revision, t.Rows()) {
			if t.Lasting(r) > kept.revision {
				rows = append(rows, r)
			}
		}
		for _, node := range nodes {
			if r, ok := t.Find(node); ok {
				rows = append(rows, r)
			}
		}
	} else {
		clear(kept.causes)
		for _, node := range x.engine.nominated.Follow(t, x.nominated.Nominator) {
			if node.Concerns(x.pod.Priority) {
				rows = append(rows, node.Row)
			}
		}
	}
	if kept.leftOut >= 0 {
		rows = append(rows, kept.leftOut)
	}
	kept.revision, kept.nominations, kept.leftOut = t.Revision(), now, -1
	return rows
}

// withNominated calls f while the pods nominated to the row that count against the pod are
// placed there, and removes them again. It does not call f if no pod counts.
func (x *feasibility) withNominated(r table.Row, nominated Nominator, f func()) {
	counted := x.countedOn(r, nominated)
	if len(counted) == 0 {
		return
	}
	// First: what is counted anew in a trial takes a tried pod for one that is there.
	for _, f := range x.view.cellFilters {
		f.cells.sync(&f.in)
	}
	t := x.engine.table
	mark := t.Checkpoint()
	defer t.Undo(mark)
	for _, p := range counted {
		t.AddPod(p, t.Name(r))
	}
	f()
}

// countedOn returns the pods nominated to the row whose resources the pod must leave free:
// others, of at least its priority. nil if nominated is nil.
func (x *feasibility) countedOn(r table.Row, nominated Nominator) []*object.Pod {
	if nominated == nil {
		return nil
	}
	x.engine.nominated.Follow(x.engine.table, nominated)
	return x.counted(x.engine.nominated.On(r), nominated)
}

// counted returns those of the pods nominated to n that count against the pod: others, of
// at least its priority. n may be nil.
func (x *feasibility) counted(n *nominations.Node, nominated Nominator) []*object.Pod {
	if n == nil || !n.Concerns(x.pod.Priority) {
		return nil
	}
	return n.Against(x.pod, x.ownRow(nominated))
}

// ownRow returns the row of the node that the pod itself is nominated to according to nominated, -1
// if none. It is looked up once a decision.
func (x *feasibility) ownRow(nominated Nominator) table.Row {
	if nominated == nil {
		return -1
	}
	if !x.nominated.ownKnown {
		x.nominated.own, x.nominated.ownKnown = -1, true
		if r, ok := x.engine.table.Find(nominated.NominatedNode(x.pod.UID)); ok {
			x.nominated.own = r
		}
	}
	return x.nominated.own
}
