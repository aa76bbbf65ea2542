package framework

import "github.com/berth-scheduler/berth/core/table"

// CellFilter is a Filter by cells, for a plugin whose Locality is Domains and that
// leaves Filter nil.
//
// Some plugins look beyond one node: how many pods match in a row's zone, say.
// One placement then changes the answer for a whole domain. Such a plugin
// divides the rows into cells: rows of one cell get the same answer, always.
// A row's cell changes only when the row itself does (its node, or the pods on
// it); what a cell's answer is may change with any placement anywhere, and is
// asked once per cell and decision, not once per row.
//
// A cell is the plugin's own number. Where the domain is large (a zone) it is
// best the domain's id; where most nodes are a domain of their own (hostname;
// Table.UniquePerNode tells) it is best the value that counts (how many pods match
// on the node), so that there are few.
type CellFilter struct {
	// Sync brings State (PreFilter's) up to date with the table. It is called
	// before the others whenever the table may have changed, under a
	// checkpoint too, and never at the same time as any other function.
	Sync func(in *Input)
	// Cells writes the cell of rows[i] to out[i]. It is a kernel: it may be
	// called concurrently on disjoint rows, and only reads.
	Cells func(in *Input, rows []table.Row, out []int64)
	// Filter is the answer for every row of the cell.
	Filter func(in *Input, cell int64) Verdict
}

// CellScore is a Score by cells, for a plugin that leaves Score nil.
type CellScore struct {
	Sync  func(in *Input)
	Cells func(in *Input, rows []table.Row, out []int64)
	// FeasibleNodes, when set, is told before Score how many feasible nodes each
	// cell holds; cells without any are left out. Order is not defined.
	FeasibleNodes func(in *Input, feasible []CellCount)
	// Score is the raw score of every row of the cell. NoScore keeps the rows
	// out of the extremes; they are normalised to 0.
	Score func(in *Input, cell int64) int64
}

// CellCount is a number of nodes in a cell.
type CellCount struct {
	Cell  int64
	Nodes int
}

// NoScore is the raw score of a row that is left out of scoring.
const NoScore = -1 << 63
