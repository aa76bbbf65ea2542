package dynamicresources

import (
	"encoding/binary"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-scheduler/berth/core/index/devicepools"
	"github.com/berth-scheduler/berth/core/table"
)

// inventory holds the devices of one node, and what claims hold of them, as numbers.
// Equal numbers stand for devices that differ only in their names.
type inventory struct {
	revision   uint64 // of the row's devices, when it was read
	generation uint64 // of inventories
	// known is set if the numbers tell all that the allocator reads of the node.
	known   bool
	devices []device // in the node's own pools, in the allocator's order
	pools   []poolEnd
	// selectors are the sharedDevices.selectors that the node matches, as bits, at that
	// version of them.
	selectors, version uint64
}

// poolEnd is a pool and the index in inventory.devices at which its devices end.
type poolEnd struct {
	pool *devicepools.Pool
	to   int
}

// device is a device in numbers, which inventories gives out; 0 stands for nothing.
type device struct {
	content  int32 // attributes, capacity and driver: what selectors and constraints read
	capacity int32 // capacity, and whether claims can share the device
	taints   int32 // taints; 0: none
	draws    int32 // the amounts of counters that it consumes; 0: none
	counters int32 // what is left of its pool's counters, if it consumes some
	held     int32 // the shares of its capacity that claims hold; 0: none
	pool     int16 // index of its pool on the node plus 1, if it consumes counters
	taken    bool  // a claim holds it whole
	// elsewhere is set if the node's pool lists the device and the node cannot use it.
	elsewhere bool
	// measured is set if its capacity also matters to claims that request none.
	measured bool
	// absurd is set if the allocator may fail at its capacity.
	absurd bool
	// undivided is set if claims that request no capacity get all of it that there is.
	// partial is set if others have some of that.
	undivided, partial bool
}

// content is what selectors read of a device: its driver, attributes and capacity. Devices
// of equal content have one number, so that each selector is evaluated once for all.
type content struct {
	driver string
	device *resourcev1.Device
}

// inventories holds the inventory of each row of a table, and gives out the numbers in
// them. The zero value is ready to use, for one table at a time.
type inventories struct {
	table      *table.Table
	parts      bool // claims can hold parts of devices (DRAConsumableCapacity)
	counters   bool // devices that consume counters can be had (DRAPartitionableDevices)
	rows       []inventory
	generation uint64 // changes when numbering starts again
	read       int    // inventories read in this generation
	shared     sharedDevices

	numbers map[string]int32 // for all but contents, capacities and taints
	// amounts holds amounts of counters by number: what is left of a pool's, or what a
	// device consumes. Only whole numbers are included.
	amounts    map[int32][]amount
	contents   space[content]
	capacities space[*resourcev1.Device] // a device for each capacity
	taints     space[[]resourcev1.DeviceTaint]
	key        []byte // scratch
}

// space gives numbers to things, from 1, and one number to all with equal keys: numbers are
// compared in place of the things.
type space[T any] struct {
	numbers map[string]int32 // by key
	things  []T              // the first thing of each number, at number - 1
}

// number returns the number for the key, a new one for a new key.
func (s *space[T]) number(key []byte, thing T) int32 {
	n, known := s.numbers[string(key)]
	if !known {
		s.things = append(s.things, thing)
		n = int32(len(s.things)) // #nosec G115 -- bounded by mostNumbers
		s.numbers[string(key)] = n
	}
	return n
}

// mostNumbers is about how many numbers are given out in all, to contents, capacities, taints
// and counters of devices. It bounds the memory. An inventory that is read when they are used
// up gets none, and the allocator runs on that node by itself.
const mostNumbers = 1 << 16

// full reports whether at least mostNumbers numbers were given out.
func (i *inventories) full() bool {
	return len(i.numbers)+len(i.contents.things)+len(i.capacities.things)+len(i.taints.things) >= mostNumbers
}

// makeRoom extends rows to all rows of the table. It starts numbering again for another table, or
// if numbers are used up and inventories were read more than four times as often as there are rows.
func (i *inventories) makeRoom(t *table.Table) {
	if i.table != t || i.full() && i.read > 4*len(i.rows) {
		*i = inventories{table: t, parts: i.parts, counters: i.counters, generation: i.generation + 1, numbers: map[string]int32{}, amounts: map[int32][]amount{},
			contents:   space[content]{numbers: map[string]int32{}},
			capacities: space[*resourcev1.Device]{numbers: map[string]int32{}}, taints: space[[]resourcev1.DeviceTaint]{numbers: map[string]int32{}}}
	}
	if more := t.Rows() - len(i.rows); more > 0 {
		i.rows = append(i.rows, make([]inventory, more)...)
	}
}

// of returns the row's inventory, up to date; nil if numbers do not tell all of the node's devices,
// or makeRoom has not been called for the table and row.
func (i *inventories) of(t *table.Table, r table.Row) *inventory {
	if i.table != t || int(r) >= len(i.rows) {
		return nil
	}
	v := &i.rows[r]
	if revision := devicepools.Of(t).RowRevision(r); v.revision != revision || v.generation != i.generation {
		i.read++
		*v = inventory{revision: revision, generation: i.generation}
		v.devices, v.pools, v.known = i.readPools(devicepools.Of(t).On(t.Name(r)))
		v.version = i.shared.version - 1 // another one
	}
	if !v.known {
		return nil
	}
	if v.version != i.shared.version {
		v.selectors, v.version = i.shared.matching(t.Node(r)), i.shared.version
	}
	return v
}

// readPools returns the devices of the node's own pools, in order, and where each pool ends. known
// is false if a pool is incomplete, invalid or has rare features, so that numbers do not tell all.
func (i *inventories) readPools(own []*devicepools.Pool) (list []device, ends []poolEnd, known bool) {
	for at, p := range own {
		if len(p.Slices) == 0 {
			continue // what is held of it is not on offer
		}
		if !p.Local || !sound(p) || slices.ContainsFunc(p.Slices, func(s *resourcev1.ResourceSlice) bool { return s.Spec.PerDeviceNodeSelection != nil }) {
			return nil, nil, false
		}
		from := len(list)
		for _, s := range p.Slices {
			for j := range s.Spec.Devices {
				list = append(list, i.device(p, &s.Spec.Devices[j]))
			}
		}
		ends = append(ends, poolEnd{p, len(list)})
		if slices.ContainsFunc(list[from:], func(d device) bool { return d.absurd }) {
			return nil, nil, false
		}
		if !slices.ContainsFunc(list[from:], func(d device) bool { return d.draws != 0 }) {
			continue
		}
		left := i.countersOf(p, list[from:])
		if left == 0 || !i.counters {
			return nil, nil, false
		}
		for j := from; j < len(list); j++ {
			if list[j].draws != 0 {
				list[j].counters, list[j].pool = left, int16(at+1) // #nosec G115 -- compared below
			}
		}
	}
	return list, ends, !i.full() && len(own) < math.MaxInt16
}

// sound reports whether the pool is complete and its devices have different names and
// no rare features (binding conditions, which would change their order, groups of compatible
// devices, and node operations that are left out).
func sound(p *devicepools.Pool) bool {
	first := &p.Slices[0].Spec.Pool
	for _, s := range p.Slices {
		if s.Spec.Pool.Generation != first.Generation || s.Spec.Pool.ResourceSliceCount != int64(len(p.Slices)) ||
			len(s.Spec.SharedCounters) > 0 && len(s.Spec.Devices) > 0 || len(s.Spec.SkipNodeOperations) > 0 {
			return false
		}
		for j := range s.Spec.Devices {
			d := &s.Spec.Devices[j]
			if d.BindingConditions != nil || slices.ContainsFunc(d.ConsumesCounters, func(c resourcev1.DeviceCounterConsumption) bool { return len(c.CompatibilityGroups) > 0 }) {
				return false
			}
		}
	}
	return namesDiffer(p)
}

// namesDiffer reports whether all devices of the pool have different names.
func namesDiffer(p *devicepools.Pool) bool {
	devices := allDevices(p)
	if len(devices) <= 16 { // looking through them is faster than hashing
		for j, d := range devices {
			if slices.ContainsFunc(devices[:j], func(o *resourcev1.Device) bool { return o.Name == d.Name }) {
				return false
			}
		}
		return true
	}
	names := make(map[string]bool, len(devices))
	for _, d := range devices {
		names[d.Name] = true
	}
	return len(names) == len(devices)
}

// device returns a device of the pool, with numbers for its content, capacity and taints.
func (i *inventories) device(p *devicepools.Pool, d *resourcev1.Device) device {
	policies, now := false, device{measured: d.AllowMultipleAllocations != nil, capacity: i.capacities.number(appendCapacity(i.key[:0], d), d)}
	for _, c := range d.Capacity { // any order: one that has a policy is enough
		now.measured = now.measured || c.RequestPolicy != nil
		now.undivided = now.undivided || c.Value.Sign() > 0
		now.absurd = now.absurd || c.Value.Sign() < 0 || c.RequestPolicy != nil && isAbsurdPolicy(c.RequestPolicy)
		policies = policies || c.RequestPolicy != nil
	}
	now.undivided = now.undivided && !policies && i.parts && d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
	key := appendText(binary.AppendVarint(i.key[:0], int64(now.capacity)), p.Driver)
	now.content = i.contents.number(appendAttributes(key, d.Attributes), content{p.Driver, d})
	if len(d.Taints) > 0 {
		now.taints = i.taints.number(appendTaints(i.key[:0], d.Taints), d.Taints)
	}
	if len(d.ConsumesCounters) > 0 {
		key := append(i.key[:0], 'u')
		for _, c := range d.ConsumesCounters {
			key = appendCounters(key, c.CounterSet, c.Counters)
		}
		now.draws = i.number(key)
		i.keepAmounts(now.draws, func(yield func(string, map[string]resourcev1.Counter) bool) {
			for _, c := range d.ConsumesCounters {
				if !yield(c.CounterSet, c.Counters) {
					return
				}
			}
		})
	}
	i.readTaken(&now, p, d)
	return now
}

// isAbsurdPolicy reports whether the allocator may fail where the policy says how much capacity a
// claim gets, because one of its quantities is out of range.
func isAbsurdPolicy(p *resourcev1.CapacityRequestPolicy) bool {
	list := []*resource.Quantity{p.Default}
	if p.ValidRange != nil {
		list = append(list, p.ValidRange.Min, p.ValidRange.Step)
	}
	return slices.ContainsFunc(list, func(q *resource.Quantity) bool { return q != nil && outOfRange(q) })
}

// readTaken sets in now, the device d in numbers, whether a claim holds d whole (taken), and what
// claims hold that share it (held, partial).
func (i *inventories) readTaken(now *device, p *devicepools.Pool, d *resourcev1.Device) {
	parts := 0
	held := map[resourcev1.QualifiedName]resource.Quantity(nil)
	for _, r := range p.Taken {
		switch {
		case r.Device != d.Name:
		case !i.parts || r.ShareID == nil:
			now.taken = true
		default:
			parts++
			for name, q := range r.ConsumedCapacity { // any order: sums by name
				if held == nil {
					held = map[resourcev1.QualifiedName]resource.Quantity{}
				}
				sum := held[name]
				sum.Add(q)
				held[name] = sum
			}
		}
	}
	if parts > 0 {
		key := append(i.key[:0], 'h')
		for _, name := range slices.Sorted(maps.Keys(held)) {
			q := held[name]
			key = appendQuantity(strconv.AppendQuote(key, string(name)), &q)
			c := d.Capacity[name]
			now.partial = now.partial || now.undivided && q.Sign() > 0 && c.Value.Sign() > 0
		}
		now.held = i.number(key)
	}
}

// countersOf returns a number for what allocated claims leave of the pool's shared counters: the
// same for pools in which the same is left, 0 if the pool has none. of holds the pool's devices,
// which say what is taken.
func (i *inventories) countersOf(p *devicepools.Pool, of []device) int32 {
	left := map[string]map[string]resourcev1.Counter{}
	for _, s := range p.Slices {
		for _, c := range s.Spec.SharedCounters {
			left[c.Name] = maps.Clone(c.Counters)
		}
	}
	if len(left) == 0 {
		return 0
	}
	devices := allDevices(p)
	for j := range of {
		if of[j].taken || of[j].held != 0 {
			for _, c := range devices[j].ConsumesCounters {
				draw(left[c.CounterSet], c.Counters)
			}
		}
	}
	key := append(i.key[:0], 's')
	for _, set := range slices.Sorted(maps.Keys(left)) {
		key = appendCounters(key, set, left[set])
	}
	number := i.number(key)
	i.keepAmounts(number, maps.All(left))
	return number
}

const (
	// mostAmounts bounds the counters of a pool, or that a device consumes, for amounts.
	mostAmounts = 16
	// mostCounters bounds the entries of amounts.
	mostCounters = 1 << 12
)

// keepAmounts stores the amounts of the counters in these sets in amounts[number]. The
// number stands for these counters: those left in a pool, or those that a device consumes.
// It stores nothing if the number has amounts already, if an amount is no whole number or
// is beyond about 2^47, or if there would be more than mostAmounts or mostCounters.
func (i *inventories) keepAmounts(number int32, sets iter.Seq2[string, map[string]resourcev1.Counter]) {
	if _, known := i.amounts[number]; known || len(i.amounts) >= mostCounters {
		return
	}
	list := []amount{}
	for set, counters := range sets { // any order: each by itself
		for name, c := range counters { // any order: likewise
			n, whole := int64(0), true
			if !c.Value.IsZero() { // AsInt64 counts its exponent down
				n, whole = c.Value.AsInt64()
			}
			if !whole || n > math.MaxInt32<<16 || n < math.MinInt32<<16 || len(list) == mostAmounts {
				return
			}
			list = append(list, amount{i.number(appendText(appendText(append(i.key[:0], 'n'), set), name)), n})
		}
	}
	i.amounts[number] = list
}

// allDevices returns the devices of the pool's slices, in their order.
func allDevices(p *devicepools.Pool) (list []*resourcev1.Device) {
	for _, s := range p.Slices {
		for j := range s.Spec.Devices {
			list = append(list, &s.Spec.Devices[j])
		}
	}
	return list
}

// draw subtracts from left what a device consumes; counters that left does not have are
// ignored.
func draw(left, drawn map[string]resourcev1.Counter) {
	for name, c := range drawn { // any order: each by itself
		if l, there := left[name]; there {
			l.Value.Sub(c.Value)
			left[name] = l
		}
	}
}

// number returns the number for the key, a new one for a new key: for all but contents, capacities
// and taints. key may be built on i.key, whose memory is reused afterwards.
func (i *inventories) number(key []byte) int32 {
	i.key = key[:0]
	n, known := i.numbers[string(key)]
	if !known {
		n = int32(len(i.numbers) + 1) // #nosec G115 -- bounded by mostNumbers
		i.numbers[string(key)] = n
	}
	return n
}

// appendTaints appends the taints to a key.
func appendTaints(key []byte, taints []resourcev1.DeviceTaint) []byte {
	for i := range taints {
		t := &taints[i]
		key = strconv.AppendQuote(strconv.AppendQuote(strconv.AppendQuote(key, t.Key), t.Value), string(t.Effect))
	}
	return key
}

// appendCounters appends a set of counters with its name to a key.
func appendCounters(key []byte, set string, counters map[string]resourcev1.Counter) []byte {
	key = strconv.AppendInt(strconv.AppendQuote(key, set), int64(len(counters)), 36)
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		q := counters[name].Value
		key = appendQuantity(strconv.AppendQuote(key, name), &q)
	}
	return key
}

// appendCapacity appends the device's capacity, and whether it can be shared, to a key.
func appendCapacity(key []byte, d *resourcev1.Device) []byte {
	if d.AllowMultipleAllocations != nil {
		key = strconv.AppendBool(key, *d.AllowMultipleAllocations)
	}
	var room [8]resourcev1.QualifiedName
	for _, name := range sortedNames(room[:0], d.Capacity) {
		c := d.Capacity[name]
		key = appendQuantity(appendText(key, string(name)), &c.Value)
		if p := c.RequestPolicy; p != nil {
			text, _ := p.Marshal() // it has no reason to fail: nothing is encoded but numbers and texts
			key = strconv.AppendQuote(append(key, 'p'), string(text))
		}
	}
	return key
}

// appendQuantity appends a quantity to a key: the same bytes for equal whole numbers.
func appendQuantity(key []byte, q *resource.Quantity) []byte {
	if q.IsZero() { // AsInt64 counts its exponent down
		return append(key, '0', ';')
	}
	if n, whole := q.AsInt64(); whole {
		return append(strconv.AppendInt(key, n, 36), ';')
	}
	return strconv.AppendQuote(key, q.String())
}

// appendAttributes appends the attributes to a key, sorted by name.
func appendAttributes(key []byte, attributes map[resourcev1.QualifiedName]resourcev1.DeviceAttribute) []byte {
	var room [8]resourcev1.QualifiedName
	for _, name := range sortedNames(room[:0], attributes) {
		key = appendAttribute(appendText(key, string(name)), attributes[name])
	}
	return key
}

// sortedNames returns the map's keys, sorted, in the memory of room if that is large
// enough.
func sortedNames[V any](room []resourcev1.QualifiedName, by map[resourcev1.QualifiedName]V) []resourcev1.QualifiedName {
	for name := range by { // any order: sorted
		room = append(room, name)
	}
	slices.Sort(room)
	return room
}

// appendText appends the text to a key after its length, so that its end is clear.
func appendText(key []byte, text string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(text))), text...)
}

// appendAttribute appends an attribute's value to a key.
func appendAttribute(key []byte, a resourcev1.DeviceAttribute) []byte {
	if a.StringValue != nil {
		key = appendText(append(key, 's'), *a.StringValue)
	}
	if a.IntValue != nil {
		key = strconv.AppendInt(append(key, 'i'), *a.IntValue, 36)
	}
	if a.BoolValue != nil {
		key = strconv.AppendBool(append(key, 'b'), *a.BoolValue)
	}
	if a.StringValue == nil && a.IntValue == nil && a.BoolValue == nil {
		text, _ := a.Marshal() // as above
		key = strconv.AppendQuote(append(key, 'v'), string(text))
	}
	return append(key, ';')
}

// appendValues appends the device's values of the named attributes to a key. An
// attribute domain/id is also found under id if the domain is the driver's.
func (c *content) appendValues(key []byte, names []resourcev1.FullyQualifiedName) []byte {
	for _, name := range names {
		a, there := c.device.Attributes[resourcev1.QualifiedName(name)]
		if domain, id, whole := strings.Cut(string(name), "/"); !there && whole && domain == c.driver {
			a, there = c.device.Attributes[resourcev1.QualifiedName(id)]
		}
		if there {
			key = appendAttribute(append(key, '+'), a)
		} else {
			key = append(key, '-')
		}
	}
	return key
}
