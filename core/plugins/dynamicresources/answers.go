package dynamicresources

import (
	"github.com/berth-scheduler/berth/core/index/devicepools"
	"github.com/berth-scheduler/berth/core/table"
)

// answers keeps the verdicts and raw scores of nodes between decisions, by the signature
// of the pods' claims, so that pods that ask for the same devices need no new search, though
// they differ otherwise.
// PreFilter and PreScore make room for all rows; Filter and Score fill it. The zero
// value is ready to use, for one table at a time.
type answers struct {
	table *table.Table
	by    map[string]*columns // by signature
}

// columns holds the answers for one signature, by row.
type columns struct {
	verdicts, scores column
	// searches holds the search on a node by the extended resources that the node lacks, as
	// bits; nil: nothing is to be allocated there.
	searches map[uint64]*search
}

// answerRows bounds the rows of all columns together. With more, all answers are dropped.
const answerRows = 1 << 19

// of returns the kept answers for the signature, empty ones if there are none. To bound the memory,
// or for another table, it may drop the answers for all other signatures first.
func (a *answers) of(t *table.Table, signature []byte) *columns {
	c := a.by[string(signature)]
	if a.table == t && c != nil {
		return c
	}
	if a.table != t || (len(a.by)+1)*max(t.Rows(), 1<<10) > answerRows {
		a.table, a.by = t, map[string]*columns{}
	}
	c = &columns{searches: map[uint64]*search{}}
	a.by[string(signature)] = c
	return c
}

// column keeps a number for each row, valid until the row's node or devices change.
type column struct {
	answers   []int64
	revisions []uint64 // of the row's devices, when the answer was kept
}

// makeRoom extends the column to all rows of a table with that many. It never shortens it.
func (c *column) makeRoom(rows int) {
	if n := rows - len(c.answers); n > 0 {
		c.answers, c.revisions = append(c.answers, make([]int64, n)...), append(c.revisions, make([]uint64, n)...)
	}
}

// of returns the row's kept answer. known is false if none is kept, or the devices that the
// row's node sees have changed since.
func (c *column) of(t *table.Table, r table.Row) (answer int64, known bool) {
	if int(r) >= len(c.answers) || c.revisions[r] != devicepools.Of(t).RowRevision(r) {
		return 0, false
	}
	return c.answers[r], true
}

// keep stores the answer for the row, if the column covers it.
func (c *column) keep(t *table.Table, r table.Row, answer int64) {
	if int(r) < len(c.answers) {
		c.answers[r], c.revisions[r] = answer, devicepools.Of(t).RowRevision(r)
	}
}
