package object

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is a kind of API object that only some plugins read: volumes, devices and
// what belongs to them, pod groups. Pods, nodes, namespaces, budgets and owners of
// selectors have types and events of their own.
type Kind uint8

// The kinds, by the names that the API has for them. A record numbers them in
// this order: a new kind comes last.
const (
	PersistentVolumeClaims Kind = iota
	PersistentVolumes
	StorageClasses
	CSINodes
	CSIDrivers
	CSIStorageCapacities
	VolumeAttachments
	ResourceClaims
	ResourceSlices
	DeviceClasses
	DeviceTaintRules
	PodGroups
	// Kinds is how many there are.
	Kinds

	// Pods is for writes of a pod's status alone.
	Pods = Kinds
)

// kinds describes each kind as the API does.
var kinds = [Kinds + 1]struct {
	name, group, version, resource string
	namespaced                     bool
}{
	PersistentVolumeClaims: {"PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", true},
	PersistentVolumes:      {"PersistentVolume", "", "v1", "persistentvolumes", false},
	StorageClasses:         {"StorageClass", "storage.k8s.io", "v1", "storageclasses", false},
	CSINodes:               {"CSINode", "storage.k8s.io", "v1", "csinodes", false},
	CSIDrivers:             {"CSIDriver", "storage.k8s.io", "v1", "csidrivers", false},
	CSIStorageCapacities:   {"CSIStorageCapacity", "storage.k8s.io", "v1", "csistoragecapacities", true},
	VolumeAttachments:      {"VolumeAttachment", "storage.k8s.io", "v1", "volumeattachments", false},
	ResourceClaims:         {"ResourceClaim", "resource.k8s.io", "v1", "resourceclaims", true},
	ResourceSlices:         {"ResourceSlice", "resource.k8s.io", "v1", "resourceslices", false},
	DeviceClasses:          {"DeviceClass", "resource.k8s.io", "v1", "deviceclasses", false},
	DeviceTaintRules:       {"DeviceTaintRule", "resource.k8s.io", "v1beta2", "devicetaintrules", false},
	PodGroups:              {"PodGroup", "scheduling.k8s.io", "v1alpha2", "podgroups", true},
	Pods:                   {"Pod", "", "v1", "pods", true},
}

// String returns the kind as manifests write it: PersistentVolumeClaim.
func (k Kind) String() string { return kinds[k].name }

// GroupVersion returns the API group, "" for the core group, and the version that is
// read.
func (k Kind) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: kinds[k].group, Version: kinds[k].version}
}

// EventResource returns the kind as kube-scheduler calls it in events for plugins:
// storage.k8s.io/CSINode.
func (k Kind) EventResource() string {
	if kinds[k].group == "" {
		return kinds[k].name
	}
	return kinds[k].group + "/" + kinds[k].name
}

// Resource returns the kind as paths of the API write it: persistentvolumeclaims.
func (k Kind) Resource() string { return kinds[k].resource }

// Namespaced reports whether objects of the kind belong to namespaces.
func (k Kind) Namespaced() bool { return kinds[k].namespaced }

// KindOf finds the kind that manifests write so.
func KindOf(name string) (Kind, bool) {
	for k := range Kinds {
		if kinds[k].name == name {
			return k, true
		}
	}
	return 0, false
}

// KindNames lists the kinds as manifests write them.
func KindNames() []string {
	names := make([]string, Kinds)
	for k := range Kinds {
		names[k] = kinds[k].name
	}
	return names
}

// Object is a value of one of the kinds. Immutable.
type Object interface{ Head() *Meta }

// API is an object in the form of the API: a type of k8s.io/api, with its kind set.
type API interface {
	metav1.Object
	runtime.Object
}

// Indexed is an Object that the table also lists under a key (Table.ByIndex).
type Indexed interface {
	Object
	IndexKey() string
}

// Meta holds what all objects have. A kind's type embeds it.
type Meta struct {
	Kind      Kind
	Namespace string // "" for kinds that have none
	Name      string
	UID       types.UID
	Version   string // metadata.resourceVersion
	// Recorded is as a Pod's.
	Recorded string
}

// Head returns the object's metadata.
func (m *Meta) Head() *Meta { return m }

// Key returns namespace/name, or the name alone.
func (m *Meta) Key() string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}
