package ranking

// Cause is why no pod of the class may go to a row: the filter that rejects it
// first, and its verdict. Filters are numbered from 1.
type Cause struct {
	Filter  int16
	Verdict uint64
}

// Rejects tells whether a filter rejects the row.
func (c Cause) Rejects() bool { return c.Filter > Feasible }

// What stands for a filter where none rejects the row: it is feasible, or has no
// node.
const (
	Feasible int16 = 0
	NoNode   int16 = -1
)

// causes numbers the causes, and counts the rows of each.
type causes struct {
	ids  map[Cause]int32
	list []Cause
	rows []int
	last int32
}

// id finds or makes the number of a cause.
func (c *causes) id(k Cause) int32 {
	if int(c.last) < len(c.list) && c.list[c.last] == k {
		return c.last
	}
	id, known := c.find(k)
	if !known {
		if c.ids == nil {
			c.ids = map[Cause]int32{}
		}
		id = int32(len(c.list))
		c.ids[k], c.list, c.rows = id, append(c.list, k), append(c.rows, 0)
	}
	c.last = id
	return id
}

// fewCauses are looked through faster than they are hashed.
const fewCauses = 12

func (c *causes) find(k Cause) (id int32, known bool) {
	if len(c.list) > fewCauses {
		id, known = c.ids[k]
		return id, known
	}
	for i := range c.list {
		if c.list[i] == k {
			return int32(i), true
		}
	}
	return 0, false
}

func (c *causes) reset() {
	clear(c.ids)
	c.list, c.rows, c.last = c.list[:0], c.rows[:0], 0
}
