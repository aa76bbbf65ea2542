package object

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is a kind of API object that only some plugins read: volumes, devices
// and what belongs to them. Pods, nodes, namespaces, budgets and owners of
// selectors have types and events of their own.
type Kind uint8

// The kinds, by the names that the API has for them.
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
	// Kinds is how many there are.
	Kinds

	// Pods is for writes of a pod's status alone.
	Pods = Kinds
)

// kinds describes each kind as the API does.
var kinds = [Kinds + 1]struct {
	name, group, resource string
	namespaced            bool
}{
	PersistentVolumeClaims: {"PersistentVolumeClaim", "", "persistentvolumeclaims", true},
	PersistentVolumes:      {"PersistentVolume", "", "persistentvolumes", false},
	StorageClasses:         {"StorageClass", "storage.k8s.io", "storageclasses", false},
	CSINodes:               {"CSINode", "storage.k8s.io", "csinodes", false},
	CSIDrivers:             {"CSIDriver", "storage.k8s.io", "csidrivers", false},
	CSIStorageCapacities:   {"CSIStorageCapacity", "storage.k8s.io", "csistoragecapacities", true},
	VolumeAttachments:      {"VolumeAttachment", "storage.k8s.io", "volumeattachments", false},
	ResourceClaims:         {"ResourceClaim", "resource.k8s.io", "resourceclaims", true},
	ResourceSlices:         {"ResourceSlice", "resource.k8s.io", "resourceslices", false},
	DeviceClasses:          {"DeviceClass", "resource.k8s.io", "deviceclasses", false},
	DeviceTaintRules:       {"DeviceTaintRule", "resource.k8s.io", "devicetaintrules", false},
	Pods:                   {"Pod", "", "pods", true},
}

// String is the kind as manifests write it: PersistentVolumeClaim.
func (k Kind) String() string { return kinds[k].name }

// Group is the API group, "" for the core group.
func (k Kind) Group() string { return kinds[k].group }

// Version is the version of the group that is read.
func (k Kind) Version() string {
	if k == DeviceTaintRules {
		return "v1beta2"
	}
	return "v1"
}

// Resource is the kind as paths of the API write it: persistentvolumeclaims.
func (k Kind) Resource() string { return kinds[k].resource }

// Namespaced tells whether objects of the kind live in namespaces.
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

// API is an object as the API takes it: of k8s.io/api, with its kind written
// into it.
type API interface {
	metav1.Object
	runtime.Object
}

// Indexed is an Object that the table also lists under a key (Table.ByIndex).
type Indexed interface {
	Object
	IndexKey() string
}

// Meta is what all objects have. A kind's type embeds it.
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

// Key is namespace/name, or the name alone.
func (m *Meta) Key() string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}
