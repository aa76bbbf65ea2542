package resource

import (
	"math"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Milli returns the quantity in thousandths, rounded away from zero and saturated at the
// ends of int64.
func Milli(q resource.Quantity) int64 {
	n, _ := units(&q, resource.Milli)
	return n
}

// Whole returns the quantity in whole units, rounded away from zero and saturated at the
// ends of int64.
func Whole(q resource.Quantity) int64 {
	n, _ := units(&q, 0)
	return n
}

// fidelity is how well an int64 represents a quantity.
type fidelity uint8

const (
	exact     fidelity = iota // the int64 is the quantity
	rounded                   // it was rounded away from zero
	saturated                 // the quantity is beyond int64: the int64 is the largest or smallest
)

// units returns the quantity in units of ten to the power of scale, rounded away from zero and
// saturated, and how well that represents the quantity.
func units(q *resource.Quantity, scale resource.Scale) (int64, fidelity) {
	if q.IsZero() { // its exponent may be beyond all reason, too
		return 0, exact
	}
	if scale == 0 {
		if n, ok := q.AsInt64(); ok {
			return n, exact
		}
	}
	if q.Sign() < 0 {
		positive := q.DeepCopy()
		positive.ToDec().Neg()
		n, f := units(&positive, scale)
		return -n, f
	}
	// An exponent may be beyond all reason ("1e999999999"), and exact
	// arithmetic on it would take forever: look at its size first.
	f := q.AsApproximateFloat64() * math.Pow10(-int(scale))
	if f > 2*math.MaxInt64 || f > math.MaxInt64/2 && q.Cmp(at(math.MaxInt64, scale)) > 0 {
		return math.MaxInt64, saturated
	}
	n := q.ScaledValue(scale)
	if q.Cmp(at(n, scale)) != 0 {
		return n, rounded
	}
	return n, exact
}

// at returns the quantity of n units of ten to the power of scale.
func at(n int64, scale resource.Scale) (q resource.Quantity) {
	q.SetScaled(n, scale)
	return q
}

// Quantity returns the amount of the named resource, given in the units of Vector, as a
// manifest would state it.
func Quantity(name v1.ResourceName, amount int64) *resource.Quantity {
	switch {
	case name == v1.ResourceCPU:
		return resource.NewMilliQuantity(amount, resource.DecimalSI)
	case name == v1.ResourceMemory || name == v1.ResourceEphemeralStorage || strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix):
		return resource.NewQuantity(amount, resource.BinarySI)
	}
	return resource.NewQuantity(amount, resource.DecimalSI)
}

// Add returns a+b, saturated at the ends of int64.
func Add(a, b int64) int64 {
	s := a + b
	if a > 0 && b > 0 && s < 0 {
		return math.MaxInt64
	}
	if a < 0 && b < 0 && s >= 0 {
		return math.MinInt64
	}
	return s
}

// Sub returns a-b, saturated at the ends of int64.
func Sub(a, b int64) int64 {
	if b == math.MinInt64 {
		return Add(Add(a, math.MaxInt64), 1)
	}
	return Add(a, -b)
}
