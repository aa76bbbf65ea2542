package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// allocate gives each claim that has none devices of a node taken at random,
// the same in every run. What it gives is in the claims' status.
func allocate(ctx context.Context, claims []*resourcev1.ResourceClaim, offered []*resourcev1.ResourceSlice,
	classes []*resourcev1.DeviceClass, nodes []*v1.Node) error {
	draw := rand.New(rand.NewPCG(1, 2))
	everywhere, of := visible(offered)
	taken := sets.New[structured.DeviceID]()
	selectors := cel.NewCache(10, cel.Features{EnableConsumableCapacity: true})
	one := func(claim *resourcev1.ResourceClaim) error {
		for _, i := range draw.Perm(len(nodes)) {
			n := nodes[i]
			allocator, err := structured.NewAllocator(ctx, deviceFeatures, structured.AllocatedState{AllocatedDevices: taken},
				classList(classes), append(of[n.Name], everywhere...), selectors)
			if err != nil {
				return err
			}
			got, err := allocator.Allocate(ctx, n, []*resourcev1.ResourceClaim{claim})
			if err != nil {
				return err
			}
			if got == nil {
				continue
			}
			claim.Status.Allocation = &got[0]
			for _, r := range got[0].Devices.Results {
				if r.ShareID != nil {
					return errors.New("a share of a device cannot be given away beforehand")
				}
				taken.Insert(structured.MakeDeviceID(r.Driver, r.Pool, r.Device))
			}
			return nil
		}
		return errors.New("no node has what it asks for")
	}
	for _, claim := range claims {
		if claim.Status.Allocation != nil {
			continue
		}
		if err := one(claim); err != nil {
			return fmt.Errorf("allocating ResourceClaim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
	}
	return nil
}

// deviceFeatures are those of kube-scheduler that are on.
var deviceFeatures = structured.Features{
	PrioritizedList: true, AdminAccess: true, DeviceTaints: true, PartitionableDevices: true, ConsumableCapacity: true,
}

// visible sorts slices by who can see them: one node, or more.
func visible(offered []*resourcev1.ResourceSlice) (everywhere []*resourcev1.ResourceSlice, of map[string][]*resourcev1.ResourceSlice) {
	of = map[string][]*resourcev1.ResourceSlice{}
	for _, s := range offered {
		if s.Spec.NodeName == nil {
			everywhere = append(everywhere, s)
			continue
		}
		of[*s.Spec.NodeName] = append(of[*s.Spec.NodeName], s)
	}
	return everywhere, of
}

// classList finds device classes by name.
type classList []*resourcev1.DeviceClass

func (l classList) List() ([]*resourcev1.DeviceClass, error) { return l, nil }

func (l classList) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, c := range l {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, apierrors.NewNotFound(resourcev1.Resource("deviceclasses"), name)
}
