package engine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// cells is the column of a plugin that looks at whole topology domains: the
// cell that each row is in.
type cells struct {
	in   *framework.Input
	sync func(*framework.Input)
	of   func(*framework.Input, []table.Row, []int64)
	at   []int64
}

func (c *cells) column() []int64 { return c.at }

// divide gives the view a column for each of its filters and scorers that
// answers by cells.
func (v *view) divide() {
	for k := range v.filters {
		if f := &v.filters[k]; f.CellFilter != nil {
			f.cells = &cells{in: &f.in, sync: f.CellFilter.Sync, of: f.CellFilter.Cells}
			v.divided = append(v.divided, f.cells)
			v.cellFilters = append(v.cellFilters, f)
		}
	}
	for k := range v.scorers {
		if s := &v.scorers[k]; s.CellScore != nil {
			s.cells = &cells{in: &s.in, sync: s.CellScore.Sync, of: s.CellScore.Cells}
			v.divided = append(v.divided, s.cells)
		}
	}
}

// sync brings the states of the plugins that answer by cells up to the table
// as it stands.
func (v *view) sync() {
	for _, c := range v.divided {
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

// verdictAt is the filter's verdict on one row of the table as it stands.
func (f *filter) verdictAt(r table.Row) framework.Verdict {
	if f.cells != nil {
		return f.CellFilter.Filter(&f.in, f.cells.cell(r))
	}
	var out [1]framework.Verdict
	f.Filter(&f.in, one(f.in.Table, r), out[:])
	return out[0]
}

// cellVerdict is the filter's verdict on a cell, asked once a decision. Pods may
// have been tried on the table since the filter's state was last looked at.
func (o *Outcome) cellVerdict(f *filter, cell int64) framework.Verdict {
	k := cellKey{f.place, cell}
	v, ok := o.cellVerdicts[k]
	if !ok {
		if o.cellVerdicts == nil {
			o.cellVerdicts = map[cellKey]framework.Verdict{}
		}
		f.cells.sync(&f.in)
		v = f.CellFilter.Filter(&f.in, cell)
		o.cellVerdicts[k] = v
	}
	return v
}

type cellKey struct {
	plugin int16
	cell   int64
}

// blockAt tells which filter rejects the row first, and how: by what nominated
// pods make of it, the row's own verdict, and those on its cells.
func (o *Outcome) blockAt(r table.Row) blockKey {
	if b, ok := o.blockedBy(r); ok {
		return blockKey(b)
	}
	k := o.view.first(r)
	for _, f := range o.view.cellFilters {
		if k.filter == noNode || (k.filter != feasible && k.filter < f.place) {
			break
		}
		if verdict := o.cellVerdict(f, f.cells.at[r]); verdict != framework.Fits {
			return blockKey{f.place, verdict}
		}
	}
	return k
}

// weigh tells the scorers by cells how many feasible nodes each cell holds.
func (o *Outcome) weigh() {
	for k := range o.view.scorers {
		s := &o.view.scorers[k]
		if s.cells == nil || s.CellScore.FeasibleNodes == nil {
			continue
		}
		counts := map[int64]int{}
		for _, r := range o.feasibleRows() {
			counts[s.cells.at[r]]++
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

// column is the raw scores of a scorer that is normalised, by row. For one
// that answers by cells only feasible rows are filled in.
func (o *Outcome) column(s *scorer) []int64 {
	if s.cells == nil {
		return s.raw()
	}
	column, asked := make([]int64, len(o.view.at)), map[int64]int64{}
	for _, r := range o.feasibleRows() {
		cell := s.cells.at[r]
		score, ok := asked[cell]
		if !ok {
			score = s.CellScore.Score(&s.in, cell)
			asked[cell] = score
		}
		column[r] = score
	}
	return column
}

// weighGroups is weigh, read off the groups.
func (o *Outcome) weighGroups(x *standings) {
	for _, part := range x.parts {
		s := part.scorer
		if s == nil || s.cells == nil || s.CellScore.FeasibleNodes == nil {
			continue
		}
		counts := x.counts[:0]
		for g := range x.groups {
			if group := &x.groups[g]; group.fits {
				counts = append(counts, framework.CellCount{Cell: x.number(group, &part), Nodes: group.rows})
			}
		}
		slices.SortFunc(counts, func(a, b framework.CellCount) int { return cmp.Compare(a.Cell, b.Cell) })
		x.counts = mergeCells(counts)
		s.CellScore.FeasibleNodes(&s.in, x.counts)
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
