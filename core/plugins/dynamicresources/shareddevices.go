package dynamicresources

import (
	"cmp"
	"iter"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/berth-scheduler/berth/core/index/devicepools"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// sharedDevices holds the devices that several nodes can see, such as network-attached ones,
// with numbers for their contents. Which of them a node sees depends on the node selectors
// of slices and devices that the node matches.
type sharedDevices struct {
	revision   uint64 // of the index of pools, when this was read
	generation uint64 // of inventories, to which the numbers belong
	// plain is set if the numbers tell all that the allocator reads of these devices.
	plain     bool
	pools     []*devicepools.Pool   // in the allocator's order
	devices   [][]device            // by pool, in the order of its slices
	selectors []*match.NodeSelector // of slices and devices, each different one once
	// version changes when the selectors do.
	version uint64
	seen    map[uint64][]poolOnNode // results of seenBy, by the selectors that a node matches
}

// poolOnNode is the part of a pool that a node can see.
type poolOnNode struct {
	pool    *devicepools.Pool
	devices []device
}

const (
	// mostShared bounds the shared devices that are numbered, and what is taken of them.
	mostShared = 1 << 10
	// mostSelectors bounds the node selectors of shared devices: one bit each.
	mostSelectors = 64
)

// readShared brings i.shared, the devices that several nodes can see, up to date with the table. It
// returns whether numbers tell all about them (sharedDevices.plain). perDevice allows slices in
// which each device selects its nodes: with false, such a slice makes the result false.
func (i *inventories) readShared(t *table.Table, perDevice bool) (plain bool) {
	s := &i.shared
	if s.revision == devicepools.Of(t).Revision() && s.generation == i.generation {
		return s.plain
	}
	before, version := s.selectors, s.version
	*s = sharedDevices{revision: devicepools.Of(t).Revision(), generation: i.generation, pools: devicepools.Of(t).Shared(), seen: map[uint64][]poolOnNode{}, version: version}
	s.plain = i.numberShared(perDevice) && !i.full()
	if i.full() {
		i.read += len(i.rows) // none is read where these are not plain
	}
	if !slices.EqualFunc(before, s.selectors, func(a, b *match.NodeSelector) bool { return a.Key == b.Key }) {
		s.version++
	}
	return s.plain
}

// numberShared fills i.shared from its pools. It returns false, and stops there, if there are too
// many devices or numbers do not tell all about them.
func (i *inventories) numberShared(perDevice bool) (plain bool) {
	s, room := &i.shared, mostShared
	for _, p := range s.pools {
		var list []device
		if room -= len(p.Taken); !sound(p) {
			return false
		}
		for _, slice := range p.Slices {
			if room -= len(slice.Spec.Devices); room < 0 || !s.addSelectors(slice, perDevice) {
				return false
			}
			for j := range slice.Spec.Devices {
				d := &slice.Spec.Devices[j]
				now := i.device(p, d)
				if d.ConsumesCounters != nil || now.absurd {
					return false
				}
				list = append(list, now)
			}
		}
		s.devices = append(s.devices, list)
	}
	return true
}

// addSelectors adds the node selectors of a slice, or of its devices. It returns false if one is
// not valid, there are too many, or the slice has shared counters. perDevice is as for readShared.
func (s *sharedDevices) addSelectors(slice *resourcev1.ResourceSlice, perDevice bool) bool {
	spec := &slice.Spec
	if spec.PerDeviceNodeSelection == nil {
		return spec.SharedCounters == nil && s.add(spec.NodeName, spec.AllNodes, spec.NodeSelector)
	}
	if !perDevice || !*spec.PerDeviceNodeSelection || spec.SharedCounters != nil || spec.NodeName != nil || spec.AllNodes != nil || spec.NodeSelector != nil {
		return false
	}
	for j := range spec.Devices {
		if d := &spec.Devices[j]; !s.add(d.NodeName, d.AllNodes, d.NodeSelector) {
			return false
		}
	}
	return true
}

// add adds the node selector of a slice or device, which is given by node name, allNodes or
// selector, unless there is an equal one, or it selects all nodes. It returns false if it is not
// valid or there are too many.
func (s *sharedDevices) add(name *string, all *bool, by *v1.NodeSelector) bool {
	selector, ok := reach(name, all, by)
	if !ok || selector == nil || s.indexOf(selector) >= 0 {
		return ok
	}
	s.selectors = append(s.selectors, selector)
	return len(s.selectors) <= mostSelectors
}

// indexOf returns the index of the selector that equals this one; -1 if there is none.
func (s *sharedDevices) indexOf(selector *match.NodeSelector) int {
	return slices.IndexFunc(s.selectors, func(o *match.NodeSelector) bool { return o.Key == selector.Key })
}

// reach returns the selector of the nodes that a slice or device is for, given by node name,
// allNodes or selector; nil selects all nodes. ok is false if not exactly one of the three is
// given, or if the selector is not valid.
func reach(name *string, all *bool, by *v1.NodeSelector) (selector *match.NodeSelector, ok bool) {
	switch {
	case name != nil && *name != "" && all == nil && by == nil:
		return match.NewNodeSelector(nil, &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{*name}}}}}}), true
	case name == nil && all != nil && *all && by == nil:
		return nil, true
	case name == nil && all == nil && by != nil:
		_, err := nodeaffinity.NewNodeSelector(by)
		return match.NewNodeSelector(nil, by), err == nil
	}
	return nil, false
}

// matching returns the selectors that the node matches, as bits by their index.
func (s *sharedDevices) matching(n *object.Node) (selectors uint64) {
	for k, selector := range s.selectors {
		if selector.Matches(n.Subject()) {
			selectors |= 1 << k
		}
	}
	return selectors
}

// seenBy returns the pools and devices that a node sees which matches these selectors (bits). Of a
// slice in which each device selects its nodes, a node that can use one device also sees the
// others, with device.elsewhere set. It keeps the results in seen.
func (s *sharedDevices) seenBy(selectors uint64) []poolOnNode {
	list, known := s.seen[selectors]
	if known {
		return list
	}
	reaches := func(name *string, all *bool, by *v1.NodeSelector) bool {
		selector, _ := reach(name, all, by)
		return selector == nil || selectors>>s.indexOf(selector)&1 == 1
	}
	for k, p := range s.pools {
		on, rest := poolOnNode{pool: p}, s.devices[k]
		for _, slice := range p.Slices {
			spec, some := &slice.Spec, len(on.devices)
			of := rest[:len(spec.Devices)]
			rest = rest[len(spec.Devices):]
			if spec.PerDeviceNodeSelection == nil {
				if reaches(spec.NodeName, spec.AllNodes, spec.NodeSelector) {
					on.devices = append(on.devices, of...)
				}
				continue
			}
			usable := false
			for j, d := range of {
				d.elsewhere = !reaches(spec.Devices[j].NodeName, spec.Devices[j].AllNodes, spec.Devices[j].NodeSelector)
				usable = usable || !d.elsewhere
				on.devices = append(on.devices, d)
			}
			if !usable {
				on.devices = on.devices[:some]
			}
		}
		if len(on.devices) > 0 {
			list = append(list, on)
		}
	}
	s.seen[selectors] = list
	return list
}

// devicesOn returns the devices that the node of the inventory sees, its own and shared ones, in
// the allocator's order: by driver and pool.
func (i *inventories) devicesOn(v *inventory) iter.Seq[*device] {
	return func(yield func(*device) bool) {
		from, seen := 0, i.shared.seenBy(v.selectors)
		for k := 0; k <= len(v.pools); k++ {
			for len(seen) > 0 && (k == len(v.pools) || comparePools(seen[0].pool, v.pools[k].pool) < 0) {
				for j := range seen[0].devices {
					if !yield(&seen[0].devices[j]) {
						return
					}
				}
				seen = seen[1:]
			}
			if k == len(v.pools) {
				return
			}
			for ; from < v.pools[k].to; from++ {
				if !yield(&v.devices[from]) {
					return
				}
			}
		}
	}
}

// comparePools compares pools by driver, then name: the allocator's order.
func comparePools(a, b *devicepools.Pool) int {
	return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Name, b.Name))
}
