package headroom

import (
	"math"

	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// Amounts is what a pod requests of CPU (millicores) and memory (bytes), rounded to floats.
type Amounts struct {
	CPU, Memory float64
	// The same before rounding, which changes amounts above 2^53.
	exactCPU, exactMemory int64
}

// Of returns the Amounts of a request of cpu millicores and memory bytes, neither
// negative.
func Of(cpu, memory int64) Amounts {
	return Amounts{float64(cpu), float64(memory), cpu, memory}
}

// LeastAllocated returns how much of the node's CPU and memory would be free with the pod
// added, in whole percent, 0 if it does not fit. Both columns of h must have an Inverse.
func (a Amounts) LeastAllocated(h *table.Headroom) (cpu, memory int64) {
	return Percent(h.CPU.FreeNonZero-a.CPU, h.CPU.Inverse), Percent(h.Memory.FreeNonZero-a.Memory, h.Memory.Inverse)
}

// Percent returns part*100/whole, cut off. inverse is 1/whole, of a whole of at most
// table.MostInverted. A part is an integer, and counts as 0 if it is negative.
//
// It is exact. Half a unit is added to the dividend, so that the quotient is at least
// 0.5/whole away from any integer, which is 5.6e-14 or more. The inverse and the product
// are rounded once each, by at most 1.2e-16 of their values, and the quotient is less
// than 101: the result is wrong by less than 2.5e-14. For 3 of 4 it is 300.5*0.25 =
// 75.125, and 75.
func Percent(part, inverse float64) int64 {
	if part < 0 {
		return 0
	}
	return int64((part*100 + 0.5) * inverse)
}

// Balanced returns NodeResourcesBalancedAllocation's score of the row, for a pod with these
// amounts: how even the use of CPU and memory is with the pod, compared with the evenness
// without it. The row must have an Inverse for both.
//
// It adds the pod's fractions to those that the table keeps, as it keeps the evenness
// without the pod, and divides nothing. With 1,000 of 4,000 millicores and 1 of 8 GiB in
// use, and a pod of 500 millicores and 1 GiB, the fractions with the pod are 0.375 and
// 0.25. Fifty times their distance is 6.25 off an evenness of 100: it is 93.75, and 93 is
// what counts. Rounding makes the distance wrong by some 1e-13. That matters only where
// fifty times the distance is next to an integer. There the evenness is computed as kube-scheduler
// does.
func (a Amounts) Balanced(t *table.Table, r table.Row) int64 {
	d := a.distance(&t.Headroom()[r])
	if nearWhole(d) {
		return Rating(a.evenness(t, r), int64(t.Evenness()[r]))
	}
	return Rating(evennessOf(d), int64(t.Evenness()[r]))
}

// A distance (see Amounts.distance) is held in units of 2^-32, so that one comparison tells
// whether it is within margin units of an integer.
const (
	unitBits = 32
	unit     = 1 << unitBits
	margin   = 16 // units
)

// distance returns fifty times the difference, without sign, between the fractions of CPU
// and memory in use with the pod, in units of 2^-32. Fractions are at most 1.
func (a Amounts) distance(h *table.Headroom) int64 {
	cpu, memory := h.CPU.InUse+a.CPU*h.CPU.Inverse, h.Memory.InUse+a.Memory*h.Memory.Inverse
	if cpu > 1 {
		cpu = 1
	}
	if memory > 1 {
		memory = 1
	}
	return int64(math.Abs(cpu-memory) * (50 * unit))
}

// nearWhole reports whether the distance is so close to an integer that rounding may
// matter.
func nearWhole(distance int64) bool { return uint32(distance+margin) < 2*margin }

// evennessOf returns the evenness, 50 to 99, at a distance (in units of 2^-32) that is not
// next to an integer.
func evennessOf(distance int64) int64 { return 99 - distance>>unitBits }

// evenness returns the evenness of the row with the pod, by exactly kube-scheduler's sequence of
// float operations.
func (a Amounts) evenness(t *table.Table, r table.Row) int64 {
	part := func(id table.Resource, amount int64) float64 {
		return min(float64(resource.Add(t.Used(id)[r], amount))/float64(t.Allocatable(id)[r]), 1)
	}
	return int64((1 - math.Abs((part(table.CPU, a.exactCPU)-part(table.Memory, a.exactMemory))/2)) * 100)
}

// Rating returns the score for the evenness with and without the pod, each from 50 to 100:
// 75 if they are equal.
func Rating(with, without int64) int64 { return 50 + (50+with-without)>>1 }
