package quota

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// Together returns a pod that stands for the pods, which have one namespace: it uses what
// they use together. It returns a single pod as it is.
func Together(pods []*object.Pod) *object.Pod {
	if len(pods) == 1 {
		return pods[0]
	}
	total := &object.Pod{}
	u := &total.Demand.Usage
	for _, p := range pods {
		total.Namespace = p.Namespace
		of := &p.Demand.Usage
		u.MilliCPU = resource.Add(u.MilliCPU, max(of.MilliCPU, 0))
		u.Memory = resource.Add(u.Memory, max(of.Memory, 0))
		u.EphemeralStorage = resource.Add(u.EphemeralStorage, max(of.EphemeralStorage, 0))
		for _, s := range of.Scalars {
			at, known := slices.BinarySearchFunc(u.Scalars, s.Name, func(s resource.Scalar, name v1.ResourceName) int { return cmp.Compare(s.Name, name) })
			if !known {
				u.Scalars = slices.Insert(u.Scalars, at, resource.Scalar{Name: s.Name})
			}
			u.Scalars[at].Value = resource.Add(u.Scalars[at].Value, max(s.Value, 0))
		}
	}
	return total
}

// sum is an exact sum of amounts, of 128 bits: what was added can be subtracted again,
// however large it was.
type sum struct {
	high int64 // the upper half, with the sign
	low  uint64
}

// wide returns n as a sum.
func wide(n int64) sum { return sum{n >> 63, uint64(n)} } // #nosec G115 -- the sign is in high

// add adds t.
func (s *sum) add(t sum) {
	low, carry := bits.Add64(s.low, t.low, 0)
	s.low, s.high = low, s.high+t.high+int64(carry) // #nosec G115 -- 0 or 1
}

// minus returns the sum less t.
func (s sum) minus(t sum) sum {
	low, borrow := bits.Sub64(s.low, t.low, 0)
	return sum{s.high - t.high - int64(borrow), low} // #nosec G115 -- 0 or 1
}

// amount returns the sum, saturated at the ends of int64.
func (s sum) amount() int64 {
	switch n := int64(s.low); { // #nosec G115 -- compared with high
	case n>>63 == s.high:
		return n
	case s.high < 0:
		return math.MinInt64
	default:
		return math.MaxInt64
	}
}

// sums are sums by the number of the resource. Those that are missing are 0.
type sums []sum

// add adds n to the sum of the resource.
func (l *sums) add(resource int, n sum) {
	if short := resource + 1 - len(*l); short > 0 {
		*l = append(*l, make([]sum, short)...)
	}
	(*l)[resource].add(n)
}

// at returns the sum of the resource.
func (l sums) at(resource int) sum {
	if resource < len(l) {
		return l[resource]
	}
	return sum{}
}
