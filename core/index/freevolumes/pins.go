package freevolumes

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// pinsNumbered is the most label keys that have a Column at one time.
const pinsNumbered = 16

// Column numbers the values of one label that nodes have or free volumes are pinned to, and
// keeps the number of each row's value. Numbers begin at 1. A number without holders is
// used again.
type Column struct {
	ids     map[string]int32 // number by value
	holders []int32          // nodes and volumes with the value, by number
	free    []int32          // numbers to be used again
	ofRow   []int32          // number by row; 0: the node lacks the label
	pins    int              // how many of the holders are volumes
}

// Of returns the number of the row's label value, 0 if there is no node or it lacks the
// label.
func (c *Column) Of(r table.Row) int32 {
	if int(r) >= len(c.ofRow) {
		return 0
	}
	return c.ofRow[r]
}

// Number returns the number of the value, 0 if neither a node nor a free volume has it.
func (c *Column) Number(value string) int32 { return c.ids[value] }

// hold adds a holder to the value and returns its number, a new one if it has none.
func (c *Column) hold(value string) int32 {
	id, known := c.ids[value]
	if !known {
		if n := len(c.free); n > 0 {
			id, c.free = c.free[n-1], c.free[:n-1]
		} else {
			c.holders = append(c.holders, 0)
			id = int32(len(c.holders) - 1) // #nosec G115 -- of nodes and volumes
		}
		c.ids[value] = id
	}
	c.holders[id]++
	return id
}

// release removes a holder of the value.
func (c *Column) release(value string) {
	id := c.ids[value]
	if c.holders[id]--; c.holders[id] == 0 {
		delete(c.ids, value)
		c.free = append(c.free, id)
	}
}

// set changes the value of the row's node from was to is. had and has report whether the
// node had, and has, the label.
func (c *Column) set(r table.Row, was, is string, had, has bool) {
	for int(r) >= len(c.ofRow) {
		c.ofRow = append(c.ofRow, 0)
	}
	id := int32(0)
	if has {
		id = c.hold(is)
	}
	if had {
		c.release(was)
	}
	c.ofRow[r] = id
}

// Column returns the column of a label key by which free volumes are pinned, nil if it has
// none.
func (x *Index) Column(key string) *Column { return x.columns[key] }

// columnOf returns the column of the label key, a new one if there is none; nil if there
// are too many.
func (x *Index) columnOf(key string) *Column {
	c := x.columns[key]
	if c != nil || len(x.columns) >= pinsNumbered {
		return c
	}
	c = &Column{ids: map[string]int32{}, holders: make([]int32, 1), ofRow: make([]int32, 0, x.table.Rows())}
	for _, r := range x.table.All() {
		value, has := label(x.table.Node(r), key)
		c.set(r, "", value, false, has)
	}
	x.columns[key] = c
	return c
}

// setLabels updates the columns for the row's node, which changed from old to now; nil
// stands for no node.
func (x *Index) setLabels(r table.Row, old, now *object.Node) {
	for key, c := range x.columns { // any order: each by itself
		was, had := label(old, key)
		is, has := label(now, key)
		c.set(r, was, is, had, has)
	}
}

// numberedPins lists the volumes of a storage class that are pinned by one label key, by
// the number of its value.
type numberedPins struct {
	column *Column
	lists  []*volumeList // by number; nil: no volume
}

// put sets the list of the value with the number; nil means that it has no volumes.
func (n *numberedPins) put(id int32, list *volumeList) {
	for int(id) >= len(n.lists) {
		n.lists = append(n.lists, nil)
	}
	n.lists[id] = list
}

// numberPins updates numbered and the columns after a volume was added to f, or removed if
// listed is false. A label key is numbered from the first volume of the class that it pins,
// if there is a column for it then.
func (x *Index) numberPins(f *Volumes, v *object.PersistentVolume, listed bool) {
	if v.Pin == nil {
		return
	}
	n := f.numbered[v.Pin.Key]
	if n == nil && listed && f.keyUses[v.Pin.Key] == 1 {
		if c := x.columnOf(v.Pin.Key); c != nil {
			n = &numberedPins{column: c}
			f.numbered[v.Pin.Key] = n
		}
	}
	if n == nil {
		return
	}
	for _, value := range v.Pin.Values {
		at := Pin{v.Pin.Key, value}
		if listed {
			n.put(n.column.hold(value), f.pinned[at])
			n.column.pins++
		} else {
			n.put(n.column.ids[value], f.pinned[at])
			n.column.release(value)
			n.column.pins--
		}
	}
	if f.keyUses[v.Pin.Key] == 0 {
		delete(f.numbered, v.Pin.Key)
	}
	if n.column.pins == 0 {
		delete(x.columns, v.Pin.Key)
	}
}

// Pins are the volumes of a storage class that are pinned by one label key. They are valid
// while the Revision of the class stays the same, and may be read concurrently.
type Pins struct {
	Key     string
	numbers *numberedPins // nil: the values have no numbers
}

// Pins returns one Pins for each label key by which volumes are pinned, sorted by key.
func (f *Volumes) Pins() []Pins {
	list := make([]Pins, 0, len(f.keys))
	for _, key := range f.keys {
		list = append(list, Pins{key, f.numbered[key]})
	}
	return list
}

// At returns the number of the label value of the row's node, 0 if no volume of the class
// is pinned to that value. numbered is false if values have no numbers; use Pinned then.
func (p *Pins) At(r table.Row) (id int32, numbered bool) {
	if p.numbers == nil || r < 0 {
		return 0, false
	}
	if id = p.numbers.column.Of(r); int(id) >= len(p.numbers.lists) || p.numbers.lists[id] == nil {
		id = 0
	}
	return id, true
}

// Number returns the number of the label value, 0 if it has none.
func (p *Pins) Number(value string) int32 {
	if p.numbers == nil {
		return 0
	}
	return p.numbers.column.Number(value)
}

// Few returns the volumes that are pinned to the value with the number, the smallest first;
// nil if they are more than the constant Few.
func (p *Pins) Few(id int32) []*object.PersistentVolume {
	if list := p.numbers.lists[id]; list != nil && len(list.volumes) <= Few {
		return list.volumes
	}
	return nil
}

// checkColumns returns an error if numbers and lists do not agree with the nodes and free
// volumes.
func (x *Index) checkColumns() error {
	for key, c := range x.columns { // any order: an error is an error
		holders, pins := map[string]int32{}, 0
		for _, r := range x.table.All() {
			value, has := label(x.table.Node(r), key)
			if has {
				holders[value]++
			}
			if id := c.Of(r); (id != 0) != has || has && c.ids[value] != id {
				return fmt.Errorf("label %s=%s of node %q has the number %d, kept %d", key, value, x.table.Name(r), c.ids[value], id)
			}
		}
		for class, f := range x.free { // any order: an error is an error
			n, lists := f.numbered[key], 0
			for at, list := range f.pinned { // any order: an error is an error
				if n == nil || at.Key != key {
					continue
				}
				if id := c.ids[at.Value]; id == 0 || n.column != c || n.lists[id] != list {
					return fmt.Errorf("class %q: the volumes pinned by %v have the number %d, and are not listed by it", class, at, id)
				}
				lists++
				holders[at.Value] += int32(len(list.volumes)) // #nosec G115 -- volumes
				pins += len(list.volumes)
			}
			for id := 0; n != nil && id < len(n.lists); id++ {
				if n.lists[id] != nil {
					lists--
				}
			}
			if lists != 0 {
				return fmt.Errorf("class %q: label %s: %d lists too many have a number", class, key, -lists)
			}
		}
		if len(c.ids) != len(holders) || pins != c.pins || len(c.holders)-1-len(c.free) != len(c.ids) {
			return fmt.Errorf("label %s: %d values and %d pins, recounted %d and %d", key, len(c.ids), c.pins, len(holders), pins)
		}
		for value, n := range holders { // any order: an error is an error
			if c.holders[c.ids[value]] != n {
				return fmt.Errorf("label %s=%s is held %d times, recounted %d", key, value, c.holders[c.ids[value]], n)
			}
		}
	}
	return nil
}

// label returns the node's value of the label and whether it has the label. n may be nil.
func label(n *object.Node, key string) (string, bool) {
	if n == nil {
		return "", false
	}
	value, ok := n.Labels[key]
	return value, ok
}
