// Package devicepools keeps which devices a table's nodes can use, pool by pool, and what claims
// hold of them.
package devicepools

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Pool is one ResourceSlice pool of a driver: the slices and what claims hold of its
// devices, assumed allocations included.
type Pool struct {
	Driver, Name string
	// Slices are those of all generations, sorted by name. Read only.
	Slices []*resourcev1.ResourceSlice
	// Taken are the allocation results of claims, in no particular order; a device that two
	// claims hold is there twice. Allocations with AdminAccess are left out.
	Taken []*resourcev1.DeviceRequestAllocationResult

	// Node is the only node that can use the devices, "" if there may be several or the pool
	// has no slices. Local is set if that node alone sees the pool.
	Node  string
	Local bool
}

// poolName identifies a pool of devices: pool names are unique for one driver.
type poolName struct{ driver, name string }

// Index keeps the device pools of a table by node. A change that concerns one node alone
// touches the node's row in the table; any other changes the revision.
type Index struct {
	table    *table.Table
	pools    map[poolName]*Pool
	onNode   map[string]map[*Pool]struct{} // pools with a Node, by Node
	shared   []*Pool                       // result of Shared; nil: to be made
	revision uint64                        // see Revision
	rows     []uint64                      // by row, the result of RowRevision
	// classes are the DeviceClasses with an extendedResourceName, by that name, newest first.
	classes map[v1.ResourceName][]*object.DeviceClass
	// tainted are the slices whose devices DeviceTaintRules taint, by name, with these
	// taints added.
	tainted map[string]*object.ResourceSlice
	// retainted are the slices whose taints the last change of a DeviceTaintRule changed.
	retainted []RetaintedSlice
}

// index registers the Index, so that every table has one.
var index = table.Follow(func(t *table.Table) table.Follower[*Index] {
	d := &Index{
		table: t, pools: map[poolName]*Pool{}, onNode: map[string]map[*Pool]struct{}{}, revision: t.Epoch(),
		classes: map[v1.ResourceName][]*object.DeviceClass{}, tainted: map[string]*object.ResourceSlice{},
	}
	return table.Follower[*Index]{Index: d, NodeChanged: d.followNode, ObjectChanged: d.follow, Check: d.check}
})

// Of returns the table's index of pools of devices.
func Of(t *table.Table) *Index { return index.Of(t) }

// Revision returns a number that changes whenever something about devices changes that may
// concern more than one node.
func (d *Index) Revision() uint64 { return d.revision }

// RowRevision returns a number that changes whenever the row's node does, or something
// about devices that concerns this node alone.
func (d *Index) RowRevision(r table.Row) uint64 { return d.rows[r] }

// On returns the pools whose devices only the named node can use, sorted by driver and
// name. The caller owns the slice.
func (d *Index) On(node string) []*Pool {
	return sortedPools(maps.Keys(d.onNode[node]))
}

// Shared returns the pools that have slices and that several nodes can see, sorted by driver
// and name. The slice is valid until the next change.
func (d *Index) Shared() []*Pool {
	if d.shared == nil {
		d.shared = append([]*Pool{}, sortedPools(func(yield func(*Pool) bool) {
			for _, p := range d.pools { // any order: sorted
				if !p.Local && len(p.Slices) > 0 && !yield(p) {
					return
				}
			}
		})...)
	}
	return d.shared
}

// sortedPools returns the pools sorted by driver and name.
func sortedPools(pools func(func(*Pool) bool)) []*Pool {
	return slices.SortedFunc(pools, func(a, b *Pool) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Name, b.Name))
	})
}

// follow updates the index for an object that was added, changed or removed; nil stands for
// none.
func (d *Index) follow(was, is object.Object) {
	some := is
	if some == nil {
		some = was
	}
	switch some.(type) {
	case *object.ResourceSlice:
		d.followSlice(was, is)
	case *object.ResourceClaim:
		d.followClaim(was, is)
	case *object.DeviceClass:
		d.revision++
		d.followClass(was, is)
	case *object.DeviceTaintRule:
		d.followTaintRule(was, is)
	}
}

// followNode records that the row's node changed, so that what it can allocate is computed
// again.
func (d *Index) followNode(r table.Row, _, _ *object.Node) {
	d.rows = table.Reach(d.rows, r)
	d.rows[r] = d.table.Revision()
}

// ClassFor returns the DeviceClass that stands for the extended resource, nil for none: the
// newest with that extendedResourceName (of equal age the first by name), else the class
// that the resource names itself (deviceclass.resource.kubernetes.io/...).
func (d *Index) ClassFor(resource v1.ResourceName) *object.DeviceClass {
	if list := d.classes[resource]; len(list) > 0 {
		return list[0]
	}
	if name, ok := strings.CutPrefix(string(resource), resourcev1.ResourceDeviceClassPrefix); ok {
		return table.Lookup[*object.DeviceClass](d.table, object.DeviceClasses, "", name)
	}
	return nil
}

// followClass updates classes for a DeviceClass that changed from was to is; nil means none.
func (d *Index) followClass(was, is object.Object) {
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

// followSlice updates the pools for a ResourceSlice that changed from was to is; nil means no
// slice. Taints of DeviceTaintRules count as part of its spec. If the spec changed, it touches
// the nodes that see the pools.
func (d *Index) followSlice(was, is object.Object) {
	old, now := d.taint(was, is)
	if old != nil && now != nil && equality.Semantic.DeepEqual(&old.API.Spec, &now.API.Spec) {
		d.replace(old.API, now.API)
		return
	}
	if old != nil {
		d.changePool(old.API, func(p *Pool) {
			p.Slices = slices.DeleteFunc(slices.Clone(p.Slices), func(s *resourcev1.ResourceSlice) bool { return s.Name == old.Name })
		})
	}
	if now != nil {
		d.changePool(now.API, func(p *Pool) {
			at, _ := slices.BinarySearchFunc(p.Slices, now.Name, func(s *resourcev1.ResourceSlice, name string) int { return cmp.Compare(s.Name, name) })
			p.Slices = slices.Insert(slices.Clone(p.Slices), at, now.API)
		})
	}
}

// replace replaces a slice by a state of it with an equal spec. It touches no node.
func (d *Index) replace(old, now *resourcev1.ResourceSlice) {
	p := d.pools[poolName{old.Spec.Driver, old.Spec.Pool.Name}]
	p.Slices[slices.Index(p.Slices, old)] = now
}

// changePool calls change with the slice's pool, and touches the nodes that see the pool
// before or after. It removes a pool that is empty then.
func (d *Index) changePool(s *resourcev1.ResourceSlice, change func(*Pool)) {
	p := d.pool(s.Spec.Driver, s.Spec.Pool.Name)
	before := *p
	change(p)
	p.Node, p.Local = reach(p.Slices)
	d.touchNodes(&before)
	d.touchNodes(p)
	d.drop(before.Node, p)
	d.add(p)
	d.shared = nil
	d.dropIfEmpty(p)
}

// pool returns the pool of the driver, a new one if there is none.
func (d *Index) pool(driver, name string) *Pool {
	at := poolName{driver, name}
	p := d.pools[at]
	if p == nil {
		p = &Pool{Driver: driver, Name: name}
		d.pools[at] = p
	}
	return p
}

// dropIfEmpty removes the pool if no slice offers it and no claim holds a device of it.
func (d *Index) dropIfEmpty(p *Pool) {
	if len(p.Slices) == 0 && len(p.Taken) == 0 {
		delete(d.pools, poolName{p.Driver, p.Name})
	}
}

// touchNodes records that what nodes can allocate from the pool changed. It marks the row of
// the node that a Local pool belongs to. For any other pool with slices it raises the revision,
// which counts for all nodes.
func (d *Index) touchNodes(p *Pool) {
	switch {
	case p.Local:
		d.touchNode(p.Node)
	case len(p.Slices) > 0:
		d.revision++
	}
}

// touchNode marks the named node's row as changed, in the table and in the index, if there is
// such a row.
func (d *Index) touchNode(name string) {
	if r, ok := d.table.RowOf(name); ok {
		d.table.Touch(r)
		d.rows[r] = d.table.Revision()
	}
}

// add adds the pool to those of its node. It does nothing for a pool without a node.
func (d *Index) add(p *Pool) {
	if p.Node == "" {
		return
	}
	if d.onNode[p.Node] == nil {
		d.onNode[p.Node] = map[*Pool]struct{}{}
	}
	d.onNode[p.Node][p] = struct{}{}
}

// drop removes the pool from those of the node, "" included.
func (d *Index) drop(node string, p *Pool) {
	delete(d.onNode[node], p)
	if len(d.onNode[node]) == 0 {
		delete(d.onNode, node)
	}
}

// reach returns the only node that can use the devices of the slices, "" if there may be
// several, and whether that node alone sees the pool. Kubernetes' stable allocator sees shared
// counters from every node. They matter on that node alone if the pool is complete and has all
// counters that its devices consume.
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

// complete reports whether the slices, of which there is one, are all of their pool, and of one
// generation.
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

// hasCounters reports whether sets contains the counter set that consumed names, and that set each
// counter that consumed names.
func hasCounters(sets map[string]map[string]resourcev1.Counter, consumed *resourcev1.DeviceCounterConsumption) bool {
	set, there := sets[consumed.CounterSet]
	for name := range consumed.Counters { // any order: one that is missing is enough
		if _, known := set[name]; !known {
			return false
		}
	}
	return there
}

// followClaim updates what is taken of pools for a ResourceClaim that changed from was to is;
// nil means none. If that changed, it touches the Node of each pool concerned; for a pool
// without one it raises the revision.
func (d *Index) followClaim(was, is object.Object) {
	before, now := taken(was), taken(is)
	if equality.Semantic.DeepEqual(before, now) {
		return
	}
	for _, list := range [][]*resourcev1.DeviceRequestAllocationResult{before, now} {
		for _, r := range list {
			p := d.pool(r.Driver, r.Pool)
			if p.Node != "" {
				d.touchNode(p.Node)
			} else {
				d.revision++
			}
		}
	}
	for _, r := range now {
		p := d.pool(r.Driver, r.Pool)
		p.Taken = append(p.Taken, r)
	}
	for _, r := range before {
		p := d.pool(r.Driver, r.Pool)
		if at := slices.IndexFunc(p.Taken, func(o *resourcev1.DeviceRequestAllocationResult) bool { return equality.Semantic.DeepEqual(o, r) }); at >= 0 {
			p.Taken = slices.Delete(p.Taken, at, at+1)
		}
		d.dropIfEmpty(p)
	}
}

// taken returns the devices that a ResourceClaim holds, as allocation results. Results
// with AdminAccess are left out, since they take nothing. It returns nil for a claim
// without an allocation, for nil, and for another object.
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

// check returns an error for the first difference from the index of a fresh table.
func (d *Index) check(fresh *Index) error {
	if len(d.pools) != len(fresh.pools) || len(d.onNode) != len(fresh.onNode) || len(d.rows) != d.table.Rows() {
		return fmt.Errorf("%d pools on %d nodes and %d rows, rebuilt %d on %d and %d", len(d.pools), len(d.onNode), len(d.rows), len(fresh.pools), len(fresh.onNode), d.table.Rows())
	}
	for name, p := range d.pools { // any order: an error is an error
		other := fresh.pools[name]
		if other == nil || !p.equal(other) {
			return fmt.Errorf("pool %v, rebuilt %v", p, other)
		}
		if _, on := d.onNode[p.Node][p]; on != (p.Node != "") || len(d.onNode[p.Node]) != len(fresh.onNode[p.Node]) {
			return fmt.Errorf("pool %v is on its node: %v, of %d, rebuilt of %d", p, on, len(d.onNode[p.Node]), len(fresh.onNode[p.Node]))
		}
	}
	if !maps.EqualFunc(d.classes, fresh.classes, slices.Equal) {
		return fmt.Errorf("classes by resource %v, rebuilt %v", d.classes, fresh.classes)
	}
	if !slices.EqualFunc(d.Shared(), fresh.Shared(), func(a, b *Pool) bool { return a.Driver == b.Driver && a.Name == b.Name }) {
		return fmt.Errorf("%d pools are shared, rebuilt %d", len(d.Shared()), len(fresh.Shared()))
	}
	return nil
}

// String formats the pool with its slices, their taints, and what is taken, for errors.
func (p *Pool) String() string {
	text := fmt.Sprintf("%s/%s node %q local %v:", p.Driver, p.Name, p.Node, p.Local)
	for _, s := range p.Slices {
		text += fmt.Sprintf(" %s(%v, %d counters, for %v)", s.Name, s.Spec.Devices, len(s.Spec.SharedCounters), s.Spec.NodeName != nil)
	}
	return fmt.Sprintf("%s taken %v", text, p.taken())
}

// equal reports whether two pools have the same reach, slices, taints and taken devices.
func (p *Pool) equal(o *Pool) bool {
	return p.Node == o.Node && p.Local == o.Local && slices.Equal(p.taken(), o.taken()) &&
		slices.EqualFunc(p.Slices, o.Slices, func(a, b *resourcev1.ResourceSlice) bool {
			return a.Name == b.Name && equality.Semantic.DeepEqual(a.Spec, b.Spec)
		})
}

// taken returns the names of the devices that claims hold, sorted.
func (p *Pool) taken() []string {
	taken := make([]string, 0, len(p.Taken))
	for _, r := range p.Taken {
		taken = append(taken, r.Device)
	}
	slices.Sort(taken)
	return taken
}
