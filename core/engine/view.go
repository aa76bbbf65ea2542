package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/answers"
	"github.com/berth-scheduler/berth/core/classes"
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// view holds what the engine knows of one class of pods: for each row whether it is
// feasible, else the first filter that rejects it with its verdict, and the scores.
type view struct {
	table *table.Table
	class *class
	keys  *classes.Keys
	pod   *object.Pod // the one that it was made for
	preFiltered
	failed *decision.Status // PreScore failed
	// preFilterResults holds the results of PreFilter plugins, in their order, up to one
	// that ended it. It is set only if the profile has hosted plugins.
	preFilterResults []framework.PreFilterResult

	filters     []filter // all of them, in the profile's order
	scorers     []scorer // all of them, in the profile's order
	cells       []*cells // of the filters and scorers that answer by cells
	cellFilters []*filter
	cellsKept   bool // each of cells has a column
	// hostedFilters are asked afresh in each decision.
	hostedFilters []*filter
	fallible      bool // one of the filters can fail
	columns       int  // values of a row in the index
	known         int  // of these the first that partitions know
	highest       int64

	// closing filters are the first ones. They have partitions, and close the rows that
	// they reject: no other filter is asked about these.
	closing    int
	rowFilters []*filter // the others that answer by rows
	pass       *headroom.Pass
	index      *ranking.Index

	revision       uint64 // of the table; 0: no row was evaluated
	columnRevision uint64 // of the table
	epochs         uint64

	visits  int    // decisions on the class in a row, each soon after the one before
	used    uint64 // when, in decisions; for dropping the oldest
	excess  int    // what its bytes count for, in rows
	onTrial bool

	// onFeasible and onRejected hold how nominated pods change the verdict on feasible
	// and on rejected rows.
	onFeasible, onRejected nominatedCauses
	kept                   map[string]*any // what plugins left, by name
}

// column says which value of a row in the index is meant, if it is kept there.
type column struct {
	kept bool
	at   int
}

// current reports whether what prepare made still holds.
func (v *view) current() bool {
	return v.columnRevision == v.table.ColumnRevision() && v.epochs == v.keys.Epoch(v.table)
}

// build finds the partitions of the view's plugins, and lists the plugins that are asked
// about rows. The view evaluates rows into the index, whatever was in it.
func (v *view) build(store *answers.Store, index *ranking.Index) {
	v.index, v.revision = index, 0
	for v.closing < len(v.filters) && answers.Keeps(v.filters[v.closing].Plugin) && v.narrowed == nil {
		f := &v.filters[v.closing]
		f.said = store.Filter(f.Plugin, &f.in)
		v.closing++
	}
	for k := v.closing; k < len(v.filters); k++ {
		if f := &v.filters[k]; f.cells == nil && !f.hosted {
			v.rowFilters = append(v.rowFilters, f)
		}
	}
	for k := range v.scorers {
		if s := &v.scorers[k]; s.cells == nil && answers.Keeps(s.Plugin) && v.narrowed == nil {
			if s.said = store.Score(s.Plugin, &s.in); s.column.kept {
				v.known++
			}
		}
	}
	v.joinPass()
}

// watchPass adds the watchers of the plugins that are in the pass.
func (v *view) watchPass() {
	watch := v.keys.Profile.Watch
	if watch == nil {
		return
	}
	for _, f := range v.rowFilters {
		if f.inPass {
			v.pass.Watch(watch(f.Plugin, profile.Filter))
		}
	}
	for k := range v.scorers {
		if s := &v.scorers[k]; s.inPass {
			v.pass.Watch(watch(s.Plugin, profile.Score))
		}
	}
}

func (v *view) shape() ranking.Shape {
	return ranking.Shape{Values: v.columns, Known: v.known, Highest: v.highest}
}

// joinPass finds the plugins that the pass evaluates in one loop.
func (v *view) joinPass() {
	p := &headroom.Pass{}
	for _, f := range v.rowFilters {
		f.inPass = p.JoinFilter(f.in.Sums)
	}
	for k := range v.scorers {
		s := &v.scorers[k]
		s.inPass = p.JoinScore(s.headroom, s.weight)
	}
	if p.Complete() {
		v.pass = p
		v.watchPass()
		return
	}
	for _, f := range v.rowFilters {
		f.inPass = false
	}
	for k := range v.scorers {
		v.scorers[k].inPass = false
	}
}

// refresh brings the view up to the table's revision. Few changed rows are
// evaluated again; where there are many, or at first sight, all are, over the
// cores.
func (v *view) refresh(store *answers.Store, workers int, found *scratch) {
	for k := range v.filters[:v.closing] {
		f := &v.filters[k]
		store.FollowFilter(f.said, f.Plugin, &f.in)
	}
	for k := range v.scorers {
		if s := &v.scorers[k]; s.said != nil {
			store.FollowScore(s.said, s.Plugin, &s.in)
		}
	}
	if v.cellsKept {
		v.syncCells()
	}
	if v.revision == 0 || !v.replay(found) {
		v.begin(store.Live(v.table), workers, found)
	}
	v.index.Count()
	v.revision = v.table.Revision()
}

// grouped reports whether the groups of the index decide: every plugin that answers by
// cells has a column.
func (v *view) grouped() bool { return v.cellsKept || len(v.cells) == 0 }

// replay evaluates the rows that changed since the view's revision. It gives up
// (false) when they are so many that a full pass is cheaper.
func (v *view) replay(found *scratch) bool {
	t := v.table
	limit := 1 + t.Rows()/8
	found.rows = t.AppendChanged(found.rows[:0], v.revision, limit+1)
	if len(found.rows) > limit {
		return false
	}
	v.index.Resize(t.Rows())
	t.NodesChanged(v.revision, func(r table.Row) bool {
		if v.closingCause(r).Filter == ranking.Feasible {
			v.index.Open(r)
		} else {
			v.index.Close(r)
		}
		return true
	})
	found.open = v.index.AppendOpenOf(found.rows, found.open[:0])
	return evaluateRows(found.open, v.columns, found, v.evaluate, v.update)
}

func (v *view) update(rows []table.Row, found *scratch) bool {
	return v.index.Update(rows, &found.Answers)
}

func (v *view) add(rows []table.Row, found *scratch) bool {
	v.index.Add(rows, &found.Answers)
	return true
}

// evaluate evaluates rows that are open: the pass, then the other plugins. All plugins are
// asked about rows that the pass leaves out.
func (v *view) evaluate(rows []table.Row, found *scratch) {
	clear(found.Filter[:len(rows)])
	clear(found.Score[:len(rows)])
	others := pluginSet{early: true, said: true}
	all := pluginSet{pass: true, early: true, said: true}
	if v.pass == nil {
		v.ask(rows, nil, found, all)
		return
	}
	order, at := found.unrejected[:len(rows)], found.at[:len(rows)]
	fit := headroom.AddRows(v.pass, v.table, rows, found.Score, order, at)
	if fit == len(rows) {
		v.ask(rows, nil, found, others)
		return
	}
	v.ask(order[:fit], at[:fit], found, others)
	v.ask(order[fit:], at[fit:], found, all)
}

// pluginSet selects plugins: those in the pass, the early filters, the scorers with
// partitions. All others are always in it.
type pluginSet struct{ pass, early, said bool }

// ask asks filters in their order about the rows that none before rejects, and the
// scorers about the rows that are left. Their scores are added to those in found. at holds
// the index of each row in found's list; nil: the rows are that list. Otherwise both lists
// are overwritten.
func (v *view) ask(left []table.Row, at []int32, found *scratch, which pluginSet) {
	for _, f := range v.rowFilters {
		switch {
		case f.inPass && !which.pass:
		case !f.inPass && f.early() && !which.early:
		default:
			left, at = f.narrow(left, at, found)
		}
	}
	if len(left) == 0 {
		return
	}
	for k := range v.scorers {
		switch s := &v.scorers[k]; {
		case s.cells != nil, s.inPass && !which.pass, s.said != nil && !which.said:
		default:
			s.ask(left, at, found)
		}
	}
	if !v.cellsKept {
		return
	}
	for _, c := range v.cells {
		cells := found.scores[:len(left)]
		c.of(c.in, left, cells)
		found.setValues(c.column, cells, at)
	}
}

// closingCause returns the first closing filter that rejects the row. Its Filter is
// Feasible if none does, and noNode if there is no node.
func (v *view) closingCause(r table.Row) ranking.Cause {
	if v.table.Node(r) == nil {
		return ranking.Cause{Filter: noNode}
	}
	for k := range v.filters[:v.closing] {
		f := &v.filters[k]
		if verdict := f.said.At(r); verdict != uint64(framework.Fits) {
			return ranking.Cause{Filter: f.position, Verdict: verdict}
		}
	}
	return ranking.Cause{Filter: ranking.Feasible}
}

// noNode stands for a filter where there is no node.
const noNode = ranking.Closed

// cause returns the first filter that rejects the row, of those that answer by rows. Its
// Filter is Feasible if none does, and noNode if there is no node.
func (v *view) cause(r table.Row) ranking.Cause {
	if c := v.index.Cause(r); c.Filter != ranking.Closed {
		return c
	}
	return v.closingCause(r)
}

// eachClosed calls visit with the rows that closing filters reject, by cause. The set is
// valid until visit returns. live is the rows with nodes.
func (v *view) eachClosed(live table.RowSet, visit func(c ranking.Cause, rows table.RowSet)) {
	left := slices.Clone(live)
	for k := range v.filters[:v.closing] {
		f := &v.filters[k]
		f.said.Count(left, func(verdict uint64, rows table.RowSet) {
			visit(ranking.Cause{Filter: f.position, Verdict: verdict}, rows)
		})
	}
}
