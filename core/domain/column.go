package domain

import "github.com/berth-scheduler/berth/core/table"

// Column is a number by domain of one topology. What is counted where there is no node,
// or where the node lacks the label, is in no domain.
type Column struct {
	*Topology
	Sums []int64

	added int64  // the sum of all that was added
	moves uint64 // the topology's, when all was counted
}

// Follow brings the column's topology up to date with the table and extends the column to
// all domains. It reports whether a node moved to another domain since the column was
// counted.
func (c *Column) Follow(t *table.Table, rooms *Rooms) (moved bool) {
	c.Topology.Follow(t)
	if n := c.Len(); len(c.Sums) < n {
		c.Sums = rooms.extend(c.Sums, n)
	}
	return c.moves != c.Moves
}

// Clear sets all counts to 0.
func (c *Column) Clear() {
	clear(c.Sums)
	c.added, c.moves = 0, c.Moves
}

// Add counts n more on the row.
func (c *Column) Add(r table.Row, n int64) {
	c.Sums[c.of[r]] += n
	c.added += n
}

// AddRows counts n more on each of the rows.
func (c *Column) AddRows(rows []table.Row, n int64) {
	of, sums := c.of, c.Sums
	for _, r := range rows {
		sums[of[r]] += n
	}
	c.added += n * int64(len(rows))
}

// AddCounts counts n more for each pod on the rows.
func (c *Column) AddCounts(rows []table.RowCount, n int64) {
	of, sums, all := c.of, c.Sums, int64(0)
	for _, pods := range rows {
		more := n * int64(pods.N)
		sums[of[pods.Row]] += more
		all += more
	}
	c.added += all
}

// Total returns what is counted in all domains together.
func (c *Column) Total() int64 { return c.added - c.Sums[None] - c.Sums[Missing] }

// Copy returns a column with the same counts.
func (c *Column) Copy(rooms *Rooms) *Column {
	other := *c
	other.Sums = append(rooms.extend(nil, len(c.Sums))[:0], c.Sums...)
	return &other
}

// Rooms holds buffers of columns that are no longer used. The zero value is ready to use.
type Rooms struct{ list [][]int64 }

// roomsKept bounds the buffers that are kept.
const roomsKept = 256

// extend returns s with n elements: those of s, then zeros. It may use a kept
// buffer.
func (l *Rooms) extend(s []int64, n int) []int64 {
	if cap(s) >= n {
		had := len(s)
		s = s[:n]
		clear(s[had:])
		return s
	}
	if k := len(l.list) - 1; len(s) == 0 && k >= 0 {
		room := l.list[k]
		if l.list = l.list[:k]; cap(room) >= n {
			room = room[:n]
			clear(room)
			return room
		}
	}
	return append(s, make([]int64, n-len(s))...)
}

// Give takes the column's buffer for later use. The column is empty then.
func (l *Rooms) Give(c *Column) {
	if cap(c.Sums) > 0 && len(l.list) < roomsKept {
		l.list = append(l.list, c.Sums[:0])
	}
	c.Sums = nil
}
