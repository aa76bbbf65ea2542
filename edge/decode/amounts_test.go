package decode

import (
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-scheduler/berth/core/object"
)

// Amounts beyond int64 are cut off, wherever they stand; the API's object stays
// as it is, and one without such amounts is not copied.
func TestAbsurdAmounts(t *testing.T) {
	huge, minus, fine := resource.MustParse("1e999999999"), resource.MustParse("-1e999999999"), resource.MustParse("1500m")
	slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
		SharedCounters: []resourcev1.CounterSet{{Name: "s", Counters: map[string]resourcev1.Counter{"c": {Value: huge}}}},
		Devices: []resourcev1.Device{{Name: "d",
			NodeAllocatableResources: map[v1.ResourceName]resourcev1.NodeAllocatableResource{"cpu": {Mapping: &resourcev1.NodeAllocatableMapping{DeviceMultiplier: &huge, CapacityMultiplier: &huge},
				Overhead: &resourcev1.NodeAllocatableOverhead{PerPod: &huge, PerContainer: &huge}}, "memory": {}},
			ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: "s", Counters: map[string]resourcev1.Counter{"c": {Value: minus}}}},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"fine": {Value: fine}, "memory": {Value: fine, RequestPolicy: &resourcev1.CapacityRequestPolicy{
				Default: &huge, ValidValues: []resource.Quantity{fine, huge}, ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: &huge, Max: &huge, Step: &huge}}}},
		}}}}
	got := Object(slice).(*object.ResourceSlice).API
	d := got.Spec.Devices[0]
	policy := d.Capacity["memory"].RequestPolicy
	for name, q := range map[string]resource.Quantity{
		"shared counter": got.Spec.SharedCounters[0].Counters["c"].Value, "default": *policy.Default, "valid value": policy.ValidValues[1],
		"min": *policy.ValidRange.Min, "max": *policy.ValidRange.Max, "step": *policy.ValidRange.Step,
		"what it takes of its node": *d.NodeAllocatableResources["cpu"].Mapping.DeviceMultiplier, "by capacity": *d.NodeAllocatableResources["cpu"].Mapping.CapacityMultiplier,
		"for each pod": *d.NodeAllocatableResources["cpu"].Overhead.PerPod, "for each container": *d.NodeAllocatableResources["cpu"].Overhead.PerContainer,
	} {
		if n, ok := q.AsInt64(); !ok || n != math.MaxInt64 {
			t.Errorf("%s: %d, %v", name, n, ok)
		}
	}
	if q := d.ConsumesCounters[0].Counters["c"].Value; q.Value() != math.MinInt64 {
		t.Errorf("consumed: %v", q.Value())
	}
	if q := d.Capacity["fine"].Value; q.Cmp(fine) != 0 {
		t.Errorf("a good amount became %v", q.String())
	}
	if q := slice.Spec.SharedCounters[0].Counters["c"].Value; q.String() != huge.String() {
		t.Errorf("the API's object was changed")
	}

	ask := &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": huge}}
	claim := &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		{Name: "a", Exactly: &resourcev1.ExactDeviceRequest{Capacity: ask}}, {Name: "b", FirstAvailable: []resourcev1.DeviceSubRequest{{Capacity: ask}}}}}},
		Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{ConsumedCapacity: map[resourcev1.QualifiedName]resource.Quantity{"memory": huge}}}}}}}
	c := Object(claim).(*object.ResourceClaim).API
	for name, q := range map[string]resource.Quantity{
		"request": c.Spec.Devices.Requests[0].Exactly.Capacity.Requests["memory"], "subrequest": c.Spec.Devices.Requests[1].FirstAvailable[0].Capacity.Requests["memory"],
		"consumed": c.Status.Allocation.Devices.Results[0].ConsumedCapacity["memory"],
	} {
		if n, ok := q.AsInt64(); !ok || n != math.MaxInt64 {
			t.Errorf("%s: %d, %v", name, n, ok)
		}
	}

	good := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Devices: []resourcev1.Device{{Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"m": {Value: fine}}}}}}
	if Object(good).(*object.ResourceSlice).API != good {
		t.Error("a good slice was copied")
	}
	// Volumes and claims for them count in int64 as well.
	pvc := &v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{"storage": huge}}}}
	if n := Object(pvc).(*object.PersistentVolumeClaim).Bytes; n != math.MaxInt64 {
		t.Errorf("claim of %d bytes", n)
	}
}
