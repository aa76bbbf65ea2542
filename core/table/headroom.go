package table

import "math"

// Headroom is what is free of CPU and memory on a row, in the form in which thousands of
// rows are read for a decision: one cache line a row, and no division. It is derived from
// the columns.
type Headroom struct{ CPU, Memory Room }

// Room is one resource of a Headroom. All amounts are exact: none that matters is more than
// MostInverted.
type Room struct {
	// Free is Allocatable less Used. It is -1 where amounts do not decide whether a pod fits:
	// more is used than allocatable, nothing or more than MostInverted is allocatable, or the
	// row takes no further pod.
	Free float64
	// FreeNonZero is Allocatable less NonZero, and never negative; 0 where there is
	// no Inverse.
	FreeNonZero float64
	// InUse is Used/Allocatable; more than 1 where more is taken than offered, 0 where nothing
	// is offered.
	InUse float64
	// Inverse is 1/Allocatable; 0 where none is offered, or more than MostInverted.
	Inverse float64
}

// MostInverted is the largest allocatable amount for which a Room has an Inverse.
const MostInverted = 1 << 42

// Headroom returns what is free of CPU and memory, by row. Read only.
func (t *Table) Headroom() []Headroom { return t.columns.headroom }

// Evenness returns, by row, how equal the used fractions of CPU and memory are: 100 where
// they are the same, 50 where all of one and nothing of the other is used, computed as
// NodeResourcesBalancedAllocation of kube-scheduler does. Read only.
func (t *Table) Evenness() []int8 { return t.columns.evenness }

// setHeadroom computes the row's headroom, evenness and percents anew; call it after a
// change of its other columns.
func (c *columns) setHeadroom(r Row) {
	full := c.podCount[r] >= c.allowedPods[r]
	c.headroom[r] = Headroom{
		CPU:    roomOf(c.allocatable[CPU][r], c.used[CPU][r], c.nonZero[0][r], full),
		Memory: roomOf(c.allocatable[Memory][r], c.used[Memory][r], c.nonZero[1][r], full),
	}
	h := &c.headroom[r]
	c.evenness[r] = int8((1 - math.Abs((min(h.CPU.InUse, 1)-min(h.Memory.InUse, 1))/2)) * 100)
	c.setPercents(r)
}

// roomOf returns the Room of a resource. full means that the row takes no further pod. Free
// is -1 then, and if used exceeds allocatable or allocatable is 0 or above MostInverted.
func roomOf(allocatable, used, nonZero int64, full bool) Room {
	if allocatable <= 0 {
		return Room{Free: -1}
	}
	room := Room{Free: -1, InUse: float64(used) / float64(allocatable)}
	if allocatable > MostInverted {
		return room
	}
	room.FreeNonZero = float64(max(allocatable-nonZero, 0))
	room.Inverse = 1 / float64(allocatable)
	if !full && used <= allocatable {
		room.Free = float64(allocatable - used)
	}
	return room
}
