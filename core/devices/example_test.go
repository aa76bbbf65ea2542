package devices_test

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berth-scheduler/berth/core/devices"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// A DeviceClass stands for the extended resource example.com/gpu. Node n1 has two GPUs, one of
// which a claim holds, and a camera, which the class does not select; n2 has nothing.
func Example() {
	t := table.New()
	t.SetNode(&object.Node{Name: "n1"})
	t.SetNode(&object.Node{Name: "n2"})

	const gpu = "example.com/gpu"
	class := &resourcev1.DeviceClass{}
	class.Spec.ExtendedResourceName = new(gpu)
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.attributes["example.com"].kind == "gpu"`}}}
	t.Objects().Set(&object.DeviceClass{Meta: object.Meta{Kind: object.DeviceClasses, Name: "gpus"}, API: class})

	device := func(name, kind string) resourcev1.Device {
		return resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"kind": {StringValue: &kind}}}
	}
	slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
		Driver: "example.com", Pool: resourcev1.ResourcePool{Name: "n1", ResourceSliceCount: 1}, NodeName: new("n1"),
		Devices: []resourcev1.Device{device("gpu-0", "gpu"), device("gpu-1", "gpu"), device("front", "camera")},
	}}
	t.Objects().Set(&object.ResourceSlice{Meta: object.Meta{Kind: object.ResourceSlices, Name: "n1"}, API: slice})

	claim := &resourcev1.ResourceClaim{}
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Driver: "example.com", Pool: "n1", Device: "gpu-1"}},
	}}
	t.Objects().Set(&object.ResourceClaim{Meta: object.Meta{Kind: object.ResourceClaims, Namespace: "default", Name: "training"}, API: claim})

	offered, taken := devices.NewCounter(structured.Features{}).Stock(t, gpu).Columns(t, t.All())
	for i, row := range t.All() {
		fmt.Printf("%s offers %d, %d taken\n", t.Name(row), offered[i], taken[i])
	}

	// Output:
	// n1 offers 2, 1 taken
	// n2 offers 0, 0 taken
}
