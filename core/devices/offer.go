package devices

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berth-scheduler/berth/core/index/devicepools"
	"github.com/berth-scheduler/berth/core/table"
)

// Offer holds the ResourceSlices that a node can see, and which of their devices are
// allocated.
type Offer struct {
	Slices []*resourcev1.ResourceSlice
	Taken  structured.AllocatedState
}

// newOffer returns an offer without slices and devices.
func newOffer() *Offer {
	return &Offer{Taken: structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}}
}

// Shared returns the slices that several nodes can see, and what is taken of their devices, except
// of pools whose devices only one node can use: that is added by WithNode. shares is set if claims
// can hold parts of a device (consumable capacity).
func Shared(t *table.Table, shares bool) *Offer {
	o := newOffer()
	for _, p := range devicepools.Of(t).Shared() {
		o.Slices = append(o.Slices, p.Slices...)
		if p.Node == "" {
			o.takeAll(p, shares)
		}
	}
	return o
}

// WithNode returns a new offer for the named node: o, as returned by Shared, plus the slices that
// only this node sees, and what is taken of the devices that only this node can use. It returns o
// itself if there are none. shares is as for Shared.
func (o *Offer) WithNode(t *table.Table, node string, shares bool) *Offer {
	own := devicepools.Of(t).On(node)
	if len(own) == 0 {
		return o
	}
	all := newOffer()
	for _, p := range own {
		all.takeAll(p, shares)
		if p.Local {
			all.Slices = append(all.Slices, p.Slices...)
		}
	}
	all.Slices = append(all.Slices, o.Slices...)
	all.Taken.AllocatedDevices = all.Taken.AllocatedDevices.Union(o.Taken.AllocatedDevices)
	all.Taken.AllocatedSharedDeviceIDs = all.Taken.AllocatedSharedDeviceIDs.Union(o.Taken.AllocatedSharedDeviceIDs)
	for id, capacity := range o.Taken.AggregatedCapacity { // any order: into a map, of other devices
		all.Taken.AggregatedCapacity[id] = capacity
	}
	return all
}

// takeAll adds the allocated devices of the pool to Taken. shares is set if claims can hold parts
// of a device.
func (o *Offer) takeAll(p *devicepools.Pool, shares bool) {
	for _, r := range p.Taken {
		AddAllocated(&o.Taken, r, shares)
	}
}

// AddAllocated adds the device that an allocation result names to the state. Callers leave out
// results with AdminAccess. With shares (DRAConsumableCapacity), a result with a ShareID takes only
// its share of the device, any other result the whole device.
func AddAllocated(state *structured.AllocatedState, r *resourcev1.DeviceRequestAllocationResult, shares bool) {
	id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
	if !shares || r.ShareID == nil {
		state.AllocatedDevices.Insert(id)
		return
	}
	state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
	state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
}
