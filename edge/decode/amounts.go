package decode

import (
	"math"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// saneSlice returns the slice, or a copy in which amounts beyond int64 are cut
// off there: exact arithmetic on some ("1e999999999") would never end.
func saneSlice(s *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	if !eachInSlice(s, absurd) {
		return s
	}
	s = s.DeepCopy()
	eachInSlice(s, cut)
	return s
}

// saneClaim returns the claim, or a copy in which amounts beyond int64 are cut off there:
// exact arithmetic on some ("1e999999999") would never end.
func saneClaim(c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	if !eachInClaim(c, absurd) {
		return c
	}
	c = c.DeepCopy()
	eachInClaim(c, cut)
	return c
}

func absurd(q *resource.Quantity) bool {
	return !whole(q) && math.Abs(q.AsApproximateFloat64()) >= math.MaxInt64
}

// whole reports whether the amount is an int64, as it is once it was cut.
func whole(q *resource.Quantity) bool {
	if q.IsZero() { // AsInt64 counts its exponent down
		return true
	}
	_, ok := q.AsInt64()
	return ok
}

func cut(q *resource.Quantity) bool {
	switch {
	case !absurd(q):
		return false
	case q.Sign() < 0:
		q.Set(math.MinInt64)
	default:
		q.Set(math.MaxInt64)
	}
	return true
}

// eachInSlice calls f for every amount in the slice and reports whether it was true for
// one.
func eachInSlice(s *resourcev1.ResourceSlice, f func(*resource.Quantity) bool) (any bool) {
	for i := range s.Spec.SharedCounters {
		any = eachCounter(s.Spec.SharedCounters[i].Counters, f) || any
	}
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		for _, r := range d.NodeAllocatableResources { // any order: each value by itself
			for _, q := range amountsOf(&r) {
				any = q != nil && f(q) || any
			}
		}
		for k := range d.ConsumesCounters {
			any = eachCounter(d.ConsumesCounters[k].Counters, f) || any
		}
		for name, c := range d.Capacity { // any order: each value by itself
			hit := f(&c.Value)
			if c.RequestPolicy != nil {
				hit = eachInPolicy(c.RequestPolicy, f) || hit
			}
			if any = any || hit; hit && whole(&c.Value) {
				d.Capacity[name] = c
			}
		}
	}
	return any
}

// amountsOf returns the amounts in the entry, nil for those that it leaves out.
func amountsOf(r *resourcev1.NodeAllocatableResource) (list []*resource.Quantity) {
	if m := r.Mapping; m != nil {
		list = append(list, m.CapacityMultiplier, m.DeviceMultiplier)
	}
	if o := r.Overhead; o != nil {
		list = append(list, o.PerPod, o.PerContainer)
	}
	return list
}

func eachCounter(list map[string]resourcev1.Counter, f func(*resource.Quantity) bool) (any bool) {
	for name, c := range list { // any order: each value by itself
		if f(&c.Value) {
			if any = true; whole(&c.Value) {
				list[name] = c
			}
		}
	}
	return any
}

func eachInPolicy(p *resourcev1.CapacityRequestPolicy, f func(*resource.Quantity) bool) (any bool) {
	list := []*resource.Quantity{p.Default}
	for i := range p.ValidValues {
		list = append(list, &p.ValidValues[i])
	}
	if r := p.ValidRange; r != nil {
		list = append(list, r.Min, r.Max, r.Step)
	}
	for _, q := range list {
		any = q != nil && f(q) || any
	}
	return any
}

// eachInClaim calls f for every amount in the claim and reports whether it was true for
// one.
func eachInClaim(c *resourcev1.ResourceClaim, f func(*resource.Quantity) bool) (any bool) {
	ask := func(r *resourcev1.CapacityRequirements) {
		if r != nil {
			any = eachAmount(r.Requests, f) || any
		}
	}
	for i := range c.Spec.Devices.Requests {
		r := &c.Spec.Devices.Requests[i]
		if r.Exactly != nil {
			ask(r.Exactly.Capacity)
		}
		for k := range r.FirstAvailable {
			ask(r.FirstAvailable[k].Capacity)
		}
	}
	if a := c.Status.Allocation; a != nil {
		for i := range a.Devices.Results {
			any = eachAmount(a.Devices.Results[i].ConsumedCapacity, f) || any
		}
	}
	return any
}

func eachAmount(list map[resourcev1.QualifiedName]resource.Quantity, f func(*resource.Quantity) bool) (any bool) {
	for name, q := range list { // any order: each value by itself
		if f(&q) {
			if any = true; whole(&q) {
				list[name] = q
			}
		}
	}
	return any
}
