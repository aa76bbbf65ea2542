package engine

import (
	"math"

	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// scan looks at every candidate: where the index has no groups, or something
// besides the view rules out single rows.
func (o *Outcome) scan() {
	columns := o.findExtremes()
	norms, base := o.normalisers(columns)
	total := func(r table.Row) int64 {
		sum := o.view.index.Score(r)
		for k := range norms {
			sum += norms[k].of(r)
		}
		if o.extenders != nil {
			sum += o.extenders.bonus[r]
		}
		return sum + o.hostedBonus(r)
	}
	best, tied := int64(math.MinInt64), o.engine.tied[:0]
	for _, r := range o.feasibleRows() {
		switch sum := total(r); {
		case sum > best:
			best, tied = sum, append(tied[:0], r)
		case sum == best:
			tied = append(tied, r)
		}
	}
	o.engine.tied = tied
	if o.Rejected != nil { // a score out of range
		return
	}
	if o.Row, o.Score, o.Ties = tied[0], base+best, len(tied); o.Ties > 1 {
		o.draw(tied, func(r table.Row) bool { return o.fits(r) && total(r) == best })
	}
}

// draw chooses one of the tied rows.
func (o *Outcome) draw(tied []table.Row, isTied func(table.Row) bool) {
	o.Row = draw.Row(o.drawSeed(), len(tied), draw.Rows{
		Candidates: o.candidates(),
		Candidate:  o.candidate,
		Tied:       isTied,
		Each: func(f func(table.Row)) {
			for _, r := range tied {
				f(r)
			}
		},
	})
}

// findExtremes finds the raw scores, by row, of each scorer that is normalised or
// answers by cells, and their extremes over the feasible rows.
func (o *Outcome) findExtremes() (columns [][]int64) {
	o.weighCells()
	o.extremes = o.engine.extremesOf(len(o.view.scorers))
	columns = resize(o.engine.rawColumns, len(o.view.scorers))
	clear(columns)
	o.engine.rawColumns = columns
	o.engine.rawRoom.begin()
	for k := range o.view.scorers {
		s := &o.view.scorers[k]
		if !s.column.kept {
			continue
		}
		column, e := o.rawScores(s), noExtremes
		for _, r := range o.feasibleRows() {
			e.add(column[r])
		}
		columns[k], o.extremes[k] = column, e
	}
	return columns
}

// rawScores are those of the scorer, by row. For one that answers by cells only
// feasible rows are filled in.
func (o *Outcome) rawScores(s *scorer) []int64 {
	values := o.view.values(s.column)
	if s.cells == nil {
		return values
	}
	column, scores := o.engine.rawRoom.next(len(values)), &o.engine.cellScores
	scores.begin()
	for _, r := range o.feasibleRows() {
		known := scores.slot(values[r])
		if known.round != scores.round || known.cell != values[r] {
			*known = cellScore{scores.round, values[r], s.CellScore.Score(&s.in, values[r])}
		}
		column[r] = known.score
	}
	return column
}

// cellScores keeps raw scores of cells in a table of fixed size, where one may take the
// place of another. It is begun anew for each scorer and decision.
type cellScores struct {
	round uint64
	slots []cellScore
}

type cellScore struct {
	round       uint64
	cell, score int64
}

func (c *cellScores) begin() {
	if c.round++; c.slots == nil {
		c.slots = make([]cellScore, 1<<cellVerdictBits)
	}
}

// slot is where the score of the cell is, if it is known.
func (c *cellScores) slot(cell int64) *cellScore { return &c.slots[hashOfCell(cell)] }

// columnRoom is room for columns of one decision, to be used again by the next.
type columnRoom struct {
	columns [][]int64
	used    int
}

func (c *columnRoom) begin() { c.used = 0 }

// next is a column of n entries, with anything in them.
func (c *columnRoom) next(n int) []int64 {
	if c.used == len(c.columns) {
		c.columns = append(c.columns, nil)
	}
	column := resize(c.columns[c.used], n)
	c.columns[c.used] = column
	c.used++
	return column
}

// normaliser maps one scorer's raw scores to weighted, normalised ones: by table
// when their range is small, else by the plugin's function.
type normaliser struct {
	raw      []int64
	low      int64
	table    []int64
	weighted func(raw int64) int64
}

func (n *normaliser) of(r table.Row) int64 {
	if n.raw[r] == framework.NoScore {
		return 0
	}
	if n.table == nil {
		return n.weighted(n.raw[r])
	}
	known := &n.table[n.raw[r]-n.low]
	if *known == notAsked {
		*known = n.weighted(n.raw[r])
	}
	return *known
}

// tableRange is the widest range of raw scores that is tabulated.
const tableRange = 1024

// notAsked is in the table for what no node has asked for so far.
const notAsked = math.MinInt64

// normalisers returns one for each scorer whose normalised scores differ between
// nodes, and the sum of the others, which every node gets alike.
func (o *Outcome) normalisers(columns [][]int64) (norms []normaliser, base int64) {
	for k, raw := range columns {
		e := o.extremes[k]
		if raw == nil || e.low > e.high {
			continue
		}
		if e.low == e.high && o.view.scorers[k].cells == nil {
			base += o.normalisedScore(k, e.low)
			continue
		}
		n := normaliser{raw: raw, low: e.low, weighted: func(raw int64) int64 { return o.normalisedScore(k, raw) }}
		if width := e.high - e.low; width >= 0 && width < tableRange {
			n.table = o.engine.rawRoom.next(int(width) + 1)
			for i := range n.table {
				n.table[i] = notAsked
			}
		}
		norms = append(norms, n)
	}
	return norms, base
}
