package devicepools_test

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-scheduler/berth/core/index/devicepools"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// One node alone has a pool of GPUs, and all nodes see a pool of licences. That a claim takes a GPU
// concerns the node's row alone; that one takes a licence concerns all rows.
func Example() {
	t := table.New()
	n1 := t.SetNode(&object.Node{Name: "n1"})
	slice := func(pool, node string, devices ...string) {
		spec := resourcev1.ResourceSliceSpec{Driver: "example.com", Pool: resourcev1.ResourcePool{Name: pool, ResourceSliceCount: 1}}
		if spec.NodeName = &node; node == "" {
			spec.NodeName, spec.AllNodes = nil, new(true)
		}
		for _, name := range devices {
			spec.Devices = append(spec.Devices, resourcev1.Device{Name: name})
		}
		t.Objects().Set(&object.ResourceSlice{Meta: object.Meta{Kind: object.ResourceSlices, Name: pool}, API: &resourcev1.ResourceSlice{Spec: spec}})
	}
	claim := func(pool, device string) {
		c := &resourcev1.ResourceClaim{}
		c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Driver: "example.com", Pool: pool, Device: device}},
		}}
		t.Objects().Set(&object.ResourceClaim{Meta: object.Meta{Kind: object.ResourceClaims, Namespace: "default", Name: device}, API: c})
	}
	slice("gpus-of-n1", "n1", "gpu-0", "gpu-1")
	slice("licences", "", "licence-0")

	x := devicepools.Of(t)
	all, row := x.Revision(), x.RowRevision(n1)
	show := func(what string) {
		fmt.Printf("%s: concerns n1 %v, all nodes %v\n", what, x.RowRevision(n1) != row, x.Revision() != all)
		all, row = x.Revision(), x.RowRevision(n1)
		for _, p := range append(x.On("n1"), x.Shared()...) {
			fmt.Printf("  %s: %d devices, %d taken\n", p.Name, len(p.Slices[0].Spec.Devices), len(p.Taken))
		}
	}
	show("two pools")
	claim("gpus-of-n1", "gpu-1")
	show("a claim for a GPU")
	claim("licences", "licence-0")
	show("a claim for a licence")

	// Output:
	// two pools: concerns n1 false, all nodes false
	//   gpus-of-n1: 2 devices, 0 taken
	//   licences: 1 devices, 0 taken
	// a claim for a GPU: concerns n1 true, all nodes false
	//   gpus-of-n1: 2 devices, 1 taken
	//   licences: 1 devices, 0 taken
	// a claim for a licence: concerns n1 false, all nodes true
	//   gpus-of-n1: 2 devices, 1 taken
	//   licences: 1 devices, 1 taken
}
