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
// cell. A view that is kept has a column with the cell of each row, groups rows by it,
// and asks about each cell. A view for one decision has none: there the plugin is asked
// about the rows that are left, as it is wherever groups do not decide.

// cells are the rows of such a plugin, by cell.
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

// keepCells gives a column to each plugin that answers by cells, unless the view is asked
// once and not by hosted plugins, which want to know the order of the rows.
func (v *view) keepCells() {
	if v.buffers != nil && v.keys.profile.Host == nil {
		return
	}
	v.cellsKept = true
	for k := range v.scorers {
		if s := &v.scorers[k]; s.cells != nil {
			s.column = v.ownColumn()
			s.cells.column = s.column
		}
	}
	for _, f := range v.cellFilters {
		f.column = v.ownColumn()
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

// verdictOnCell is the filter's verdict on one row of the table as it stands.
func (f *filter) verdictOnCell(r table.Row) framework.Verdict {
	var out [1]framework.Verdict
	f.cells.sync(&f.in)
	f.CellFilter.AskRows(&f.in, one(f.in.Table, r), out[:])
	return out[0]
}

// scoreOfCell is the scorer's raw score of one row of the table as it stands.
func (s *scorer) scoreOfCell(r table.Row) int64 {
	var cell [1]int64
	s.cells.sync(&s.in)
	s.cells.of(&s.in, one(s.in.Table, r), cell[:])
	return s.CellScore.Score(&s.in, cell[0])
}

// inCellsThatFit takes the rows out of the list whose cell the filter rejects. Pods may
// have been tried on the table since the filter's state was last looked at.
func (o *Outcome) inCellsThatFit(list []table.Row, f *filter) []table.Row {
	verdicts := resize(o.engine.listVerdicts, len(list))
	o.engine.listVerdicts = verdicts
	f.cells.sync(&f.in)
	f.CellFilter.AskRows(&f.in, list, verdicts)
	n := 0
	for i, v := range verdicts {
		if list[n] = list[i]; v == framework.Fits {
			n++
		}
	}
	return list[:n]
}

// askCells asks the filters by cells about all rows that no filter before them rejects,
// ahead of a look at many of their verdicts.
func (o *Outcome) askCells() {
	if o.cellVerdicts != nil || len(o.view.cellFilters) == 0 || o.narrowed != nil {
		return
	}
	e, room := o.engine, o.engine.cellVerdicts
	rows, first := e.askedCells[:0], o.view.cellFilters[0].position
	for _, r := range o.view.shared.open {
		if c := o.view.index.Cause(r); !c.Rejects() || c.Filter > first {
			rows = append(rows, r)
		}
	}
	said := resize(e.listVerdicts, len(rows))
	e.askedCells, e.listVerdicts = rows, said
	for k, f := range o.view.cellFilters {
		if k == len(room) {
			room = append(room, nil)
		}
		room[k] = resize(room[k], e.table.Rows())
		f.cells.sync(&f.in)
		f.CellFilter.AskRows(&f.in, rows, said)
		for i, r := range rows {
			room[k][r] = said[i]
		}
	}
	e.cellVerdicts, o.cellVerdicts = room, room[:len(o.view.cellFilters)]
}

// cellVerdict is the verdict of the k-th filter by cells on the row.
func (o *Outcome) cellVerdict(k int, r table.Row) framework.Verdict {
	if o.cellVerdicts != nil {
		return o.cellVerdicts[k][r]
	}
	return o.view.cellFilters[k].verdictOnCell(r)
}

// causeAt tells which filter rejects the row first, and how: by what nominated pods
// make of it, the row's own verdict, and those on its cells.
func (o *Outcome) causeAt(r table.Row) ranking.Cause {
	if c := o.nominated.causeAt(r); c.Rejects() {
		return c
	}
	return o.causeBefore(r, len(o.view.hostedFilters))
}

// causeBefore is causeAt without nominated pods, and with no more than the first
// that many of the hosted filters.
func (o *Outcome) causeBefore(r table.Row, hosted int) ranking.Cause {
	c := o.causeOnCells(r, o.view.index.Cause(r))
	for k, f := range o.view.hostedFilters[:hosted] {
		if c.Filter == ranking.NoNode || (c.Rejects() && c.Filter < f.position) {
			break
		}
		if verdict := o.hostedVerdict(k, r); verdict != framework.Fits {
			return ranking.Cause{Filter: f.position, Verdict: uint64(verdict)}
		}
	}
	return c
}

// causeOnCells is the row's cause, which is c as far as its own verdict goes.
func (o *Outcome) causeOnCells(r table.Row, c ranking.Cause) ranking.Cause {
	for k, f := range o.view.cellFilters {
		if c.Filter == ranking.NoNode || (c.Rejects() && c.Filter < f.position) {
			break
		}
		if verdict := o.cellVerdict(k, r); verdict != framework.Fits {
			return ranking.Cause{Filter: f.position, Verdict: uint64(verdict)}
		}
	}
	return c
}

// weighRows tells the scorers by cells which rows are feasible.
func (o *Outcome) weighRows() {
	for k := range o.view.scorers {
		if s := &o.view.scorers[k]; s.cells != nil {
			s.CellScore.TellFeasible(&s.in, o.feasibleRows())
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

// weighGroups is weighRows, read off the groups.
func (o *Outcome) weighGroups() {
	v, e := o.view, o.engine
	for k := range v.scorers {
		s := &v.scorers[k]
		if s.cells == nil || s.CellScore.FeasibleNodes == nil {
			continue
		}
		counts, groups := e.counts[:0], v.index.Groups()
		for i := range groups {
			if g := &groups[i]; g.Fits {
				counts = append(counts, framework.CellCount{Cell: v.valueOf(g, s.column), Nodes: g.Rows})
			}
		}
		slices.SortFunc(counts, func(a, b framework.CellCount) int { return cmp.Compare(a.Cell, b.Cell) })
		e.counts = mergeCells(counts)
		s.CellScore.FeasibleNodes(&s.in, e.counts)
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
