package engine

// causes numbers the ways in which rows are blocked, and counts the rows.
type causes struct {
	ids  map[blockKey]int32
	keys []blockKey
	rows []int
	last int32
}

func (c *causes) id(k blockKey) int32 {
	if int(c.last) < len(c.keys) && c.keys[c.last] == k {
		return c.last
	}
	id, known := c.ids[k]
	if !known {
		if c.ids == nil {
			c.ids = map[blockKey]int32{}
		}
		id = int32(len(c.keys))
		c.ids[k], c.keys, c.rows = id, append(c.keys, k), append(c.rows, 0)
	}
	c.last = id
	return id
}

// tally counts the rows by cause.
func (c *causes) tally() map[blockKey]int {
	counts := map[blockKey]int{}
	for id, n := range c.rows {
		if n > 0 {
			counts[c.keys[id]] = n
		}
	}
	return counts
}

func (c *causes) reset() {
	clear(c.ids)
	c.keys, c.rows, c.last = c.keys[:0], c.rows[:0], 0
}
