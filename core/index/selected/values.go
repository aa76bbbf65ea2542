package selected

import (
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// valueColumns keeps, for labels that requirements ask about, the value of each row's node
// as a number. A new requirement is compared with each value once, and not with each node.
type valueColumns struct {
	byKey map[string]*valueColumn
	uses  uint64 // counter, for the age of columns
}

// valueColumn holds the values of one label by row.
type valueColumn struct {
	ofRow    []int32          // noNode, noLabel, or the number of a value
	numbers  map[string]int32 // number by value
	values   []string         // by number; the first two stand for noNode and noLabel
	revision uint64           // of the table, up to which ofRow is right
	used     uint64           // value of uses at the last use
}

// Numbers in valueColumn.ofRow that stand for no value.
const (
	noNode int32 = iota
	noLabel
)

// mostLabels is the most labels whose values are kept; with more, those used longest ago are
// dropped. Each takes four bytes a row.
const mostLabels = 64

// valueColumn returns the column of the label, up to date with the table. The first call for a
// label makes it.
func (x *Index) valueColumn(key string) *valueColumn {
	l := &x.columns
	c := l.byKey[key]
	if c == nil {
		if len(l.byKey) >= mostLabels {
			table.DropOldest(l.byKey, func(c *valueColumn) uint64 { return c.used })
		}
		c = &valueColumn{}
		l.byKey[key] = c
	}
	l.uses++
	c.used = l.uses
	if len(c.values) > 64+2*x.table.Rows() { // most are values that no node has any more
		*c = valueColumn{used: c.used}
	}
	if c.numbers == nil {
		c.numbers, c.values = map[string]int32{}, make([]string, noLabel+1)
	}
	c.ofRow = append(c.ofRow, make([]int32, x.table.Rows()-len(c.ofRow))...)
	x.table.NodesChanged(c.revision, func(r table.Row) bool {
		c.set(x.table.Node(r), r, key)
		return true
	})
	c.revision = x.table.Revision()
	return c
}

// set records the value that node n, on row r, has for the label key, as a number; n is
// nil if there is no node.
func (c *valueColumn) set(n *object.Node, r table.Row, key string) {
	if n == nil {
		c.ofRow[r] = noNode
		return
	}
	value, has := n.Labels[key]
	if !has {
		c.ofRow[r] = noLabel
		return
	}
	number, known := c.numbers[value]
	if !known {
		number = int32(len(c.values)) // #nosec G115 -- of nodes
		c.numbers[value], c.values = number, append(c.values, value)
	}
	c.ofRow[r] = number
}

// rowsThat adds to rows those whose node's value is accepted. accepts is called once for
// each value, and once with exists false for nodes without the label.
func (c *valueColumn) rowsThat(accepts func(value string, exists bool) bool, rows table.RowSet) {
	accepted := make([]uint64, len(c.values)) // 1 or 0
	for number := noLabel; int(number) < len(c.values); number++ {
		if accepts(c.values[number], number > noLabel) {
			accepted[number] = 1
		}
	}
	for r, number := range c.ofRow {
		rows[r>>6] |= accepted[number] << (r & 63)
	}
}
