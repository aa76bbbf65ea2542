package table

import (
	"fmt"
	"maps"
	"math"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// Resource is the id of a resource's columns: a small number that is used again after the
// columns were freed.
type Resource int

// Resources whose columns every table has; others get ids when a node or pod first names them.
const (
	CPU              Resource = iota // in millicores
	Memory                           // in bytes
	EphemeralStorage                 // in bytes
	firstScalar                      // the first id of other resources
)

// columns holds, by row, what nodes offer and what their pods request, by resource, and
// values derived from that at each change.
type columns struct {
	allocatable [][]int64  // by Resource, then row
	used        [][]int64  // by Resource, then row: sum of Demand.Usage
	nonZero     [2][]int64 // CPU and memory, by row: sum of Demand.NonZero
	podCount    []int64    // pods placed, by row
	allowedPods []int64    // node's limit of pods, by row
	headroom    []Headroom // by row; derived, see setHeadroom
	evenness    []int8     // by row; derived
	percents    []Percents // by row; derived
	scalars     scalars
}

// newColumns returns columns without rows.
func newColumns() columns {
	return columns{
		allocatable: make([][]int64, firstScalar), used: make([][]int64, firstScalar),
		scalars: scalars{ids: map[v1.ResourceName]Resource{}, limit: columnsKept},
	}
}

// scalars maps the resources other than CPU, memory and ephemeral storage to their columns. If
// there are many, sweep frees the columns that no node offers and no placed pod requests.
type scalars struct {
	ids      map[v1.ResourceName]Resource
	free     []Resource // ids whose columns were freed; the last is used first
	limit    int        // number of ids at which the next sweep is due
	revision uint64     // changes whenever a resource gets an id
}

// columnsKept is the least number of resources, CPU, memory and ephemeral storage aside, at
// which unused columns are freed.
const columnsKept = 64

// Column returns the id by which amounts of the resource are read from the table; false if it
// has no columns, as no node offers it and no placed pod requests it.
func (t *Table) Column(name v1.ResourceName) (Resource, bool) { return t.columns.find(name) }

// Columns returns, by name, the ids of all resources that have columns, CPU, memory and
// ephemeral storage included. The map is the caller's.
func (t *Table) Columns() map[v1.ResourceName]Resource { return t.columns.ids() }

// ColumnRevision returns a number that changes whenever a resource gets columns. Look ids
// up again with Column then: one that was unknown may be known, and an id may be another
// resource's.
func (t *Table) ColumnRevision() uint64 { return t.columns.scalars.revision }

// Allocatable returns how much of the resource each node offers, by row; 0 where there is
// no node. Read only.
func (t *Table) Allocatable(id Resource) []int64 { return t.columns.allocatable[id] }

// Used returns how much of the resource the pods on each row request (the sum of
// Demand.Usage). Read only.
func (t *Table) Used(id Resource) []int64 { return t.columns.used[id] }

// NonZero returns the CPU (in millicores) and memory (in bytes) that pods request, by row,
// with kube-scheduler's default for each container that requests none (Demand.NonZero).
// Read only.
func (t *Table) NonZero() (milliCPU, memory []int64) {
	return t.columns.nonZero[0], t.columns.nonZero[1]
}

// PodCount returns the number of pods on each row. Read only.
func (t *Table) PodCount() []int64 { return t.columns.podCount }

// AllowedPods returns the largest number of pods that each node takes, by row; 0 where
// there is no node. Read only.
func (t *Table) AllowedPods() []int64 { return t.columns.allowedPods }

// find returns the id of a resource's columns, false if it has none.
func (c *columns) find(name v1.ResourceName) (Resource, bool) {
	switch name {
	case v1.ResourceCPU:
		return CPU, true
	case v1.ResourceMemory:
		return Memory, true
	case v1.ResourceEphemeralStorage:
		return EphemeralStorage, true
	}
	id, ok := c.scalars.ids[name]
	return id, ok
}

// column returns the id of a resource's columns (allocatable and used, by row). It adds
// columns of zeros if the resource has none.
func (c *columns) column(name v1.ResourceName) Resource {
	if id, ok := c.find(name); ok {
		return id
	}
	s := &c.scalars
	s.revision++
	id := Resource(len(c.used))
	if n := len(s.free); n > 0 {
		id, s.free = s.free[n-1], s.free[:n-1]
	} else {
		c.used = append(c.used, make([]int64, len(c.podCount)))
		c.allocatable = append(c.allocatable, make([]int64, len(c.podCount)))
	}
	s.ids[name] = id
	return id
}

// sweep frees the columns that are 0 on every row, if there are many columns. Those of CPU,
// memory and ephemeral storage stay.
func (c *columns) sweep() {
	s := &c.scalars
	if len(s.ids) < s.limit {
		return
	}
	maps.DeleteFunc(s.ids, func(_ v1.ResourceName, id Resource) bool {
		for r := range c.podCount {
			if c.used[id][r] != 0 || c.allocatable[id][r] != 0 {
				return false
			}
		}
		s.free = append(s.free, id)
		return true
	})
	s.limit = max(columnsKept, 2*len(s.ids))
}

// grow adds a row without node and pods.
func (c *columns) grow() {
	c.podCount = append(c.podCount, 0)
	c.allowedPods = append(c.allowedPods, 0)
	c.headroom = append(c.headroom, Headroom{})
	c.evenness = append(c.evenness, 0)
	c.percents = append(c.percents, Percents{})
	for i := range c.nonZero {
		c.nonZero[i] = append(c.nonZero[i], 0)
	}
	for id := range c.used {
		c.used[id] = append(c.used[id], 0)
		c.allocatable[id] = append(c.allocatable[id], 0)
	}
	c.setHeadroom(Row(len(c.podCount) - 1))
}

// clear sets the sums over pods to 0 on all rows. What nodes offer stays. The derived columns
// are not updated.
func (c *columns) clear() {
	for id := range c.used {
		clear(c.used[id])
	}
	for i := range c.nonZero {
		clear(c.nonZero[i])
	}
	clear(c.podCount)
}

// offer sets the row's allocatable amounts and number of pods to those of its node, and updates
// the derived columns; nil means that there is no node, which offers nothing.
func (c *columns) offer(r Row, n *object.Node) {
	for id := range c.allocatable {
		c.allocatable[id][r] = 0
	}
	c.allowedPods[r] = 0
	if n != nil {
		v := &n.Allocatable
		c.allowedPods[r] = n.AllowedPods
		c.allocatable[CPU][r] = v.MilliCPU
		c.allocatable[Memory][r] = v.Memory
		c.allocatable[EphemeralStorage][r] = v.EphemeralStorage
		for _, s := range v.Scalars {
			c.allocatable[c.column(s.Name)][r] = s.Value
		}
	}
	c.setHeadroom(r)
}

// charge adds the pod's demand to its row (sign 1) or subtracts it (-1), and updates the
// derived columns. pods are those on the row afterwards. If a sum is saturated, all sums of the
// row are computed anew from pods, so that they stay exact when pods leave.
func (c *columns) charge(pl *Placed, sign int64, pods []*Placed) {
	r := pl.Row
	c.podCount[r] += sign
	if !c.add(r, &pl.Pod.Demand, sign) {
		for id := range c.used {
			c.used[id][r] = 0
		}
		c.nonZero[0][r], c.nonZero[1][r] = 0, 0
		for _, of := range pods {
			c.add(r, &of.Pod.Demand, 1)
		}
	}
	c.setHeadroom(r)
}

// add adds sign (1 or -1) times the demand to the row's sums. It returns false if one of
// them is saturated, and so not exact.
func (c *columns) add(r Row, d *resource.Demand, sign int64) bool {
	exact := bump(&c.used[CPU][r], sign, d.Usage.MilliCPU)
	exact = bump(&c.used[Memory][r], sign, d.Usage.Memory) && exact
	exact = bump(&c.used[EphemeralStorage][r], sign, d.Usage.EphemeralStorage) && exact
	exact = bump(&c.nonZero[0][r], sign, d.NonZero.MilliCPU) && exact
	exact = bump(&c.nonZero[1][r], sign, d.NonZero.Memory) && exact
	for _, s := range d.Usage.Scalars {
		exact = bump(&c.used[c.column(s.Name)][r], sign, s.Value) && exact
	}
	return exact
}

// bump adds sign (1 or -1) times amount to sum, within the bounds of int64. It returns false if
// sum is at a bound, before or afterwards, and so not exact.
func bump(sum *int64, sign, amount int64) bool {
	if *sum == math.MaxInt64 || *sum == math.MinInt64 {
		return false
	}
	if sign < 0 {
		*sum = resource.Sub(*sum, amount)
	} else {
		*sum = resource.Add(*sum, amount)
	}
	return *sum != math.MaxInt64 && *sum != math.MinInt64
}

// compare returns an error if the row differs from the same row of o. The ids of resources may
// differ.
func (c *columns) compare(r Row, o *columns) error {
	for name, id := range c.ids() { // any order: an error is an error
		var used, offered int64
		if other, ok := o.find(name); ok {
			used, offered = o.used[other][r], o.allocatable[other][r]
		}
		if c.used[id][r] != used || c.allocatable[id][r] != offered {
			return fmt.Errorf("%s used/allocatable %d/%d, rebuilt %d/%d", name, c.used[id][r], c.allocatable[id][r], used, offered)
		}
	}
	for i := range c.nonZero {
		if c.nonZero[i][r] != o.nonZero[i][r] {
			return fmt.Errorf("non-zero usage %d, rebuilt %d", c.nonZero[i][r], o.nonZero[i][r])
		}
	}
	if c.headroom[r] != o.headroom[r] || c.evenness[r] != o.evenness[r] {
		return fmt.Errorf("headroom %+v, evenness %d, rebuilt %+v, %d", c.headroom[r], c.evenness[r], o.headroom[r], o.evenness[r])
	}
	if c.percents[r] != o.percents[r] {
		return fmt.Errorf("percents %+v, rebuilt %+v", c.percents[r], o.percents[r])
	}
	if c.podCount[r] != o.podCount[r] || c.allowedPods[r] != o.allowedPods[r] {
		return fmt.Errorf("pods %d of %d, rebuilt %d of %d", c.podCount[r], c.allowedPods[r], o.podCount[r], o.allowedPods[r])
	}
	return nil
}

// ids returns a new map of the ids of all resources that have columns, by name.
func (c *columns) ids() map[v1.ResourceName]Resource {
	ids := map[v1.ResourceName]Resource{"cpu": CPU, "memory": Memory, "ephemeral-storage": EphemeralStorage}
	for name, id := range c.scalars.ids { // any order: fills a map
		ids[name] = id
	}
	return ids
}
