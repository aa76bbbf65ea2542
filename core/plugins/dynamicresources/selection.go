package dynamicresources

import (
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// deviceSelection is the part of a request about single devices: the selectors of its
// class and its own, the tolerations and the capacity. It keeps its results by device
// content, taints and capacity.
type deviceSelection struct {
	selectors   []resourcev1.DeviceSelector
	tolerations []resourcev1.DeviceToleration
	capacity    *resourcev1.CapacityRequirements
	absurd      bool          // the allocator may fail at the requested capacity
	key         string        // selectors, tolerations and capacity as a string
	generation  uint64        // of inventories, to which the results below belong
	by          []deviceMatch // results of selectors, by device.content
	tolerated   []deviceMatch // results of tolerations, by device.taints
	large       []deviceMatch // results of capacity, by device.capacity
}

// deviceMatch is the result of matching a request with a device.
type deviceMatch uint8

const (
	unknown     deviceMatch = iota // not computed yet
	rejected                       // the request cannot have the device
	matched                        // it can
	failing                        // a selector fails with an error
	untolerated                    // the device matches, but has a taint that is not tolerated
)

// deviceSelections keeps selections by key, so that equal ones share their results. The
// zero value is ready to use.
type deviceSelections map[string]*deviceSelection

// mostSelections bounds the selections kept. With more, all are dropped.
const mostSelections = 256

// of returns the selection for a request with this class, selectors, tolerations and capacity, a
// new one if none is kept. A class that does not exist adds no selectors.
func (rs *deviceSelections) of(t *table.Table, class string, selectors []resourcev1.DeviceSelector, tolerations []resourcev1.DeviceToleration, capacity *resourcev1.CapacityRequirements) *deviceSelection {
	all := selectors
	c := table.Lookup[*object.DeviceClass](t, object.DeviceClasses, "", class)
	if c != nil {
		all = append(append([]resourcev1.DeviceSelector(nil), c.API.Spec.Selectors...), selectors...)
	}
	var key strings.Builder
	if c == nil {
		key.WriteByte(3)
	}
	for i := range all {
		if all[i].CEL != nil {
			key.WriteString(all[i].CEL.Expression)
		}
		key.WriteByte(0)
	}
	for i := range tolerations {
		key.WriteByte(1)
		key.WriteString(tolerations[i].String())
	}
	if capacity != nil {
		key.WriteByte(2)
		key.WriteString(capacity.String())
	}
	if r := (*rs)[key.String()]; r != nil {
		return r
	}
	if *rs == nil || len(*rs) >= mostSelections {
		*rs = deviceSelections{}
	}
	r := &deviceSelection{selectors: all, tolerations: tolerations, capacity: capacity, absurd: isAbsurd(capacity), key: key.String()}
	(*rs)[key.String()] = r
	return r
}

// matches returns whether the request can have the device, as far as selectors, capacity and taints
// decide, checked in this order. Whether the device is taken does not matter.
func (r *deviceSelection) matches(pl *plugin, d *device) deviceMatch {
	i := &pl.inventories
	if r.generation != i.generation {
		r.generation, r.by, r.tolerated, r.large = i.generation, nil, nil, nil
	}
	m := known(&r.by, int(d.content), func() deviceMatch { return r.selects(pl, &i.contents.things[d.content-1]) })
	if m == matched && r.capacity != nil && !r.absurd && !d.measured && d.held == 0 {
		m = known(&r.large, int(d.capacity), func() deviceMatch { return r.isMet(i.capacities.things[d.capacity-1]) })
	}
	if d.taints == 0 || m != matched || !pl.allocator.DeviceTaints {
		return m
	}
	return known(&r.tolerated, int(d.taints), func() deviceMatch { return r.tolerates(i.taints.things[d.taints-1]) })
}

// known returns the i-th result in the list, which holds by number whether a request matches
// devices. It calls find to compute the result the first time.
func known(list *[]deviceMatch, i int, find func() deviceMatch) deviceMatch {
	if n := i + 1 - len(*list); n > 0 {
		*list = append(*list, make([]deviceMatch, n)...)
	}
	if (*list)[i] == unknown {
		(*list)[i] = find()
	}
	return (*list)[i]
}

// selects evaluates the selectors on a device as the allocator does: in order, up to the first that
// rejects it or fails. It returns matched, rejected or failing. A selector without CEL fails.
func (r *deviceSelection) selects(pl *plugin, c *content) deviceMatch {
	for i := range r.selectors {
		s := r.selectors[i].CEL
		if s == nil {
			return failing
		}
		expression := pl.selectors.GetOrCompile(s.Expression)
		if expression.Error != nil {
			return failing
		}
		device := cel.Device{Driver: c.driver, Attributes: c.device.Attributes, Capacity: c.device.Capacity}
		if pl.allocator.ConsumableCapacity {
			device.AllowMultipleAllocations = c.device.AllowMultipleAllocations
		}
		ok, _, err := expression.DeviceMatches(&limit{}, device)
		if err != nil {
			return failing
		}
		if !ok {
			return rejected
		}
	}
	return matched
}

// tolerates returns matched if the request tolerates all taints with effect NoSchedule
// or NoExecute, else untolerated.
func (r *deviceSelection) tolerates(taints []resourcev1.DeviceTaint) deviceMatch {
	for i := range taints {
		t := taints[i]
		if t.Effect != resourcev1.DeviceTaintEffectNoSchedule && t.Effect != resourcev1.DeviceTaintEffectNoExecute {
			continue
		}
		tolerated := false
		for _, o := range r.tolerations {
			tolerated = tolerated || resourceclaim.ToleratesTaint(o, t)
		}
		if !tolerated {
			return untolerated
		}
	}
	return matched
}

// isAbsurd reports whether the allocator may fail at the requested capacity, which may be nil.
func isAbsurd(c *resourcev1.CapacityRequirements) bool {
	if c == nil {
		return false
	}
	for _, q := range c.Requests { // any order: one is enough
		if outOfRange(&q) || q.Cmp(*resource.NewMilliQuantity(q.MilliValue(), q.Format)) != 0 {
			return true
		}
	}
	return false
}

// outOfRange reports whether the quantity is negative, or so large that the allocator may fail when
// it rounds the quantity up to a multiple of one in range.
func outOfRange(q *resource.Quantity) bool { return q.Sign() < 0 || q.CmpInt64(1<<52) > 0 }

// isMet returns matched if the device has the requested capacity, else rejected. It is for devices
// that are not shared and have no request policy.
func (r *deviceSelection) isMet(d *resourcev1.Device) deviceMatch {
	for name, requested := range r.capacity.Requests { // any order: one is enough
		if c, there := d.Capacity[name]; !there || requested.Cmp(c.Value) > 0 {
			return rejected
		}
	}
	return matched
}
