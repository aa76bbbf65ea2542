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
// cell. A view whose class came by a few times keeps the cell of each row, groups rows by
// it, and asks about each cell. Until then the plugin is asked about the rows that are
// left, as it is wherever groups do not decide: to group rows takes longer than a few
// decisions without groups.

// cells connects a plugin that answers by cells with the column that holds the cell of
// each row.
type cells struct {
	in     *framework.Input
	sync   func(*framework.Input)
	of     func(*framework.Input, []table.Row, []int64)
	column column // where it is kept
}

func (v *view) addCells(in *framework.Input, sync func(*framework.Input), of func(*framework.Input, []table.Row, []int64)) *cells {
	c := &cells{in: in, sync: sync, of: of}
	v.cells = append(v.cells, c)
	return c
}

// keepCells assigns a column of cells to each plugin that answers by cells.
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

// syncCells brings the states of the plugins that answer by cells up to the table
// as it stands.
func (v *view) syncCells() {
	for _, c := range v.cells {
		c.sync(c.in)
	}
}

// scoreOfCell returns the scorer's raw score of one row of the table as it stands.
func (s *scorer) scoreOfCell(r table.Row) int64 {
	var cell [1]int64
	s.cells.sync(&s.in)
	s.cells.of(&s.in, one(s.in.Table, r), cell[:])
	return s.CellScore.Score(&s.in, cell[0])
}

// inCellsThatFit removes from the list the rows whose cells the filter rejects. It syncs
// the filter's state first, since pods may have been tried on the table.
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

// askCells asks the cell filters about all open rows that no earlier filter rejects, in
// one call each. It is called before many of their verdicts are read.
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

// cellVerdict returns the verdict of the k-th cell filter on the row.
func (x *feasibility) cellVerdict(k int, r table.Row) framework.Verdict {
	if x.cellVerdicts != nil {
		return x.cellVerdicts[k][r]
	}
	return x.view.cellFilters[k].verdictAt(r)
}

// causeAt returns the first filter that rejects the row, with its verdict. Nominated
// pods, cell filters and hosted filters are included.
func (x *feasibility) causeAt(r table.Row) ranking.Cause {
	if c := x.nominated.causeAt(r); c.Rejects() {
		return c
	}
	return x.causeBefore(r, len(x.view.hostedFilters))
}

// causeBefore returns the first filter that rejects the row if no pod is nominated to it.
// hosted is how many of the hosted filters are asked, from the first.
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

// causeOnCells returns the first filter that rejects the row, cell filters included. c is
// the cause from filters that answer by rows; hosted filters are not asked.
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

// weighRows passes the list of feasible rows to each scorer by cells.
func (d *decider) weighRows() {
	for k := range d.view.scorers {
		if s := &d.view.scorers[k]; s.cells != nil {
			s.CellScore.TellFeasible(&s.in, d.feasibleRows())
		}
	}
}

func sortedCells(counts map[int64]int) []framework.CellCount {
	list := make([]framework.CellCount, 0, len(counts))
	for _, cell := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, framework.CellCount{Cell: cell, Nodes: counts[cell]})
	}
	return list
}

// weighGroups passes the number of feasible nodes of each cell to the scorers by cells.
// It counts them from the groups of the index, without a look at rows.
func (d *decider) weighGroups() {
	v, b := d.view, d.buffers
	for k := range v.scorers {
		s := &v.scorers[k]
		if s.cells == nil || s.CellScore.FeasibleNodes == nil {
			continue
		}
		counts, groups := b.counts[:0], v.index.Groups()
		for i := range groups {
			if g := &groups[i]; g.Fits {
				counts = append(counts, framework.CellCount{Cell: g.Value(s.column.at), Nodes: g.Rows})
			}
		}
		slices.SortFunc(counts, func(a, b framework.CellCount) int { return cmp.Compare(a.Cell, b.Cell) })
		b.counts = mergeCells(counts)
		s.CellScore.FeasibleNodes(&s.in, b.counts)
	}
}

// mergeCells adds up equal cells of a sorted list, in place.
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
