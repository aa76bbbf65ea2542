package resource

import (
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Vector is an amount of every resource. CPU is in thousandths of a core,
// memory and ephemeral storage in bytes, every other resource in its own
// whole units. Scalars is sorted by name, without duplicates.
type Vector struct {
	MilliCPU         int64
	Memory           int64
	EphemeralStorage int64
	Scalars          []Scalar
}

// Scalar is an amount of one named resource: an extended resource, huge
// pages, attachable volumes or any other that has no field of its own.
type Scalar struct {
	Name  v1.ResourceName
	Value int64
}

// Of returns the amount of the named resource, 0 where there is none.
func (v Vector) Of(name v1.ResourceName) int64 {
	switch name {
	case v1.ResourceCPU:
		return v.MilliCPU
	case v1.ResourceMemory:
		return v.Memory
	case v1.ResourceEphemeralStorage:
		return v.EphemeralStorage
	}
	if i, ok := v.find(name); ok {
		return v.Scalars[i].Value
	}
	return 0
}

func (v Vector) find(name v1.ResourceName) (int, bool) {
	return slices.BinarySearchFunc(v.Scalars, name, func(s Scalar, n v1.ResourceName) int {
		return strings.Compare(string(s.Name), string(n))
	})
}

// FromList converts a ResourceList (a node's allocatable, say). CPU rounds up
// to milli-units and everything else up to whole units, as Kubernetes does.
// "pods" is left out: it counts pods and is no part of what a pod requests.
func FromList(list v1.ResourceList) Vector {
	var v Vector
	for name, q := range list {
		switch name {
		case v1.ResourceCPU:
			v.MilliCPU = Milli(q)
		case v1.ResourceMemory:
			v.Memory = Whole(q)
		case v1.ResourceEphemeralStorage:
			v.EphemeralStorage = Whole(q)
		case v1.ResourcePods:
		default:
			v.Scalars = append(v.Scalars, Scalar{name, Whole(q)})
		}
	}
	slices.SortFunc(v.Scalars, func(a, b Scalar) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return v
}

// Milli returns the quantity in thousandths, saturated at the ends of int64.
func Milli(q resource.Quantity) int64 {
	if whole := q.Value(); whole > math.MaxInt64/1000 {
		return math.MaxInt64
	} else if whole < math.MinInt64/1000 {
		return math.MinInt64
	}
	return q.MilliValue()
}

// Whole returns the quantity in whole units, rounded up.
func Whole(q resource.Quantity) int64 { return q.Value() }

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
