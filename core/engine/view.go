package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// view holds what the engine knows of one class of pods: for each row whether it is
// feasible, else the first filter that rejects it with its verdict, and the scores. The
// answers of NodeOnly plugins come from sharedAnswers.
type view struct {
	class *class
	keys  *keys
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
	cellsKept   bool // there is a column for each of cells
	// hostedFilters are asked afresh in each decision.
	hostedFilters []*filter
	fallible      bool // one of the filters can fail
	ownColumns    int  // of the index
	highest       int64

	shared     *sharedAnswers
	asksScores bool     // of all its scorers, and takes none that are shared
	rowFilters []filter // those that also look at the pods on a node
	rowScorers []scorer
	pass       *pass // of some of those; nil: none
	index      *ranking.Index

	revision   uint64
	generation uint64 // of the shared answers, when all rows were last evaluated anew
	columns    uint64 // the table's ColumnRevision
	epochs     uint64

	used    uint64   // when, in decisions; for dropping the oldest
	excess  int      // what its bytes count for, in rows
	buffers *buffers // of a transient view; nil: it is kept

	evaluated int // rows, when it was last refreshed ahead of its pod's turn

	// onFeasible and onRejected hold how nominated pods change the verdict on feasible
	// and on rejected rows.
	onFeasible, onRejected nominatedCauses
	kept                   map[string]*any // what plugins left, by name
}

// column says where the values of a column are kept, if they are: in the view's index, or
// with the shared answers.
type column struct {
	kept, shared bool
	at           int
}

// values returns the column's values, by row.
func (v *view) values(c column) []int64 {
	if c.shared {
		return v.shared.raw[c.at]
	}
	return v.index.Column(c.at)
}

// current reports whether what prepare made still holds.
func (v *view) current(t *table.Table) bool {
	return v.columns == t.ColumnRevision() && v.epochs == v.keys.epoch(t)
}

// refresh brings the view up to the table's revision. Few changed rows are
// evaluated again; where there are many, or at first sight, all are, over the
// cores. It returns how many.
func (v *view) refresh(t *table.Table, workers int, found *scratch) int {
	v.refreshShared(workers, found)
	return v.refreshOwn(t, workers, found)
}

// refreshShared brings up to date what the view shares with others. It must not run for
// two views at once.
func (v *view) refreshShared(workers int, found *scratch) {
	v.shared.refresh(workers, found)
	if v.cellsKept {
		v.syncCells()
	}
}

func (v *view) refreshOwn(t *table.Table, workers int, found *scratch) (evaluated int) {
	if v.revision != 0 && v.generation == v.shared.generation && v.replay(t, found) {
		evaluated = len(found.rows)
	} else {
		v.rebuild(t, workers, found)
		evaluated = t.Rows()
	}
	if v.grouped() {
		v.index.Count()
	} else {
		v.index.CountFeasible()
	}
	v.revision = t.Revision()
	return evaluated
}

// grouped reports whether the index groups the rows: every plugin that answers by cells
// has a column.
func (v *view) grouped() bool { return v.cellsKept || len(v.cells) == 0 }

// replay evaluates the rows that changed since the view's revision. It gives up
// (false) when they are so many that a full pass is cheaper.
func (v *view) replay(t *table.Table, found *scratch) bool {
	limit := 1 + t.Rows()/8
	found.rows = t.AppendChanged(found.rows[:0], v.revision, limit+1)
	if len(found.rows) > limit {
		return false
	}
	v.index.Resize(t.Rows())
	return evaluateRows(found.rows, found, v.evaluate, v.update)
}

// rebuild evaluates all rows that the shared answers leave open; a second time, without
// groups, where they cannot be grouped.
func (v *view) rebuild(t *table.Table, workers int, found *scratch) {
	v.generation = v.shared.generation
	v.index.Resize(t.Rows())
	least := grain
	if slices.ContainsFunc(v.rowFilters, costly) {
		least = costlyGrain
	}
	if slices.ContainsFunc(v.rowFilters, alone) {
		workers = 1
	}
	v.index.Begin(&v.shared.start)
	rows := v.shared.open
	if v.passAlone() {
		rows = v.passRanges(rows, workers, found)
	}
	if !evaluateAll(rows, workers, least, found, v.evaluateOpen, v.update) {
		v.index.Begin(&v.shared.start)
		evaluateAll(v.shared.open, workers, least, found, v.evaluateOpen, v.update)
	}
}

func alone(f filter) bool { return f.Alone != nil && f.Alone(&f.in) }

func (v *view) update(rows []table.Row, found *scratch) bool {
	return v.index.Update(rows, &found.Answers)
}

// evaluateOpen evaluates rows that are open and in order, as when all rows are evaluated
// anew.
func (v *view) evaluateOpen(rows []table.Row, found *scratch) {
	v.shared.copyOpen(rows, found)
	v.evaluateOwn(rows, found)
}

// evaluate evaluates any rows, as when some changed: it copies the shared answers and
// asks the plugins that look at pods. If shared filters reject many of the rows, only the
// open ones are asked about.
func (v *view) evaluate(rows []table.Row, found *scratch) {
	v.shared.copyTo(rows, found)
	open := found.open[:0]
	for i := range rows {
		if v.shared.leavesOpen(found.Filter[i]) {
			open = append(open, int32(i))
		}
	}
	if len(open) > len(rows)-len(rows)/4 {
		v.evaluateOwn(rows, found)
		return
	}
	inner := found.own
	some := inner.rows[:len(open)]
	for k, i := range open {
		some[k] = rows[i]
		inner.Filter[k], inner.Verdict[k], inner.Score[k] = found.Filter[i], found.Verdict[i], found.Score[i]
	}
	v.evaluateOwn(some, inner)
	for k, i := range open {
		found.Filter[i], found.Verdict[i], found.Score[i] = inner.Filter[k], inner.Verdict[k], inner.Score[k]
	}
}

// evaluateOwn asks the view's own plugins, which look at pods, on top of the copied
// shared answers.
func (v *view) evaluateOwn(rows []table.Row, found *scratch) {
	if v.asksScores { // others may share scores by now
		clear(found.Score[:len(rows)])
	}
	if v.pass != nil {
		v.pass.run(rows, found)
	}
	for k := range v.rowFilters {
		v.rowFilters[k].run(rows, found)
	}
	if v.asksScores {
		v.scoreFeasible(rows, found)
		return
	}
	for k := range v.rowScorers {
		if s := &v.rowScorers[k]; s.column.kept {
			s.write(v.index.Column(s.column.at), rows, found)
		} else {
			s.add(rows, found)
		}
	}
	if !v.cellsKept {
		return
	}
	for _, c := range v.cells {
		cells, column := found.scores[:len(rows)], v.index.Column(c.column.at)
		c.of(c.in, rows, cells)
		for i, cell := range cells {
			column[rows[i]] = cell
		}
	}
}

// scoreFeasible asks the scorers about the rows that pass the filters.
func (v *view) scoreFeasible(rows []table.Row, found *scratch) {
	at := found.at[:0]
	for i := range rows {
		if found.Filter[i] == ranking.Feasible {
			at = append(at, int32(i))
		}
	}
	if len(at) == 0 {
		return
	}
	feasible := found.pick(rows, at)
	for k := range v.rowScorers {
		if s := &v.rowScorers[k]; s.column.kept {
			s.writeRows(v.index.Column(s.column.at), feasible, found)
		} else {
			s.addSubset(feasible, at, found)
		}
	}
}
