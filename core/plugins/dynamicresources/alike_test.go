package dynamicresources

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/par"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// devicesAtRandom makes nodes whose devices differ in everything that a search looks
// at, and claims that ask in every way.
type devicesAtRandom struct {
	*rand.Rand
	counted, shared, rare int // how likely each is, in percent: few at a time make nodes alike
	constrained           int // claims whose devices have to be alike, or not
	common                int // pools that several nodes can see
}

func (d devicesAtRandom) chance(percent int) bool { return d.IntN(100) < percent }

func (d devicesAtRandom) world() *table.Table {
	var nodes []*object.Node
	for i := range 24 {
		nodes = append(nodes, &object.Node{Name: fmt.Sprint("n", i), Labels: map[string]string{"zone": fmt.Sprint(i % 3)}})
	}
	t := plugintest.Table(nodes...)
	for name, expression := range map[string]string{"any": "", "odd": `device.attributes[device.driver].model == "odd"`, "fails": `device.attributes["none"].x == 1`} {
		c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if expression != "" {
			c.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
		}
		t.Objects().Set(&object.DeviceClass{Meta: object.Meta{Kind: object.DeviceClasses, Name: name}, API: c})
	}
	for _, n := range nodes {
		for i := range d.IntN(2) + d.IntN(2) {
			d.pool(t, n.Name, fmt.Sprint("driver", i))
		}
	}
	for i := range d.common {
		d.commonPool(t, fmt.Sprint([]string{"a", "n1-", "z"}[d.IntN(3)], i))
	}
	return t
}

// commonPool shows a pool that nodes see by the zone, by their name, or all.
func (d devicesAtRandom) commonPool(t *table.Table, pool string) {
	slices, driver := 1+d.IntN(2), fmt.Sprint("driver", d.IntN(2))
	for i := range slices {
		spec := resourcev1.ResourceSliceSpec{Driver: driver, Pool: resourcev1.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: int64(slices)}}
		for j := range 1 + d.IntN(2) {
			v := d.device(fmt.Sprint("d", i, j), false)
			if d.IntN(3) == 0 {
				spec.PerDeviceNodeSelection = new(true)
			}
			spec.Devices = append(spec.Devices, v)
		}
		if spec.PerDeviceNodeSelection == nil {
			spec.NodeName, spec.AllNodes, spec.NodeSelector = d.reach()
		}
		for j := range spec.Devices {
			if v := &spec.Devices[j]; spec.PerDeviceNodeSelection != nil {
				v.NodeName, v.AllNodes, v.NodeSelector = d.reach()
			}
		}
		name := fmt.Sprint(pool, driver, i)
		t.Objects().Set(&object.ResourceSlice{Meta: object.Meta{Kind: object.ResourceSlices, Name: name},
			API: &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}})
	}
}

func (d devicesAtRandom) reach() (name *string, all *bool, by *v1.NodeSelector) {
	switch d.IntN(4) {
	case 0:
		return new(fmt.Sprint("n", d.IntN(24))), nil, nil
	case 1:
		return nil, new(true), nil
	}
	return nil, nil, &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
		{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{fmt.Sprint(d.IntN(3)), fmt.Sprint(d.IntN(3))}}}}}}
}

// pool shows a driver's pool on the node: in one slice or two, and with counters.
func (d devicesAtRandom) pool(t *table.Table, node, driver string) {
	slices, counted := 1+d.IntN(2), d.chance(d.counted)
	count := int64(slices)
	if counted {
		count++
	}
	show := func(i int, spec resourcev1.ResourceSliceSpec) {
		spec.Driver, spec.NodeName = driver, &node
		spec.Pool = resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: count}
		if d.chance(d.rare / 5) {
			spec.Pool.ResourceSliceCount++ // one is missing
		}
		name := fmt.Sprint(node, driver, i)
		t.Objects().Set(&object.ResourceSlice{Meta: object.Meta{Kind: object.ResourceSlices, Name: name},
			API: &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}})
	}
	for i := range slices {
		var spec resourcev1.ResourceSliceSpec
		for j := range 1 + d.IntN(3) {
			spec.Devices = append(spec.Devices, d.device(fmt.Sprint("d", i, j), counted))
		}
		if d.chance(d.rare / 5) {
			spec.Devices = append(spec.Devices, spec.Devices[0]) // a name twice
		}
		show(i, spec)
	}
	if counted {
		show(slices, resourcev1.ResourceSliceSpec{SharedCounters: []resourcev1.CounterSet{{Name: "set", Counters: counters(1 + d.Int64N(3))}}})
	}
}

func counters(n int64) map[string]resourcev1.Counter {
	return map[string]resourcev1.Counter{"slots": {Value: *resource.NewQuantity(n, resource.DecimalSI)}}
}

func (d devicesAtRandom) device(name string, counted bool) resourcev1.Device {
	model := []string{"odd", "even"}[d.IntN(2)]
	v := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: &model}},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: *resource.NewQuantity(1+d.Int64N(2), resource.DecimalSI)}}}
	if d.chance(d.rare) {
		v.Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	}
	if d.chance(d.shared) {
		v.AllowMultipleAllocations = new(true)
	}
	if counted && d.chance(70) {
		v.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "set", Counters: counters(1 + d.Int64N(2))}}
		if d.chance(d.rare / 5) {
			v.ConsumesCounters[0].CompatibilityGroups = []string{"g"}
		}
	}
	if d.chance(d.rare / 3) {
		v.Capacity["memory"] = resourcev1.DeviceCapacity{Value: *resource.NewQuantity(-1, resource.DecimalSI)}
	} else if d.chance(d.rare / 3) {
		v.Capacity["memory"] = resourcev1.DeviceCapacity{Value: *resource.NewQuantity(math.MaxInt64, resource.DecimalSI), RequestPolicy: &resourcev1.CapacityRequestPolicy{
			Default: resource.NewQuantity(1, resource.DecimalSI), ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: resource.NewQuantity(1, resource.DecimalSI), Step: resource.NewQuantity(1+d.Int64N(2)<<60, resource.DecimalSI)}}}
	}
	return v
}

func (d devicesAtRandom) exactly() *resourcev1.ExactDeviceRequest {
	class := []string{"any", "any", "odd", "odd", "odd", "fails"}[d.IntN(6)]
	if class == "fails" && !d.chance(d.rare) {
		class = "odd"
	}
	e := &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1 + d.Int64N(3)}
	switch d.IntN(8) {
	case 0:
		e.AllocationMode, e.Count = resourcev1.DeviceAllocationModeAll, 0
	case 1:
		e.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
	case 2:
		e.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": *resource.NewQuantity(1+d.Int64N(2), resource.DecimalSI)}}
		if d.chance(2 * d.rare) {
			e.Capacity.Requests["memory"] = *resource.NewQuantity([]int64{-1, math.MaxInt64}[d.IntN(2)], resource.DecimalSI)
		}
	case 3:
		e.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "driver0"`}}}
	}
	return e
}

func (d devicesAtRandom) claim(name string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("claim " + name)}}
	for i := range 1 + d.IntN(3) {
		r := resourcev1.DeviceRequest{Name: fmt.Sprint("r", i)}
		if d.chance(40) {
			for j := range 1 + d.IntN(3) {
				e := d.exactly()
				r.FirstAvailable = append(r.FirstAvailable, resourcev1.DeviceSubRequest{Name: fmt.Sprint("s", j), DeviceClassName: e.DeviceClassName,
					Selectors: e.Selectors, AllocationMode: e.AllocationMode, Count: e.Count, Tolerations: e.Tolerations, Capacity: e.Capacity})
			}
		} else if r.Exactly = d.exactly(); d.chance(8) {
			r.Exactly.AdminAccess = new(true)
		}
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, r)
	}
	if attribute := resourcev1.FullyQualifiedName("driver0/model"); d.chance(d.rare + d.constrained) {
		c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &attribute}}
		if d.chance(40) {
			c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{DistinctAttribute: &attribute}}
		}
	}
	return c
}

// The result of a search on one node holds on every node that is taken to be like it:
// the answer is that of a search there.
func TestNodesThatAreAlikeShareAnswers(t *testing.T) {
	asked, searched, placed, elsewhere := 0, 0, 0, 0
	for seed := range uint64(64) {
		d := devicesAtRandom{Rand: rand.New(rand.NewPCG(seed, 13))}
		d.counted, d.shared, d.rare = 80*int(seed&1), 60*int(seed>>1&1), 15*int(seed>>2&1)
		d.common, d.constrained = int(seed>>3&3), 40*int(seed%5&1)
		tb, pl := d.world(), build(nil, all)
		for i := range 10 {
			name := fmt.Sprint("c", i)
			p := &object.Pod{UID: types.UID(name), Namespace: "ns", Name: name}
			specs := ""
			for j := range 1 + d.IntN(4)/3 {
				c := d.claim(fmt.Sprint(name, j))
				tb.Objects().Set(&object.ResourceClaim{Meta: object.Meta{Kind: object.ResourceClaims, Namespace: "ns", Name: c.Name, UID: c.UID}, API: c, Ask: fmt.Sprint(c.Spec)})
				p.Claims = append(p.Claims, object.PodClaim{Claim: c.Name})
				specs += fmt.Sprintf("%+v\n", c.Spec)
			}
			prepared := pl.preFilter(tb, p)
			if prepared.Status != nil {
				t.Fatalf("seed %d, %s: %+v", seed, name, prepared.Status)
			}
			s := prepared.State.(*state)
			in := &framework.Input{Table: tb, Pod: p, State: s}
			alone := prepared.Alone
			if !alone && d.rare == 0 {
				t.Fatalf("seed %d: no search is shared", seed)
			}
			for row := range tb.Rows() {
				n := tb.Node(table.Row(row))
				if v := pl.inventories.of(tb, table.Row(row)); v != nil && alone {
					for d := range pl.inventories.devicesOn(v) {
						elsewhere += map[bool]int{true: 1}[d.elsewhere]
					}
				}
				before := searches(pl)
				got, _ := pl.allocateAlike(in, table.Row(row), n)
				want, err := pl.searchOn(in, n)
				if got != want {
					t.Fatalf("seed %d, node %s, pod %s:\n%s\nby a search on a node like it: %+v, on the node: %+v %v", seed, n.Name, name, specs, got, want, err)
				}
				asked++
				searched += searches(pl) - before
			}
			if node := fmt.Sprint("n", d.IntN(24)); pl.reserve(tb, p, node) == nil {
				placed++
			}
		}
	}
	if searched*2 > asked || placed < 100 || elsewhere < 1000 {
		t.Errorf("%d of %d answers are from a search, %d claims were given devices, nodes saw %d of others: the test says little", searched, asked, placed, elsewhere)
	}
}

// setDevices shows the devices of a node, and a set with so many counters that they may consume.
func setDevices(t *table.Table, node string, slots int64, devices ...resourcev1.Device) {
	spec := resourcev1.ResourceSliceSpec{Driver: "gpu", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 2, ResourceSliceCount: 2}}
	sets := spec
	spec.Devices, sets.SharedCounters = devices, []resourcev1.CounterSet{{Name: "set", Counters: counters(slots)}}
	for name, spec := range map[string]resourcev1.ResourceSliceSpec{"of-" + node: spec, "sets-of-" + node: sets} {
		t.Objects().Set(&object.ResourceSlice{Meta: object.Meta{Kind: object.ResourceSlices, Name: name},
			API: &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}})
	}
}

// partition returns a device that consumes one counter of its pool.
func partition(name string) resourcev1.Device {
	return resourcev1.Device{Name: name, ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: "set", Counters: counters(1)}}}
}

// withModel returns the device with an attribute model.
func withModel(d resourcev1.Device, model resourcev1.DeviceAttribute) resourcev1.Device {
	d.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": model}
	return d
}

// inputWith shows a claim for n devices that change makes another one, and returns the filter's
// input for a pod that uses it.
func inputWith(tb *table.Table, pl *plugin, name string, n int64, change func(*resourcev1.DeviceClaim)) *framework.Input {
	p := claim(tb, name, n)
	own := *shown(tb, "ns", name)
	own.API, own.Ask = own.API.DeepCopy(), name
	change(&own.API.Spec.Devices)
	tb.Objects().Set(&own)
	return &framework.Input{Table: tb, Pod: p, State: pl.preFilter(tb, p).State}
}

// A device that is taken leaves less of its pool's counters to others: the nodes are
// not alike, though the same devices are free.
func TestTakenDevicesDrawOnCounters(t *testing.T) {
	tb, pl := world(), build(nil, all)
	setDevices(tb, "a", 2, partition("d0"), partition("d1"), partition("d2"))
	setDevices(tb, "b", 2, partition("d1"), partition("d2"))
	if status := pl.reserve(tb, claim(tb, "one", 1), "a"); status != nil {
		t.Fatal(status)
	}
	p := claim(tb, "two", 2)
	s := pl.preFilter(tb, p).State.(*state)
	in := &framework.Input{Table: tb, Pod: p, State: s}
	for node, want := range map[string]framework.Verdict{"a": tooLittle, "b": framework.Fits} {
		row, _ := tb.Find(node)
		if got, err := pl.allocateAlike(in, row, tb.Node(row)); got.verdict != want {
			t.Errorf("node %s: %+v %v, want verdict %d", node, got, err, want)
		}
	}
}

// Two nodes that differ in what a search reads share no answer, whichever of them is asked
// about first.
func TestNodesThatDifferShareNoAnswer(t *testing.T) {
	model := resourcev1.FullyQualifiedName("gpu/model")
	plain, list := resourcev1.DeviceAttribute{StringValue: new("x")}, resourcev1.DeviceAttribute{StringValues: []string{"y"}}
	for _, c := range []struct {
		name  string
		set   func(tb *table.Table)
		ask   func(*resourcev1.DeviceClaim)
		wants map[string]framework.Verdict
	}{
		{"one has more of its counters left", func(tb *table.Table) {
			for node, slots := range map[string]int64{"a": 1, "b": 2} {
				setDevices(tb, node, slots, withModel(partition("d0"), plain), withModel(partition("d1"), plain))
			}
		}, func(c *resourcev1.DeviceClaim) {
			c.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &model}}
		}, map[string]framework.Verdict{"a": tooLittle, "b": framework.Fits}},
		// The allocator takes a device with a list as the first only.
		{"the device with a list comes first on one", func(tb *table.Table) {
			with, without := withModel(resourcev1.Device{Name: "list"}, list), withModel(resourcev1.Device{Name: "plain"}, plain)
			setDevices(tb, "a", 1, with, without)
			setDevices(tb, "b", 1, without, with)
		}, func(c *resourcev1.DeviceClaim) {
			c.Constraints = []resourcev1.DeviceConstraint{{DistinctAttribute: &model}}
		}, map[string]framework.Verdict{"a": framework.Fits, "b": tooLittle}},
		{"a selector fails on one's only device, and the other has none", func(tb *table.Table) {
			setDevices(tb, "a", 1)
		}, func(c *resourcev1.DeviceClaim) {
			c.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.attributes["none"].x == 1`}}}
		}, map[string]framework.Verdict{"a": tooLittle, "b": broken}},
	} {
		for _, nodes := range [][]string{{"a", "b"}, {"b", "a"}} {
			tb, pl := world(), build(nil, all)
			c.set(tb)
			in := inputWith(tb, pl, "two", 2, c.ask)
			if !in.State.(*state).alone {
				t.Fatalf("%s: no search is shared", c.name)
			}
			for _, node := range nodes {
				row, _ := tb.Find(node)
				if got, err := pl.allocateAlike(in, row, tb.Node(row)); got.verdict != c.wants[node] {
					t.Errorf("%s, %v: node %s: %+v %v, want verdict %d", c.name, nodes, node, got, err, c.wants[node])
				}
			}
		}
	}
}

// What a request with alternatives gets is rated, what one without gets is not, even where
// both ask for the same devices.
func TestAlternativesSearchForThemselves(t *testing.T) {
	tb, pl := world(), build(nil, all)
	row, _ := tb.Find("a")
	for _, c := range []struct {
		name string
		ask  func(*resourcev1.DeviceClaim)
		want int64
	}{
		{"exactly", func(*resourcev1.DeviceClaim) {}, 0},
		{"first-available", func(c *resourcev1.DeviceClaim) {
			e := c.Requests[0].Exactly
			c.Requests[0].Exactly, c.Requests[0].FirstAvailable = nil, []resourcev1.DeviceSubRequest{{Name: "s", DeviceClassName: e.DeviceClassName, AllocationMode: e.AllocationMode, Count: e.Count}}
		}, 8},
	} {
		if got, err := pl.allocateAlike(inputWith(tb, pl, c.name, 2, c.ask), row, tb.Node(row)); got != (found{score: c.want}) {
			t.Errorf("%s: %+v %v, want score %d", c.name, got, err, c.want)
		}
	}
}

// searches counts what is kept of searches.
func searches(pl *plugin) (n int) {
	for _, s := range pl.searches {
		n += len(s.byKey)
	}
	return n
}

// Administrators get a device that is taken, others who ask for as many do not.
func TestAdministratorsSearchForThemselves(t *testing.T) {
	tb, pl := world(), build(nil, all)
	if status := pl.reserve(tb, claim(tb, "first", 1), "b"); status != nil {
		t.Fatal(status)
	}
	row, _ := tb.Find("b")
	for _, admin := range []bool{false, true} {
		in := inputWith(tb, pl, fmt.Sprint("admin-", admin), 1, func(c *resourcev1.DeviceClaim) { c.Requests[0].Exactly.AdminAccess = &admin })
		got, err := pl.allocateAlike(in, row, tb.Node(row))
		if want := map[bool]framework.Verdict{false: tooLittle, true: framework.Fits}[admin]; got.verdict != want {
			t.Errorf("admin %v: %+v %v, want verdict %d", admin, got, err, want)
		}
	}
}

// Where a pool that several nodes can see is not whole no search is shared, and the engine
// asks about several nodes at once: nothing may be written but by row.
func TestRareDevicesOfAllNodesAreSearchedAtOnce(t *testing.T) {
	tb, pl := world(), build(nil, all)
	tb.Objects().Set(&object.ResourceSlice{Meta: object.Meta{Kind: object.ResourceSlices, Name: "everywhere"},
		API: &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "everywhere"}, Spec: resourcev1.ResourceSliceSpec{Driver: "gpu", AllNodes: new(true),
			Pool: resourcev1.ResourcePool{Name: "net", Generation: 1, ResourceSliceCount: 2}, Devices: []resourcev1.Device{{Name: "d"}}}}})
	p := claim(tb, "one", 1)
	prepared := pl.preFilter(tb, p)
	s := prepared.State.(*state)
	in := &framework.Input{Table: tb, Pod: p, State: s}
	if prepared.Alone {
		t.Fatal("the filter is asked about one list of rows at a time")
	}
	par.Each(tb.Rows(), tb.Rows(), func(row int) {
		pl.filter(in, []table.Row{table.Row(row)}, make([]framework.Verdict, 1))
	})
	if len(s.known.searches)+searches(pl) > 0 {
		t.Error("what is kept for other nodes is written")
	}
}
