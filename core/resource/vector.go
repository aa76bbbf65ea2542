package resource

import (
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Vector is an amount of every resource. CPU is in thousandths of a core,
// memory and ephemeral storage in bytes, every other resource in its own
// whole units. Scalars is sorted by name, without duplicates and without
// zeros.
type Vector struct {
	MilliCPU         int64
	Memory           int64
	EphemeralStorage int64
	Scalars          []Scalar
}

// Scalar is an amount, in whole units, of one named resource for which IsScalar is true.
type Scalar struct {
	Name  v1.ResourceName
	Value int64
}

// Of returns the amount of the named resource, 0 if the vector has none.
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

// find returns the index of the named resource in Scalars, false if it is not there.
func (v Vector) find(name v1.ResourceName) (int, bool) {
	return slices.BinarySearchFunc(v.Scalars, name, func(s Scalar, n v1.ResourceName) int {
		return strings.Compare(string(s.Name), string(n))
	})
}

// AppendKey appends a text that is equal for equal vectors, and only for these.
func (v Vector) AppendKey(dst []byte) []byte {
	for _, n := range [...]int64{v.MilliCPU, v.Memory, v.EphemeralStorage} {
		dst = append(strconv.AppendInt(dst, n, 10), ' ')
	}
	for _, s := range v.Scalars {
		dst = strconv.AppendQuote(dst, string(s.Name))
		dst = append(strconv.AppendInt(dst, s.Value, 10), ' ')
	}
	return dst
}

// FromList converts a ResourceList, such as a node's allocatable. Amounts are rounded up to
// the resource's unit and saturate at the ends of int64. Names that the scheduler does not
// count as resources are left out; "pods" is one of them, as it is no part of what a pod
// requests.
func FromList(list v1.ResourceList) Vector {
	var v Vector
	for name, q := range list { // any order: sorted at the end
		switch name {
		case v1.ResourceCPU:
			v.MilliCPU = Milli(q)
		case v1.ResourceMemory:
			v.Memory = Whole(q)
		case v1.ResourceEphemeralStorage:
			v.EphemeralStorage = Whole(q)
		default:
			if n := Whole(q); n != 0 && IsScalar(name) {
				v.Scalars = append(v.Scalars, Scalar{name, n})
			}
		}
	}
	sortScalars(v.Scalars)
	return v
}

// sortScalars sorts by name, in place.
func sortScalars(s []Scalar) {
	slices.SortFunc(s, func(a, b Scalar) int { return strings.Compare(string(a.Name), string(b.Name)) })
}

// Equal reports whether the amounts are the same.
func (v Vector) Equal(w Vector) bool {
	return v.MilliCPU == w.MilliCPU && v.Memory == w.Memory &&
		v.EphemeralStorage == w.EphemeralStorage && slices.Equal(v.Scalars, w.Scalars)
}
