package domain

import "github.com/berth-scheduler/berth/core/table"

// Column counts something, mostly pods, in each domain of one topology, for instance by zone.
// What is counted on a row without a node, or whose node lacks the label, is in no domain.
type Column struct {
	*Topology
	Sums []int64 // counts by Domain, None and Missing included

	added int64  // the sum of all that was added since Clear
	moves uint64 // Topology.Moves at the last Clear
}

// Follow brings the column's topology up to date with the table and adds counts of 0 for
// new domains, in memory from rooms. It reports whether a node moved to another domain
// since Clear: the counts are wrong then, and all must be counted anew.
func (c *Column) Follow(t *table.Table, rooms *Rooms) (moved bool) {
	c.Topology.Follow(t)
	if n := c.Len(); len(c.Sums) < n {
		c.Sums = rooms.extend(c.Sums, n)
	}
	return c.moves != c.Moves
}

// Clear sets all counts to 0, before the caller counts all pods anew.
func (c *Column) Clear() {
	clear(c.Sums)
	c.added, c.moves = 0, c.Moves
}

// Add adds n, which may be negative, to the count of the row's domain. The topology must know
// the row (Follow).
func (c *Column) Add(r table.Row, n int64) {
	c.Sums[c.of[r]] += n
	c.added += n
}

// AddRows adds n to the count of each row's domain.
func (c *Column) AddRows(rows []table.Row, n int64) {
	of, sums := c.of, c.Sums
	for _, r := range rows {
		sums[of[r]] += n
	}
	c.added += n * int64(len(rows))
}

// AddCounts adds, for each of the rows, n times its number of pods to the count of its
// domain. With n = -1 it removes pods that were counted.
func (c *Column) AddCounts(rows []table.RowCount, n int64) {
	of, sums, all := c.of, c.Sums, int64(0)
	for _, pods := range rows {
		more := n * int64(pods.N)
		sums[of[pods.Row]] += more
		all += more
	}
	c.added += all
}

// Total returns the sum of the counts of all domains; rows in no domain are left out.
func (c *Column) Total() int64 { return c.added - c.Sums[None] - c.Sums[Missing] }

// Copy returns an independent column with the same counts and the same Topology, in memory from
// rooms if it has some.
func (c *Column) Copy(rooms *Rooms) *Column {
	other := *c
	other.Sums = append(rooms.extend(nil, len(c.Sums))[:0], c.Sums...)
	return &other
}

// Rooms is a free list of the count slices of columns. The zero value is ready to use.
type Rooms struct{ list [][]int64 }

// roomsKept is the most slices that the free list keeps.
const roomsKept = 256

// extend returns s with length n: its elements, then zeros. An empty s may get memory of
// the free list. The caller may not use s afterwards.
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

// Give puts the column's memory into the free list, unless that has roomsKept slices. The
// column is empty afterwards.
func (l *Rooms) Give(c *Column) {
	if cap(c.Sums) > 0 && len(l.list) < roomsKept {
		l.list = append(l.list, c.Sums[:0])
	}
	c.Sums = nil
}
