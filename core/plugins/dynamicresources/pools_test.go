package dynamicresources

import (
	"fmt"
	"maps"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// counted shows a pool of the driver on node a: devices that draw 1 each on a counter of that
// many, which can be shared if shared is set.
func counted(t *table.Table, driver, pool string, of int64, shared bool, devices ...string) {
	show := func(name string, spec resourcev1.ResourceSliceSpec) {
		spec.Driver, spec.NodeName = driver, new("a")
		spec.Pool = resourcev1.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 2}
		t.Objects().Set(&object.ResourceSlice{Meta: object.Meta{Kind: object.ResourceSlices, Name: name},
			API: &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}})
	}
	var spec resourcev1.ResourceSliceSpec
	for _, name := range devices {
		d := resourcev1.Device{Name: name, ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: driver, Counters: counters(1)}}}
		if shared {
			d.AllowMultipleAllocations = new(true)
		}
		spec.Devices = append(spec.Devices, d)
	}
	show(driver+pool, spec)
	show(driver+pool+"-counters", resourcev1.ResourceSliceSpec{SharedCounters: []resourcev1.CounterSet{{Name: driver, Counters: counters(of)}}})
}

// showHolder shows a claim that holds a device of the pool.
func showHolder(t *table.Table, name, driver, pool, device string, share *types.UID) {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: driver, Pool: pool, Device: device, ShareID: share}}}}
	show(t, c)
}

// onlyA returns a table with the node a and the device class gpu.
func onlyA() *table.Table {
	t := plugintest.Table(&object.Node{Name: "a"})
	t.Objects().Set(&object.DeviceClass{Meta: object.Meta{Kind: object.DeviceClasses, Name: "gpu"},
		API: &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}})
	return t
}

// Pools of two drivers count by themselves, also if they have one name: a pod gets as many of
// their devices as if they had two, and its claim names the pools as they are called.
func TestPoolsOfOneName(t *testing.T) {
	for n := int64(1); n <= 5; n++ {
		for _, share := range []*types.UID{nil, new(types.UID("s"))} {
			blocked := func(second string) (map[string]string, []resourcev1.DeviceRequestAllocationResult) {
				tb, pl := onlyA(), newPlugin(t)
				counted(tb, "one", "pool", 2, share != nil, "d0", "d1", "d2")
				counted(tb, "two", second, 3, share != nil, "d0", "d1", "d2")
				showHolder(tb, "held", "two", second, "d1", share)
				p := claim(tb, "p", n)
				got := plugintest.Ask(t, pl, tb, p).Blocked
				if got["a"] != "" {
					return got, nil
				}
				if s := pl.Reserve(tb, p, "a"); s != nil {
					t.Fatal(s)
				}
				writes, _ := pl.PreBind(tb, p, "a")
				return got, writes[1].Result[0].(*object.ResourceClaim).Allocation().Devices.Results
			}
			same, results := blocked("pool")
			others, want := blocked("other")
			if !maps.Equal(same, others) || len(results) != len(want) {
				t.Errorf("%d devices, share %v: %v, with pools of two names %v", n, share, same, others)
			}
			for i, r := range results {
				if r.Pool != "pool" || r.Driver != want[i].Driver || r.Device != want[i].Device {
					t.Errorf("%d devices, share %v: the claim gets %v, not %v", n, share, r, want[i])
				}
			}
		}
	}
}

// A device that claims share draws on its counters once, also if a claim's share says no
// capacity; one that a claim holds whole is not given again.
func TestShareWithoutCapacity(t *testing.T) {
	for _, share := range []*types.UID{nil, new(types.UID("s"))} {
		tb, pl := onlyA(), newPlugin(t)
		counted(tb, "one", "pool", 1, true, "d0")
		showHolder(tb, "held", "one", "pool", "d0", share)
		want := ""
		if share == nil {
			want = short
		}
		if got := plugintest.Ask(t, pl, tb, claim(tb, "p", 1)).Blocked["a"]; got != want {
			t.Errorf("share %v: %q, not %q", share, got, want)
		}
	}
}

// A share of a device counts once, whether it is assumed, written, or both while its pod waits for
// binding conditions: another claim gets the rest.
func TestShareCountsOnce(t *testing.T) {
	tb, pl := onlyA(), newPlugin(t)
	one := *resource.NewQuantity(1, resource.DecimalSI)
	spec := resourcev1.ResourceSliceSpec{Driver: "gpu", NodeName: new("a"), Pool: resourcev1.ResourcePool{Name: "a", Generation: 1, ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{Name: "d", AllowMultipleAllocations: new(true), BindsToNode: new(true), BindingConditions: []string{"attached"}, BindingFailureConditions: []string{"broken"},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: *resource.NewQuantity(2, resource.DecimalSI), RequestPolicy: &resourcev1.CapacityRequestPolicy{Default: &one}}}}}}
	tb.Objects().Set(&object.ResourceSlice{Meta: object.Meta{Kind: object.ResourceSlices, Name: "s"}, API: &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: spec}})
	first, second, third := claim(tb, "first", 1), claim(tb, "second", 1), claim(tb, "third", 1)
	blocked := func(p *object.Pod, when, want string) {
		if got := plugintest.Ask(t, pl, tb, p).Blocked["a"]; got != want {
			t.Errorf("%s, %s: %q", p.Name, when, got)
		}
	}
	if s := pl.Reserve(tb, first, "a"); s != nil {
		t.Fatal(s)
	}
	blocked(second, "while the first share is assumed", "")
	writes, s := pl.PreBind(tb, first, "a")
	if s != nil {
		t.Fatal(s)
	}
	show(tb, writes[len(writes)-1].Result[0].(*object.ResourceClaim).API)
	if s := pl.WritesDone(tb, first, "a"); s == nil || s.Code != decision.Wait {
		t.Fatalf("the pod does not wait: %v", s)
	}
	blocked(second, "while the first pod waits", "")
	if s := pl.Reserve(tb, second, "a"); s != nil {
		t.Fatal(s)
	}
	blocked(third, "when the device is used up", short)
}

// A pool that is incomplete, or not valid, keeps a pod that asks for all devices from the node
// of the pool alone. The error that the allocator returns is known by its text.
func TestAllDevicesOfBrokenPool(t *testing.T) {
	for _, c := range []struct {
		of      int64
		devices []string
		want    string
	}{
		{1, []string{"d0"}, ""},
		{2, []string{"d0"}, "UnschedulableAndUnresolvable: cannot allocate all devices, a resource pool is being updated"},
		{1, []string{"d0", "d0"}, "UnschedulableAndUnresolvable: cannot allocate all devices, a resource pool is invalid"},
	} {
		tb, pl := world(), newPlugin(t)
		setSlice(tb, "a", c.of, c.devices...)
		p := claim(tb, "p", 0)
		api := shown(tb, "ns", "p").API.DeepCopy()
		api.Spec.Devices.Requests[0].Exactly.AllocationMode = resourcev1.DeviceAllocationModeAll
		tb.Objects().Set(&object.ResourceClaim{Meta: object.Meta{Kind: object.ResourceClaims, Namespace: "ns", Name: "p", UID: api.UID}, API: api, Ask: "all"})
		if got, want := plugintest.Ask(t, pl, tb, p).Blocked, map[string]string{"a": c.want, "b": ""}; !maps.Equal(got, want) {
			t.Errorf("%s: %v, not %v", fmt.Sprint(c.of, c.devices), got, want)
		}
	}
}
