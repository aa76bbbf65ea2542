package ranking

import "github.com/berth-scheduler/berth/core/table"

// maxValues is how many shared values, and how many own ones, a row may have in
// an index with groups.
const maxValues = 8

// values are some values of a row.
type values [maxValues]int64

// maxGroups bounds the groups of an index, which take up to 40 bytes a row. With
// more groups a scan is as fast.
func maxGroups(rows int) int { return 16 + rows/32 }

// Combinations numbers the combinations of values that rows have. Several indexes share
// it, so that each need not compare the values one by one.
type Combinations struct {
	of   []int32 // by row; of rows that were never set, anything
	list []values
	ids  places
	last int32 // that was found by its hash
	// Full: there were too many combinations. Indexes over them have no groups.
	Full bool
}

// Resize sets the number of rows to n.
func (c *Combinations) Resize(n int) { c.of = extend(c.of, n) }

// Reset removes all combinations; width is the number of values of each. Full is set from
// the start if a row has more values than an index can group by.
func (c *Combinations) Reset(width int) {
	c.list, c.Full = c.list[:0], width > maxValues
	c.ids.reset()
}

// Set records the values of the row: the row's entries of the columns. It returns false
// if the combinations become Full, and does nothing once they are.
func (c *Combinations) Set(r table.Row, columns [][]int64) bool {
	if c.Full {
		return true
	}
	for _, id := range [...]int32{c.of[r], c.last} { // neighbours are often alike
		if int(id) < len(c.list) && c.has(id, r, columns) {
			c.of[r] = id
			return true
		}
	}
	hash := uint64(0)
	for _, column := range columns {
		hash = mix(hash, uint64(column[r]))
	}
	id, known := c.ids.find(hash, func(id int32) bool { return c.has(id, r, columns) })
	if !known {
		if len(c.list) >= maxGroups(len(c.of)) {
			c.Full = true
			return false
		}
		var key values
		for k, column := range columns {
			key[k] = column[r]
		}
		id = int32(len(c.list))
		c.list = append(c.list, key)
		c.ids.add(id, hash, func(id int32) uint64 { return c.hash(id, len(columns)) })
	}
	c.of[r], c.last = id, id
	return true
}

// has reports whether the row has the values of combination id.
func (c *Combinations) has(id int32, r table.Row, columns [][]int64) bool {
	key := &c.list[id]
	for k, column := range columns {
		if column[r] != key[k] {
			return false
		}
	}
	return true
}

// hash returns the hash of combination id, which has width values.
func (c *Combinations) hash(id int32, width int) (hash uint64) {
	for _, value := range c.list[id][:width] {
		hash = mix(hash, uint64(value))
	}
	return hash
}

// Value returns the k-th value of the group's rows.
func (c *Combinations) Value(g *Group, k int) int64 { return c.list[g.key.shared][k] }

// Reuse takes over the memory of old, which must not be used any more.
func (c *Combinations) Reuse(old *Combinations) {
	c.of, c.list, c.ids = old.of, old.list[:0], old.ids
	c.ids.reset()
}

// extend returns the slice with n elements: those that it has, then zeros.
func extend[T any](s []T, n int) []T {
	if n <= len(s) {
		return s[:n]
	}
	return append(s, make([]T, n-len(s))...)
}
