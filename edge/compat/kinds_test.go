package compat

import (
	"testing"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/object"
)

// Every resource that plugins can name without a version is known, and the kinds
// have plugins' names for them.
func TestResourcesHavePluginsNames(t *testing.T) {
	for resource, kind := range map[fwk.EventResource]object.Kind{
		fwk.PersistentVolume: object.PersistentVolumes, fwk.PersistentVolumeClaim: object.PersistentVolumeClaims,
		fwk.CSINode: object.CSINodes, fwk.CSIDriver: object.CSIDrivers, fwk.CSIStorageCapacity: object.CSIStorageCapacities,
		fwk.VolumeAttachment: object.VolumeAttachments, fwk.StorageClass: object.StorageClasses,
		fwk.ResourceClaim: object.ResourceClaims, fwk.ResourceSlice: object.ResourceSlices, fwk.DeviceClass: object.DeviceClasses,
		fwk.PodGroup: object.PodGroups,
	} {
		if got, ok := kinds[resource]; !ok || got != kind {
			t.Errorf("%s is %s (%v), want %s", resource, got, ok, kind)
		}
		if gvr, ok := builtin(resource); !ok || gvr.Resource != kind.Resource() {
			t.Errorf("%s is found at %v (%v)", resource, gvr, ok)
		}
	}
	if gvr, ok := builtin("DeviceTaintRule"); ok {
		t.Errorf("plugins have no name for device taint rules, and they are found at %v", gvr)
	}
}
