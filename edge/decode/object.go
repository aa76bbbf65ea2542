package decode

import (
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// Object decodes an object of one of object's kinds; nil for any other.
func Object(o any) object.Object {
	switch o := o.(type) {
	case *v1.PersistentVolumeClaim:
		return claim(o)
	case *v1.PersistentVolume:
		return volume(o)
	case *storagev1.StorageClass:
		return storageClass(o)
	case *storagev1.CSINode:
		return csiNode(o)
	case *storagev1.CSIDriver:
		return csiDriver(o)
	case *storagev1.CSIStorageCapacity:
		return storageCapacity(o)
	case *storagev1.VolumeAttachment:
		return attachment(o)
	case *resourcev1.ResourceClaim:
		return resourceClaim(o)
	case *resourcev1.ResourceSlice:
		return &object.ResourceSlice{Meta: meta(object.ResourceSlices, &o.ObjectMeta), API: saneSlice(o)}
	case *resourcev1.DeviceClass:
		return &object.DeviceClass{Meta: meta(object.DeviceClasses, &o.ObjectMeta), API: o}
	}
	return nil
}

// Empty returns a new API object of a kind, for a decoder to fill.
func Empty(kind object.Kind) metav1.Object {
	switch kind {
	case object.PersistentVolumeClaims:
		return &v1.PersistentVolumeClaim{}
	case object.PersistentVolumes:
		return &v1.PersistentVolume{}
	case object.StorageClasses:
		return &storagev1.StorageClass{}
	case object.CSINodes:
		return &storagev1.CSINode{}
	case object.CSIDrivers:
		return &storagev1.CSIDriver{}
	case object.CSIStorageCapacities:
		return &storagev1.CSIStorageCapacity{}
	case object.VolumeAttachments:
		return &storagev1.VolumeAttachment{}
	case object.ResourceClaims:
		return &resourcev1.ResourceClaim{}
	case object.ResourceSlices:
		return &resourcev1.ResourceSlice{}
	case object.DeviceClasses:
		return &resourcev1.DeviceClass{}
	case object.Pods:
		return &v1.Pod{}
	}
	return nil
}

func meta(kind object.Kind, m *metav1.ObjectMeta) object.Meta {
	return object.Meta{Kind: kind, Namespace: m.Namespace, Name: m.Name, UID: m.UID, Version: m.ResourceVersion}
}
