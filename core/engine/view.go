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

// view holds the engine's knowledge of one class of pods: for each row whether it is
// feasible, else the first filter that rejects it with its verdict, and the scores.
type view struct {
	table *table.Table
	class *class        // nil: the view serves one question, or an engine of NewPlain
	keys  *classes.Keys // of the profile
	pod   *object.Pod   // the one that it was made for
	preFiltered
	failed *decision.Status // PreScore failed; nil: it did not
	// preFilterResults holds the results of PreFilter plugins, in their order, up to one
	// that ended it. It is set only if the profile has hosted plugins.
	preFilterResults []framework.PreFilterResult

	filters     []filter  // all of them, in the profile's order
	scorers     []scorer  // all of them, in the profile's order
	cells       []*cells  // of the filters and scorers that answer by cells
	cellFilters []*filter // the filters that answer by cells
	cellsKept   bool      // each of cells has a column in the index
	// hostedFilters are asked afresh in each decision.
	hostedFilters []*filter
	fallible      bool  // a filter can return an error
	columns       int   // number of values of a row in the index
	known         int   // number of the first columns whose values partitions hold
	highest       int64 // the most that the scorers without normalising can add up to

	// closing filters are the first ones. They have partitions, and close the rows that
	// they reject: no other filter is asked about these.
	closing    int
	rowFilters []*filter      // the others that answer by rows
	pass       *headroom.Pass // what CPU, memory and the like decide, in one loop; nil: none
	index      *ranking.Index // ranks the rows; nil until build or askAll

	revision       uint64 // of the table at the last refresh; 0: no row was evaluated
	columnRevision uint64 // the table's ColumnRevision when PreFilter and PreScore ran
	epochs         uint64 // version, at that time, of what they read

	visits  int    // decisions on the class, each soon after the one before
	used    uint64 // number of the last decision with it
	excess  int    // its bytes beyond fixedBytes, counted as rows
	onTrial bool   // the class had one decision so far; the next such view may replace this one

	// onFeasible and onRejected hold how nominated pods change the verdict on feasible
	// and on rejected rows.
	onFeasible, onRejected nominatedCauses
	kept                   map[string]*any // what PostFilter plugins keep, by plugin name
}

// column is where the index keeps a value (a raw score or a cell) of each row: at is the
// number of the value in a row. kept is false if the value is not kept.
type column struct {
	kept bool
	at   int
}

// current reports whether what PreFilter and PreScore returned for the class still holds,
// so that the view can be used again. Its rows may be out of date all the same.
func (v *view) current() bool {
	return v.columnRevision == v.table.ColumnRevision() && v.epochs == v.keys.Epoch(v.table)
}

// build prepares a new view for its first refresh. It takes from the store the partitions of the
// first filters, up to the first whose answers cannot be kept there (answers.Keeps), and those of
// all scorers whose answers can; a view narrowed to few nodes takes none. It lists the filters that
// answer by rows, and joins a pass. The view takes over index, whose rows are dropped when the view
// is first evaluated.
func (v *view) build(store *answers.Store, index *ranking.Index) {
	v.index, v.revision = index, 0
	for v.closing < len(v.filters) && answers.Keeps(v.filters[v.closing].Plugin) && v.narrowed == nil {
		f := &v.filters[v.closing]
		f.partition = store.Filter(f.Plugin, &f.in)
		v.closing++
	}
	for k := v.closing; k < len(v.filters); k++ {
		if f := &v.filters[k]; f.cells == nil && !f.hosted {
			v.rowFilters = append(v.rowFilters, f)
		}
	}
	for k := range v.scorers {
		if s := &v.scorers[k]; s.cells == nil && answers.Keeps(s.Plugin) && v.narrowed == nil {
			if s.partition = store.Score(s.Plugin, &s.in); s.column.kept {
				v.known++
			}
		}
	}
	v.joinPass()
}

// watchPass makes the pass report the calls of its plugins to the profile's Watch, which
// measures plugins.
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

// shape returns what the index must keep for the view's rows: the number of values, how many of
// them partitions hold, and the highest score.
func (v *view) shape() ranking.Shape {
	return ranking.Shape{Values: v.columns, Known: v.known, Highest: v.highest}
}

// joinPass makes a pass, one loop over rows, from the filters and scorers that only compare sums
// such as CPU and memory. Unless one filter and two scorers join (Pass.Complete), there is no pass,
// and the plugins are asked.
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
	v.leavePass()
}

// leavePass makes the view ask each plugin itself from now on, without a pass.
func (v *view) leavePass() {
	v.pass = nil
	for _, f := range v.rowFilters {
		f.inPass = false
	}
	for k := range v.scorers {
		v.scorers[k].inPass = false
	}
}

// refresh brings the view up to date with the table before a decision. It evaluates again the rows
// that changed. If these are many, or none was evaluated so far, it evaluates all rows, over as
// many cores as workers says. found is scratch.
func (v *view) refresh(store *answers.Store, workers int, found *scratch) {
	for k := range v.filters[:v.closing] {
		f := &v.filters[k]
		store.Follow(f.partition, f.Plugin, &f.in)
	}
	for k := range v.scorers {
		if s := &v.scorers[k]; s.partition != nil {
			store.Follow(s.partition, s.Plugin, &s.in)
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

// bucketed reports whether rows of one bucket of the index are also in one cell of every
// plugin that answers by cells (each has a column, or there is none), so that a decision
// can be made by buckets.
func (v *view) bucketed() bool { return v.cellsKept || len(v.cells) == 0 }

// replay evaluates again the rows that changed since the view's revision. It returns false if they
// are so many that evaluating all is cheaper, or the index cannot hold them; the caller must
// evaluate all rows then.
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

// update replaces the rows' answers in the index by those in found. It returns false if the
// index must begin anew.
func (v *view) update(rows []table.Row, found *scratch) bool {
	return v.index.Update(rows, &found.Answers)
}

// add adds the scores in found to the rows' states in the index, and records the causes of rows
// that a filter rejected. It always returns true.
func (v *view) add(rows []table.Row, found *scratch) bool {
	v.index.Add(rows, &found.Answers)
	return true
}

// evaluate asks the view's plugins about open rows (those that no closing filter rejects),
// and writes verdicts and scores to found, by index in rows. The pass, which computes what
// CPU and memory decide in one loop, goes first; where it finds a row to fit its plugins
// are not asked again.
func (v *view) evaluate(rows []table.Row, found *scratch) {
	clear(found.Filter[:len(rows)])
	clear(found.Score[:len(rows)])
	others := pluginSet{early: true, partitioned: true}
	all := pluginSet{pass: true, early: true, partitioned: true}
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

// pluginSet selects plugins for ask: those in the pass, the early filters, the scorers with
// partitions. Plugins of no such kind are always asked.
type pluginSet struct{ pass, early, partitioned bool }

// ask asks filters in their order about the rows in left that none before rejects, and scorers
// about the rows that remain; which selects the plugins. It writes causes and values to found and
// adds scores to those there. If cells are kept it writes the cells of these rows, too. at holds
// the index of each row in found's list; nil: the rows are that list. If at is not nil both slices
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
		case s.cells != nil, s.inPass && !which.pass, s.partition != nil && !which.partitioned:
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

// closingCause returns the first closing filter that rejects the row, with its kept
// verdict. Its Filter is ranking.Feasible if none does, and noNode if the row has no node.
func (v *view) closingCause(r table.Row) ranking.Cause {
	if v.table.Node(r) == nil {
		return ranking.Cause{Filter: noNode}
	}
	for k := range v.filters[:v.closing] {
		f := &v.filters[k]
		if verdict := f.partition.At(r); verdict != uint64(framework.Fits) {
			return ranking.Cause{Filter: f.position, Verdict: verdict}
		}
	}
	return ranking.Cause{Filter: ranking.Feasible}
}

// noNode is the Filter of a Cause for a row without a node.
const noNode = ranking.Closed

// cause returns the first filter that rejects the row, of those that answer by rows; cell
// filters, hosted filters and nominated pods are left out. Its Filter is ranking.Feasible
// if none does, and noNode if the row has no node.
func (v *view) cause(r table.Row) ranking.Cause {
	if c := v.index.Cause(r); c.Filter != ranking.Closed {
		return c
	}
	return v.closingCause(r)
}

// eachClosed calls visit for each cause by which closing filters reject rows, with the set of those
// rows. A row counts for the first filter that rejects it. The set is valid until visit returns.
// live is the set of rows with nodes.
func (v *view) eachClosed(live table.RowSet, visit func(c ranking.Cause, rows table.RowSet)) {
	left := slices.Clone(live)
	for k := range v.filters[:v.closing] {
		f := &v.filters[k]
		f.partition.Count(left, func(verdict uint64, rows table.RowSet) {
			visit(ranking.Cause{Filter: f.position, Verdict: verdict}, rows)
		})
	}
}
