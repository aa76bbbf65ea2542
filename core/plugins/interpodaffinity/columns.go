package interpodaffinity

import (
	"github.com/berth-scheduler/berth/core/domain"
	"github.com/berth-scheduler/berth/core/table"
)

// column is a number by domain of one topology. What is counted where there is no node,
// or where the node lacks the label, is in no domain.
type column struct {
	*domain.Topology
	sums  []int64
	added int64  // the sum of all that was added
	moves uint64 // the topology's, when all was counted
}

// follow brings the column's topology up to the table, and makes room for its domains. It
// tells whether a node is in another domain than what is counted says.
func (c *column) follow(t *table.Table, rooms *rooms) (moved bool) {
	c.Follow(t)
	if n := c.Len(); len(c.sums) < n {
		c.sums = rooms.extend(c.sums, n)
	}
	return c.moves != c.Moves
}

// clear has nothing counted.
func (c *column) clear() {
	clear(c.sums)
	c.added, c.moves = 0, c.Moves
}

// add counts n more on the row.
func (c *column) add(r table.Row, n int64) {
	c.sums[c.Of()[r]] += n
	c.added += n
}

// addRows counts n more on each of the rows.
func (c *column) addRows(rows []table.Row, n int64) {
	of, sums := c.Of(), c.sums
	for _, r := range rows {
		sums[of[r]] += n
	}
	c.added += n * int64(len(rows))
}

// addCounts counts n more for each pod on the rows.
func (c *column) addCounts(rows []table.RowCount, n int64) {
	of, sums, all := c.Of(), c.sums, int64(0)
	for _, pods := range rows {
		more := n * int64(pods.N)
		sums[of[pods.Row]] += more
		all += more
	}
	c.added += all
}

// total is what is counted in all domains together.
func (c *column) total() int64 { return c.added - c.sums[domain.None] - c.sums[domain.Missing] }

// roomsKept bounds the columns whose room is kept.
const roomsKept = 256

// rooms is the room of columns that nobody uses any more.
type rooms [][]int64

// extend returns the column with n elements: those that it has, then zeros.
func (l *rooms) extend(s []int64, n int) []int64 {
	if cap(s) >= n {
		had := len(s)
		s = s[:n]
		clear(s[had:])
		return s
	}
	if k := len(*l) - 1; len(s) == 0 && k >= 0 {
		room := (*l)[k]
		if *l = (*l)[:k]; cap(room) >= n {
			room = room[:n]
			clear(room)
			return room
		}
	}
	return append(s, make([]int64, n-len(s))...)
}

// give takes the room of a column.
func (l *rooms) give(s []int64) {
	if cap(s) > 0 && len(*l) < roomsKept {
		*l = append(*l, s[:0])
	}
}
