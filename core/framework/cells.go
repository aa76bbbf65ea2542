package framework

import (
	"cmp"
	"iter"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// CellFilter is a Filter by cells, for a plugin whose Locality is Domains and that leaves
// Filter nil.
//
// Some plugins look beyond one node: how many pods match in a row's zone, say. One
// placement then changes the answer for a whole domain. Such a plugin divides the rows
// into cells, and all rows of a cell get the same answer. A row's cell changes only when
// the row itself does (its node, or the pods on it). The answer for a cell may change
// with any placement anywhere. It is asked once per cell and decision, not once per row.
//
// The plugin numbers its cells. Where a domain is large (a zone), the domain's id is a
// good number. Where most nodes are a domain of their own (hostname; see
// nodelabels.UniquePerNode), the value that counts (how many pods match on the node) is
// better, so that there are few cells.
type CellFilter struct {
	// Sync brings State (PreFilter's) up to date with the table. It is called
	// before the others whenever the table may have changed, under a
	// checkpoint too, and never at the same time as any other function.
	Sync func(in *Input)
	// Cells writes the cell of rows[i] to out[i]. It is a kernel: it may be
	// called concurrently on disjoint rows, and only reads.
	Cells func(in *Input, rows []table.Row, out []int64)
	// Filter returns the verdict on every row of the cell.
	Filter func(in *Input, cell int64) Verdict
	// Rows, when set, writes the verdict on rows[i] to out[i], like Cells and then Filter.
	// The engine calls it for classes of pods that were seen only once, where it is faster.
	// The result for a row without a node is ignored. Only the owner of the machine calls it.
	Rows func(in *Input, rows []table.Row, out []Verdict)
	// Exchanged, when set, returns the verdict on the row if the pods on it with a priority
	// lower than below left, and the pods in came, which are placed nowhere, were added.
	// known is false if only a trial placement can tell. Only the owner of the machine
	// calls it, after Sync, not under a checkpoint.
	Exchanged func(in *Input, row table.Row, below int32, came []*object.Pod) (v Verdict, known bool)
	// SetNominated, when set, replaces the nominated pods that count against the pod, by
	// the row that each is nominated to. From then on verdicts include what these pods rule
	// out in whole domains. What they rule out on their own row alone is left to the engine,
	// which places them there for a trial. own is the row that the pod itself is nominated
	// to, -1 if none. The owner of the machine calls it, under no checkpoint.
	SetNominated func(in *Input, pod *object.Pod, own table.Row, nominated iter.Seq2[table.Row, *object.Pod])
}

// CellScore is a Score by cells, for a plugin whose Locality is Domains and that leaves
// Score nil. A cell is a number for nodes that all get one score, such as those in the same
// topology domains. Sync and Cells are as in CellFilter.
type CellScore struct {
	Sync  func(in *Input)
	Cells func(in *Input, rows []table.Row, out []int64)
	// FeasibleNodes, when set, is called before Score with the number of feasible nodes of
	// each cell, in any order. Cells without feasible nodes are left out.
	FeasibleNodes func(in *Input, feasible []CellCount)
	// Score returns the raw score of every row of the cell. NoScore leaves the rows out of
	// the extremes; they are normalised to 0.
	Score func(in *Input, cell int64) int64
	// Rows, when set, writes the raw score of rows[i] to out[i], like Cells and then Score,
	// as CellFilter.Rows does for verdicts.
	Rows func(in *Input, rows []table.Row, out []int64)
}

// AskRows writes the verdict on rows[i] to out[i]. It asks Rows if the plugin has it, else
// finds the cell of each row and asks Filter once for most cells.
func (c *CellFilter) AskRows(in *Input, rows []table.Row, out []Verdict) {
	if c.Rows != nil {
		c.Rows(in, rows, out)
		return
	}
	byCells(in, rows, out, c.Cells, c.Filter)
}

// AskRows writes the raw score of rows[i] to out[i]. It asks Rows if the plugin has it,
// else finds the cell of each row and asks Score once for most cells.
func (c *CellScore) AskRows(in *Input, rows []table.Row, out []int64) {
	if c.Rows != nil {
		c.Rows(in, rows, out)
		return
	}
	byCells(in, rows, out, c.Cells, c.Score)
}

// TellFeasible calls FeasibleNodes, if it is set, with the number of the given rows in each
// cell. rows are all feasible rows.
func (c *CellScore) TellFeasible(in *Input, rows []table.Row) {
	if c.FeasibleNodes == nil {
		return
	}
	cells := make([]int64, len(rows))
	c.Cells(in, rows, cells)
	c.FeasibleNodes(in, countCells(cells))
}

// cellsAtHand is the size of the cache of cells that byCells and countCells use. Rows are
// in few cells as a rule.
const cellsAtHand = 256

// placeOf returns the index of a cell in the cache of byCells and countCells, a hash of
// the cell below cellsAtHand.
func placeOf(cell int64) uint64 { return uint64(cell) * 0x9e3779b97f4a7c15 >> 56 } // 2^64 by the golden ratio

// countCells returns how often each cell occurs in the list, sorted by cell.
func countCells(cells []int64) (counts []CellCount) {
	var atHand [cellsAtHand]CellCount
	for _, cell := range cells {
		at := &atHand[placeOf(cell)]
		if at.Cell != cell {
			counts = append(counts, *at)
			*at = CellCount{Cell: cell}
		}
		at.Nodes++
	}
	counts = append(counts, atHand[:]...)
	slices.SortFunc(counts, func(a, b CellCount) int { return cmp.Compare(a.Cell, b.Cell) })
	merged := counts[:0]
	for _, c := range counts {
		if n := len(merged); n > 0 && merged[n-1].Cell == c.Cell {
			merged[n-1].Nodes += c.Nodes
		} else if c.Nodes > 0 {
			merged = append(merged, c)
		}
	}
	return merged
}

// byCells writes to out[i] the result of of for the cell of rows[i]. It calls of once for
// most cells. Rows without a node are left out.
func byCells[T any](in *Input, rows []table.Row, out []T, cells func(*Input, []table.Row, []int64), of func(*Input, int64) T) {
	type answer struct {
		cell  int64
		said  T
		known bool
	}
	at := make([]int64, len(rows))
	cells(in, rows, at)
	var atHand []answer // none for a few rows
	if len(rows) >= cellsAtHand/8 {
		atHand = make([]answer, cellsAtHand)
	}
	for i, r := range rows {
		switch {
		case in.Table.Node(r) == nil:
			continue
		case atHand == nil:
			out[i] = of(in, at[i])
			continue
		}
		a := &atHand[placeOf(at[i])]
		if !a.known || a.cell != at[i] {
			*a = answer{at[i], of(in, at[i]), true}
		}
		out[i] = a.said
	}
}

// CellCount is a cell with the number of its feasible nodes. CellScore.FeasibleNodes gets
// one for each cell before Score is called: PodTopologySpread weighs a constraint by the
// number of domains that have such nodes.
type CellCount struct {
	Cell  int64
	Nodes int // number of feasible nodes in the cell
}

// NoScore is what CellScore.Score returns for rows that are to get 0, whatever the others
// score: their raw score does not count for the minimum and maximum that NormalizeScore
// gets.
const NoScore = -1 << 63
