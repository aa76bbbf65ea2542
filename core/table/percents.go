package table

import "math"

// Percents is what a row has left of CPU and memory in percent of what its node offers,
// for a first pass of a class over all rows. It follows from the row's Headroom and
// Evenness.
type Percents struct {
	CPU, Memory Percent
	// Apart, added to the difference between what is left of CPU and of memory, makes
	// the difference between the parts that are in use. In units.
	Apart int64
	// Uneven is 250 less the Evenness, in units of 2^-32.
	Uneven int64
}

// Percent is one resource of a Percents.
type Percent struct {
	// Left is what is left of FreeNonZero and half a unit of the resource, in units.
	// It is negative in rows out of the ordinary: where one of the Headroom's Free is,
	// or is less than FreeNonZero.
	Left float64
	// Inverse is the Headroom's.
	Inverse float64
}

// PercentUnits are the units of a percent.
const (
	PercentBits  = 31
	PercentUnits = 1 << PercentBits
)

// Percents returns the column of what rows have left in percent. Read only.
func (t *Table) Percents() []Percents { return t.columns.percents }

// setPercents follows a change of the row's headroom.
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

func percentOf(r Room) Percent {
	return Percent{Left: (r.FreeNonZero*100 + 0.5) * r.Inverse * PercentUnits, Inverse: r.Inverse}
}
