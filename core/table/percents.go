package table

import "math"

// Percents is what is free of CPU and memory on a row in percent of the node's allocatable,
// scaled to integers, for the loop over all rows in package headroom. It is derived from the
// row's Headroom and Evenness.
type Percents struct {
	CPU, Memory Percent
	// Apart + CPU.Left - Memory.Left is the percentage of memory that is used less that of CPU,
	// in PercentUnits.
	Apart int64
	// Uneven is 250 minus the Evenness, in units of 2^-32.
	Uneven int64
}

// Percent is one resource of a Percents.
type Percent struct {
	// Left is FreeNonZero plus half a unit of the resource, in percent of allocatable times
	// PercentUnits. For both resources it is -1 on rows that the loop must leave out: where
	// Free is less than FreeNonZero for one of them, or one has no Inverse.
	Left float64
	// Inverse is 1/allocatable, from the Room.
	Inverse float64
}

// One percent is PercentUnits units.
const (
	PercentBits  = 31
	PercentUnits = 1 << PercentBits
)

// Percents returns the free percents of CPU and memory, by row. Read only.
func (t *Table) Percents() []Percents { return t.columns.percents }

// setPercents computes the row's percents anew from its headroom and evenness.
func (c *columns) setPercents(r Row) {
	h, p := &c.headroom[r], &c.percents[r]
	if h.CPU.Free < h.CPU.FreeNonZero || h.Memory.Free < h.Memory.FreeNonZero || h.CPU.Inverse == 0 || h.Memory.Inverse == 0 {
		*p = Percents{CPU: Percent{Left: -1}, Memory: Percent{Left: -1}}
		return
	}
	p.CPU, p.Memory = percentOf(h.CPU), percentOf(h.Memory)
	with := func(r Room, p Percent) float64 { return r.InUse*(100*PercentUnits) + p.Left }
	p.Apart = int64(math.Round(with(h.Memory, p.Memory) - with(h.CPU, p.CPU)))
	p.Uneven = (250 - int64(c.evenness[r])) << 32
}

// percentOf returns what is free of a resource as a Percent: half a unit more than
// FreeNonZero, in percent of allocatable, times PercentUnits. The half unit makes the
// later cut to a whole percent exact. The resource must have an Inverse.
func percentOf(r Room) Percent {
	return Percent{Left: (r.FreeNonZero*100 + 0.5) * r.Inverse * PercentUnits, Inverse: r.Inverse}
}
