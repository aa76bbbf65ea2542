package table

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/berth-scheduler/berth/core/object"
)

// DevicePool is one pool of a driver's devices: what its slices offer and what
// claims hold of it, assumed allocations included.
type DevicePool struct {
	Driver, Name string
	// Slices of all generations, by name. Read only.
	Slices []*resourcev1.ResourceSlice
	// Taken is what claims hold, in no particular order; a device that two
	// claims hold stands there twice. Access for administrators takes nothing.
	Taken []*resourcev1.DeviceRequestAllocationResult

	// Node is the only one that can use the devices, "" where that is open;
	// Local: it is the only one to see the pool at all.
	Node  string
	Local bool
}

type poolName struct{ driver, name string }

// devices follows slices, claims and classes, so that nobody has to walk all of
// them to know what a node offers. A change of what concerns one node dirties
// the node's row; any other moves the revision.
type devices struct {
	pools    map[poolName]*DevicePool
	onNode   map[string]map[*DevicePool]struct{} // those with a Node
	shared   []*DevicePool                       // those that are not Local, sorted; nil: to be made
	revision uint64
	// classes are the device classes that name an extended resource, by the resource,
	// newest first.
	classes map[v1.ResourceName][]*object.DeviceClass
	// tainted are the slices that rules taint, by name, with these taints.
	tainted map[string]*object.ResourceSlice
	// retainted are the slices whose taints the last change of a rule changed.
	retainted []RetaintedSlice
}

func newDevices() devices {
	return devices{pools: map[poolName]*DevicePool{}, onNode: map[string]map[*DevicePool]struct{}{}, classes: map[v1.ResourceName][]*object.DeviceClass{},
		tainted: map[string]*object.ResourceSlice{}}
}

// DeviceRevision changes whenever something about devices does that may
// concern more than one node.
func (t *Table) DeviceRevision() uint64 { return t.devices.revision }

// DevicesRevision changes whenever the row's node does, or something about devices
// that concerns this node alone.
func (t *Table) DevicesRevision(r Row) uint64 { return t.deviceRows[r] }

// DevicesOf lists the pools whose devices only the named node can use, sorted.
func (t *Table) DevicesOf(node string) []*DevicePool {
	return sortedPools(maps.Keys(t.devices.onNode[node]))
}

// SharedDevicePools lists the pools that several nodes can see, sorted. The list is
// valid until the next change.
func (t *Table) SharedDevicePools() []*DevicePool {
	d := &t.devices
	if d.shared == nil {
		d.shared = append([]*DevicePool{}, sortedPools(func(yield func(*DevicePool) bool) {
			for _, p := range d.pools { // any order: sorted
				if !p.Local && len(p.Slices) > 0 && !yield(p) {
					return
				}
			}
		})...)
	}
	return d.shared
}

func sortedPools(pools func(func(*DevicePool) bool)) []*DevicePool {
	return slices.SortedFunc(pools, func(a, b *DevicePool) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Name, b.Name))
	})
}

// follow updates all indexes for an object that changed from was to is, as readers see
// it; nil for none.
func (t *Table) followObject(was, is object.Object) {
	defer t.followers.objectChanged(was, is)
	some := is
	if some == nil {
		some = was
	}
	switch some.(type) {
	case *object.ResourceSlice:
		t.followSlice(was, is)
	case *object.ResourceClaim:
		t.followClaim(was, is)
	case *object.DeviceClass:
		t.devices.revision++
		t.devices.followClass(was, is)
	case *object.DeviceTaintRule:
		t.followTaintRule(was, is)
	default:
		t.followVolume(was, is)
	}
}

// DeviceClassFor returns the device class that stands for the resource, nil for none: the
// newest of those that name it, of two as old the one whose name comes first;
// or the one that the resource names.
func (t *Table) DeviceClassFor(resource v1.ResourceName) *object.DeviceClass {
	if list := t.devices.classes[resource]; len(list) > 0 {
		return list[0]
	}
	if name, ok := strings.CutPrefix(string(resource), resourcev1.ResourceDeviceClassPrefix); ok {
		return Lookup[*object.DeviceClass](t, object.DeviceClasses, "", name)
	}
	return nil
}

func (d *devices) followClass(was, is object.Object) {
	if old, _ := was.(*object.DeviceClass); old != nil && old.API.Spec.ExtendedResourceName != nil {
		name := v1.ResourceName(*old.API.Spec.ExtendedResourceName)
		d.classes[name] = slices.DeleteFunc(d.classes[name], func(c *object.DeviceClass) bool { return c.Name == old.Name })
		if len(d.classes[name]) == 0 {
			delete(d.classes, name)
		}
	}
	if now, _ := is.(*object.DeviceClass); now != nil && now.API.Spec.ExtendedResourceName != nil {
		name := v1.ResourceName(*now.API.Spec.ExtendedResourceName)
		list := append(d.classes[name], now)
		slices.SortFunc(list, func(a, b *object.DeviceClass) int {
			return cmp.Or(b.API.CreationTimestamp.Compare(a.API.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
		d.classes[name] = list
	}
}

func (t *Table) followSlice(was, is object.Object) {
	old, now := t.taint(was, is)
	if old != nil && now != nil && equality.Semantic.DeepEqual(&old.API.Spec, &now.API.Spec) {
		t.devices.replace(old.API, now.API)
		return
	}
	if old != nil {
		t.changePool(old.API, func(p *DevicePool) {
			p.Slices = slices.DeleteFunc(slices.Clone(p.Slices), func(s *resourcev1.ResourceSlice) bool { return s.Name == old.Name })
		})
	}
	if now != nil {
		t.changePool(now.API, func(p *DevicePool) {
			at, _ := slices.BinarySearchFunc(p.Slices, now.Name, func(s *resourcev1.ResourceSlice, name string) int { return cmp.Compare(s.Name, name) })
			p.Slices = slices.Insert(slices.Clone(p.Slices), at, now.API)
		})
	}
}

// replace replaces a slice by one that says the same of devices.
func (d *devices) replace(old, now *resourcev1.ResourceSlice) {
	p := d.pools[poolName{old.Spec.Driver, old.Spec.Pool.Name}]
	p.Slices[slices.Index(p.Slices, old)] = now
}

// changePool changes the slice's pool and touches the nodes that see the pool before or
// after.
func (t *Table) changePool(s *resourcev1.ResourceSlice, change func(*DevicePool)) {
	p := t.pool(s.Spec.Driver, s.Spec.Pool.Name)
	before := *p
	change(p)
	p.Node, p.Local = reach(p.Slices)
	t.touchNodes(&before)
	t.touchNodes(p)
	t.devices.drop(before.Node, p)
	t.devices.add(p)
	t.devices.shared = nil
	t.dropPool(p)
}

func (t *Table) pool(driver, name string) *DevicePool {
	at := poolName{driver, name}
	p := t.devices.pools[at]
	if p == nil {
		p = &DevicePool{Driver: driver, Name: name}
		t.devices.pools[at] = p
	}
	return p
}

func (t *Table) dropPool(p *DevicePool) {
	if len(p.Slices) == 0 && len(p.Taken) == 0 {
		delete(t.devices.pools, poolName{p.Driver, p.Name})
	}
}

// touchNodes marks the nodes that see the pool as changed.
func (t *Table) touchNodes(p *DevicePool) {
	switch {
	case p.Local:
		t.touchNode(p.Node)
	case len(p.Slices) > 0:
		t.devices.revision++
	}
}

func (t *Table) touchNode(name string) {
	if r, ok := t.rowOf[name]; ok {
		t.touch(r)
		t.deviceRows[r] = t.revision
	}
}

func (d *devices) add(p *DevicePool) {
	if p.Node == "" {
		return
	}
	if d.onNode[p.Node] == nil {
		d.onNode[p.Node] = map[*DevicePool]struct{}{}
	}
	d.onNode[p.Node][p] = struct{}{}
}

func (d *devices) drop(node string, p *DevicePool) {
	delete(d.onNode[node], p)
	if len(d.onNode[node]) == 0 {
		delete(d.onNode, node)
	}
}

// reach returns the only node that can use the devices of the slices, "" if there is no
// such node, and whether that node alone sees the pool. Shared counters are visible
// everywhere, but matter only on that node if the pool is complete and consistent.
func reach(list []*resourcev1.ResourceSlice) (node string, local bool) {
	counters := false
	for i, s := range list {
		on := ""
		if s.Spec.NodeName != nil {
			on = *s.Spec.NodeName
		}
		if on == "" || i > 0 && on != node {
			return "", false
		}
		node = on
		counters = counters || len(s.Spec.SharedCounters) > 0
	}
	return node, len(list) > 0 && (!counters || complete(list) && consumesCounters(list))
}

// complete reports whether the slices are all of their pool, and of one generation.
func complete(list []*resourcev1.ResourceSlice) bool {
	return !slices.ContainsFunc(list, func(s *resourcev1.ResourceSlice) bool {
		return s.Spec.Pool.Generation != list[0].Spec.Pool.Generation || s.Spec.Pool.ResourceSliceCount != int64(len(list))
	})
}

// consumesCounters reports whether the counter sets of the slices have different names,
// and every counter that a device consumes exists.
func consumesCounters(list []*resourcev1.ResourceSlice) bool {
	sets := map[string]map[string]resourcev1.Counter{}
	for _, s := range list {
		for i := range s.Spec.SharedCounters {
			c := &s.Spec.SharedCounters[i]
			if _, twice := sets[c.Name]; twice {
				return false
			}
			sets[c.Name] = c.Counters
		}
	}
	for _, s := range list {
		for i := range s.Spec.Devices {
			for _, consumed := range s.Spec.Devices[i].ConsumesCounters {
				if !hasCounters(sets, &consumed) {
					return false
				}
			}
		}
	}
	return true
}

func hasCounters(sets map[string]map[string]resourcev1.Counter, consumed *resourcev1.DeviceCounterConsumption) bool {
	set, there := sets[consumed.CounterSet]
	for name := range consumed.Counters { // any order: one that is missing is enough
		if _, known := set[name]; !known {
			return false
		}
	}
	return there
}

func (t *Table) followClaim(was, is object.Object) {
	before, now := taken(was), taken(is)
	if equality.Semantic.DeepEqual(before, now) {
		return
	}
	for _, list := range [][]*resourcev1.DeviceRequestAllocationResult{before, now} {
		for _, r := range list {
			p := t.pool(r.Driver, r.Pool)
			if p.Node != "" {
				t.touchNode(p.Node)
			} else {
				t.devices.revision++
			}
		}
	}
	for _, r := range now {
		p := t.pool(r.Driver, r.Pool)
		p.Taken = append(p.Taken, r)
	}
	for _, r := range before {
		p := t.pool(r.Driver, r.Pool)
		if at := slices.IndexFunc(p.Taken, func(o *resourcev1.DeviceRequestAllocationResult) bool { return equality.Semantic.DeepEqual(o, r) }); at >= 0 {
			p.Taken = slices.Delete(p.Taken, at, at+1)
		}
		t.dropPool(p)
	}
}

// taken lists what the claim holds of devices.
func taken(o object.Object) []*resourcev1.DeviceRequestAllocationResult {
	c, _ := o.(*object.ResourceClaim)
	if c == nil || c.Allocation() == nil {
		return nil
	}
	var list []*resourcev1.DeviceRequestAllocationResult
	for i := range c.Allocation().Devices.Results {
		r := &c.Allocation().Devices.Results[i]
		if r.AdminAccess == nil || !*r.AdminAccess {
			list = append(list, r)
		}
	}
	return list
}
