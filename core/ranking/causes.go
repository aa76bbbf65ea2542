package ranking

// Cause is the reason for which a row is rejected: the first filter that rejects it, and
// its verdict. Filters are numbered from 1.
type Cause struct {
	Filter  int16
	Verdict uint64
}

// Rejects reports whether a filter rejects the row.
func (c Cause) Rejects() bool { return c.Filter > Feasible }

// What stands for a filter where no Update named one: the row is feasible, or closed.
const (
	Feasible int16 = 0
	Closed   int16 = -1
)

// causes numbers the causes, and counts the rows of each.
type causes struct {
	ids  map[Cause]int32
	list []Cause
	rows []int
	// recent holds numbers of recent causes, by hash. Most rows are rejected for one of a
	// few causes.
	recent [recentCauses]int32
	last   int32 // the number found last; neighbours often have the same cause
}

const recentCauses = 64

// id finds or makes the number of a cause.
func (c *causes) id(k Cause) int32 {
	if int(c.last) < len(c.list) && c.list[c.last] == k {
		return c.last
	}
	c.last = c.find(k)
	return c.last
}

func (c *causes) find(k Cause) int32 {
	recent := &c.recent[mix(uint64(k.Filter), k.Verdict^k.Verdict>>57)%recentCauses]
	if int(*recent) < len(c.list) && c.list[*recent] == k {
		return *recent
	}
	id, known := c.ids[k]
	if !known {
		if c.ids == nil {
			c.ids = map[Cause]int32{}
		}
		id = int32(len(c.list))
		c.ids[k], c.list, c.rows = id, append(c.list, k), append(c.rows, 0)
	}
	*recent = id
	return id
}

func (c *causes) reset() {
	clear(c.ids)
	c.list, c.rows = c.list[:0], c.rows[:0]
}
