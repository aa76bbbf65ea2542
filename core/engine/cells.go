package engine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// A plugin that looks at whole topology domains gives one answer for all rows of a
// cell. A view whose class came by a few times keeps the cell of each row, buckets rows by
// it, and asks about each cell. Until then the plugin is asked about the rows that are
// left, as it is wherever buckets do not decide: to bucket rows takes longer than a few
// decisions without buckets.

// cells connects a plugin that answers by cell (a number for a topology domain, or a
// combination of some) with the column of the index that holds the cell of each row.
type cells struct {
	// in is the plugin's input. sync brings the state in it up to date with the table. of writes
	// the cell of each row of a list to a slice of the same length.
	in     *framework.Input
	sync   func(*framework.Input)
	of     func(*framework.Input, []table.Row, []int64)
	column column // of the view's index; not kept: cells are asked for each time
}

// addCells registers a filter or scorer that answers by cells, with its input in and its functions
// Sync (sync) and Cells (of), and returns its cells. These have no column yet.
func (v *view) addCells(in *framework.Input, sync func(*framework.Input), of func(*framework.Input, []table.Row, []int64)) *cells {
	c := &cells{in: in, sync: sync, of: of}
	v.cells = append(v.cells, c)
	return c
}

// keepCells makes the index keep the cell of each row, in a column for each plugin that
// answers by cells, so that these can be asked once for a bucket of rows. All rows must be
// evaluated anew afterwards.
func (v *view) keepCells() {
	v.cellsKept = true
	for k := range v.scorers {
		if s := &v.scorers[k]; s.cells != nil {
			s.column = v.newColumn()
			s.cells.column = s.column
		}
	}
	for _, f := range v.cellFilters {
		f.column = v.newColumn()
		f.cells.column = f.column
	}
}

// syncCells brings the states of the plugins that answer by cells up to date with the
// table as it is now, trial placements included. It comes before these plugins are asked.
func (v *view) syncCells() {
	for _, c := range v.cells {
		c.sync(c.in)
	}
}

// scoreOfCell returns the raw score that a scorer by cells gives one row, on the table as
// it is now. It first brings the scorer's state up to date; the kept cell is not used.
func (s *scorer) scoreOfCell(r table.Row) int64 {
	var cell [1]int64
	s.cells.sync(&s.in)
	s.cells.of(&s.in, one(s.in.Table, r), cell[:])
	return s.CellScore.Score(&s.in, cell[0])
}

// inCellsThatFit removes from the list, in place, the rows whose cells the cell filter rejects, and
// returns the shorter list. It syncs the filter's state first, since pods may have been tried on
// the table.
func (x *feasibility) inCellsThatFit(list []table.Row, f *filter) []table.Row {
	verdicts := resize(x.buffers.listVerdicts, len(list))
	x.buffers.listVerdicts = verdicts
	f.cells.sync(&f.in)
	f.ask(list, verdicts)
	n := 0
	for i, v := range verdicts {
		if list[n] = list[i]; v == framework.Fits {
			n++
		}
	}
	return list[:n]
}

// askCells asks each cell filter, in one call, about all rows that no filter before the
// first cell filter rejects, and keeps the verdicts for cellVerdict. It does so once a
// decision, and not for a narrowed pod. Call it before reading many verdicts.
func (x *feasibility) askCells() {
	if x.cellVerdicts != nil || len(x.view.cellFilters) == 0 || x.narrowed != nil {
		return
	}
	b, room := x.buffers, x.buffers.cellVerdicts
	open := x.view.index.AppendOpen(b.askedCells[:0])
	rows, first := open[:0], x.view.cellFilters[0].position
	for _, r := range open {
		if c := x.view.index.Cause(r); !c.Rejects() || c.Filter > first {
			rows = append(rows, r)
		}
	}
	said := resize(b.listVerdicts, len(rows))
	x.askedCells, b.askedCells, b.listVerdicts = rows, rows, said
	for k, f := range x.view.cellFilters {
		if k == len(room) {
			room = append(room, nil)
		}
		room[k] = resize(room[k], x.engine.table.Rows())
		f.cells.sync(&f.in)
		f.ask(rows, said)
		for i, r := range rows {
			room[k][r] = said[i]
		}
	}
	b.cellVerdicts, x.cellVerdicts = room, room[:len(x.view.cellFilters)]
}

// cellVerdict returns the verdict of the k-th cell filter on the row. After askCells it returns the
// verdict kept then, and the row must be one of askedCells; before, it asks the filter.
func (x *feasibility) cellVerdict(k int, r table.Row) framework.Verdict {
	if x.cellVerdicts != nil {
		return x.cellVerdicts[k][r]
	}
	return x.view.cellFilters[k].verdictAt(r)
}

// causeAt returns the first filter that rejects the row, with its verdict; its Filter is
// ranking.Feasible if none does, and noNode if the row has no node. Nominated pods, cell filters
// and hosted filters count; the latter two are asked if their verdicts are not known.
func (x *feasibility) causeAt(r table.Row) ranking.Cause {
	if c := x.nominated.causeAt(r); c.Rejects() {
		return c
	}
	return x.causeBefore(r, len(x.view.hostedFilters))
}

// causeBefore returns the first filter that rejects the row, without regard to nominated pods. Of
// the hosted filters only the first ones count, as many as hosted says; they are asked if their
// verdict is not known. Cell filters count.
func (x *feasibility) causeBefore(r table.Row, hosted int) ranking.Cause {
	c := x.causeOnCells(r, x.view.cause(r))
	for k, f := range x.view.hostedFilters[:hosted] {
		if c.Filter == noNode || (c.Rejects() && c.Filter < f.position) {
			break
		}
		if verdict := x.hostedVerdict(k, r); verdict != framework.Fits {
			return ranking.Cause{Filter: f.position, Verdict: uint64(verdict)}
		}
	}
	return c
}

// causeOnCells returns the first filter that rejects the row among cell filters and those that
// answer by rows. c is the first among those that answer by rows; it is returned if no cell filter
// before it rejects the row. Hosted filters are not asked.
func (x *feasibility) causeOnCells(r table.Row, c ranking.Cause) ranking.Cause {
	for k, f := range x.view.cellFilters {
		if c.Filter == noNode || (c.Rejects() && c.Filter < f.position) {
			break
		}
		if verdict := x.cellVerdict(k, r); verdict != framework.Fits {
			return ranking.Cause{Filter: f.position, Verdict: uint64(verdict)}
		}
	}
	return c
}

// weighRows passes the list of feasible rows to each scorer by cells, which may weigh
// domains by their numbers of feasible nodes. It is for decisions without buckets.
func (d *decider) weighRows() {
	for k := range d.view.scorers {
		if s := &d.view.scorers[k]; s.cells != nil {
			s.CellScore.TellFeasible(&s.in, d.feasibleRows())
		}
	}
}

// sortedCells returns the node count of each cell, sorted by cell.
func sortedCells(counts map[int64]int) []framework.CellCount {
	list := make([]framework.CellCount, 0, len(counts))
	for _, cell := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, framework.CellCount{Cell: cell, Nodes: counts[cell]})
	}
	return list
}

// weighBuckets passes the number of feasible nodes of each cell to the scorers by cells that need
// it. It adds up the rows of the buckets of the index that fit, without a look at single rows.
func (d *decider) weighBuckets() {
	v, b := d.view, d.buffers
	for k := range v.scorers {
		s := &v.scorers[k]
		if s.cells == nil || s.CellScore.FeasibleNodes == nil {
			continue
		}
		counts, buckets := b.counts[:0], v.index.Buckets()
		for i := range buckets {
			if bucket := &buckets[i]; bucket.Fits {
				counts = append(counts, framework.CellCount{Cell: bucket.Value(s.column.at), Nodes: bucket.Rows})
			}
		}
		slices.SortFunc(counts, func(a, b framework.CellCount) int { return cmp.Compare(a.Cell, b.Cell) })
		b.counts = mergeCells(counts)
		s.CellScore.FeasibleNodes(&s.in, b.counts)
	}
}

// mergeCells adds up the counts of equal cells in a list sorted by cell, in place, and
// returns the shortened list.
func mergeCells(sorted []framework.CellCount) []framework.CellCount {
	merged := sorted[:0]
	for _, c := range sorted {
		if n := len(merged); n > 0 && merged[n-1].Cell == c.Cell {
			merged[n-1].Nodes += c.Nodes
		} else {
			merged = append(merged, c)
		}
	}
	return merged
}
