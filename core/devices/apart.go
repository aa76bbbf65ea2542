package devices

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Apart returns the offer with a name of its own for each pool whose name a pool of another
// driver has, too, if both have counters: up to v0.36.3 the allocator keeps counters by the
// name of the pool alone. Original is the pools' names by the new ones, nil if none is new.
func (o *Offer) Apart() (apart *Offer, original map[string]string) {
	ambiguous := o.ambiguousPools()
	if ambiguous == nil {
		return o, nil
	}
	original = map[string]string{}
	rename := func(driver, pool string) string {
		if !ambiguous.Has(pool) {
			return pool
		}
		name := pool + "@" + driver // no valid name of a pool has an @
		original[name] = pool
		return name
	}
	apart = newOffer()
	for _, s := range o.Slices {
		if ambiguous.Has(s.Spec.Pool.Name) {
			renamed := *s
			renamed.Spec.Pool.Name = rename(s.Spec.Driver, s.Spec.Pool.Name)
			s = &renamed
		}
		apart.Slices = append(apart.Slices, s)
	}
	renameID := func(id structured.DeviceID) structured.DeviceID {
		return structured.MakeDeviceID(id.Driver.String(), rename(id.Driver.String(), id.Pool.String()), id.Device.String())
	}
	for id := range o.Taken.AllocatedDevices { // any order: into a set
		apart.Taken.AllocatedDevices.Insert(renameID(id))
	}
	for id := range o.Taken.AllocatedSharedDeviceIDs { // any order: into a set
		share := types.UID(id.ShareID.String())
		apart.Taken.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(renameID(id.GetDeviceID()), &share))
	}
	for id, capacity := range o.Taken.AggregatedCapacity { // any order: into a map, of other devices
		apart.Taken.AggregatedCapacity[renameID(id)] = capacity
	}
	return apart, original
}

// ambiguousPools returns the names that pools of several drivers have which have counters.
func (o *Offer) ambiguousPools() (names sets.Set[string]) {
	var drivers map[string]string // by the pool's name
	for _, s := range o.Slices {
		if len(s.Spec.SharedCounters) == 0 {
			continue
		}
		if drivers == nil {
			drivers = map[string]string{}
		}
		if driver, known := drivers[s.Spec.Pool.Name]; !known {
			drivers[s.Spec.Pool.Name] = s.Spec.Driver
		} else if driver != s.Spec.Driver {
			if names == nil {
				names = sets.New[string]()
			}
			names.Insert(s.Spec.Pool.Name)
		}
	}
	return names
}

// Restore replaces the pool names in the results by the original ones, which Apart
// returned.
func Restore(results []resourcev1.AllocationResult, original map[string]string) {
	for i := range results {
		devices := results[i].Devices.Results
		for j := range devices {
			if name, renamed := original[devices[j].Pool]; renamed {
				devices[j].Pool = name
			}
		}
	}
}
