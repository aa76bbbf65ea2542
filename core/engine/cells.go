package engine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// cells are the rows of a plugin that looks at whole topology domains, by cell: it
// gives one answer for all rows of a cell. The column holds the cell of each row.
type cells struct {
	in     *framework.Input
	sync   func(*framework.Input)
	of     func(*framework.Input, []table.Row, []int64)
	column column
}

func (v *view) addCells(in *framework.Input, sync func(*framework.Input), of func(*framework.Input, []table.Row, []int64), at column) *cells {
	c := &cells{in: in, sync: sync, of: of, column: at}
	v.cells = append(v.cells, c)
	return c
}

// syncCells brings the states of the plugins that answer by cells up to the table
// as it stands.
func (v *view) syncCells() {
	for _, c := range v.cells {
		c.sync(c.in)
	}
}

// cell is the cell of one row of the table as it stands.
func (c *cells) cell(r table.Row) int64 {
	var out [1]int64
	c.sync(c.in)
	c.of(c.in, one(c.in.Table, r), out[:])
	return out[0]
}

// cellVerdict is the filter's verdict on a cell, asked about once a decision as a
// rule. Pods may have been tried on the table since the filter's state was last
// looked at.
func (o *Outcome) cellVerdict(f *filter, cell int64) framework.Verdict {
	if o.number == 0 {
		o.engine.numbered++
		o.number = o.engine.numbered
	}
	known := o.engine.cellVerdicts.slot(f.position, cell)
	if known.outcome != o.number || known.cell != cell || known.filter != f.position {
		f.cells.sync(&f.in)
		*known = cellVerdict{o.number, cell, f.CellFilter.Filter(&f.in, cell), f.position}
	}
	return known.verdict
}

// inCellsThatFit takes the rows out of the list whose cell the filter rejects.
func (o *Outcome) inCellsThatFit(list []table.Row, f *filter) []table.Row {
	cells, n := o.view.values(f.column), 0
	for _, r := range list {
		if o.cellVerdict(f, cells[r]) == framework.Fits {
			list[n] = r
			n++
		}
	}
	return list[:n]
}

// cellVerdicts keeps verdicts on cells in a table of fixed size, where one verdict
// may take the place of another.
type cellVerdicts []cellVerdict

type cellVerdict struct {
	outcome uint64 // its number
	cell    int64
	verdict framework.Verdict
	filter  int16
}

// cellVerdictBits: the table has as many entries as that many bits can tell apart.
const cellVerdictBits = 11

// slot is where the verdict of the filter on the cell is, if it is known.
func (c *cellVerdicts) slot(filter int16, cell int64) *cellVerdict {
	if *c == nil {
		*c = make(cellVerdicts, 1<<cellVerdictBits)
	}
	return &(*c)[hashOfCell(cell+int64(filter)<<57)]
}

// hashOfCell is a number of cellVerdictBits bits.
func hashOfCell(cell int64) uint64 {
	const odd = 0x9E3779B97F4A7C15 // spreads neighbours
	return uint64(cell) * odd >> (64 - cellVerdictBits)
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
	c := o.view.index.Cause(r)
	for _, f := range o.view.cellFilters {
		if c.Filter == ranking.NoNode || (c.Rejects() && c.Filter < f.position) {
			break
		}
		if verdict := o.cellVerdict(f, o.view.values(f.column)[r]); verdict != framework.Fits {
			c = ranking.Cause{Filter: f.position, Verdict: uint64(verdict)}
			break
		}
	}
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

// weighCells tells the scorers by cells how many feasible nodes each cell holds.
func (o *Outcome) weighCells() {
	for k := range o.view.scorers {
		s := &o.view.scorers[k]
		if s.cells == nil || s.CellScore.FeasibleNodes == nil {
			continue
		}
		counts, cells := map[int64]int{}, o.view.values(s.column)
		for _, r := range o.feasibleRows() {
			counts[cells[r]]++
		}
		s.CellScore.FeasibleNodes(&s.in, sortedCells(counts))
	}
}

func sortedCells(counts map[int64]int) []framework.CellCount {
	list := make([]framework.CellCount, 0, len(counts))
	for _, cell := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, framework.CellCount{Cell: cell, Nodes: counts[cell]})
	}
	return list
}

// weighGroups is weighCells, read off the groups.
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
