package object

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is a kind of API object that only some plugins read: volumes,
// devices and what belongs to them. Pods, nodes, namespaces, budgets and owners of selectors have ways of
// their own.
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
	// Kinds is how many there are.
	Kinds

	// Pods is for writes of a pod's status alone.
	Pods = Kinds
)

// String is the kind as manifests write it: PersistentVolumeClaim.
func (k Kind) String() string { return kindNames[k] }

var kindNames = [Kinds + 1]string{
	PersistentVolumeClaims: "PersistentVolumeClaim",
	PersistentVolumes:      "PersistentVolume",
	StorageClasses:         "StorageClass",
	CSINodes:               "CSINode",
	CSIDrivers:             "CSIDriver",
	CSIStorageCapacities:   "CSIStorageCapacity",
	VolumeAttachments:      "VolumeAttachment",
	ResourceClaims:         "ResourceClaim",
	ResourceSlices:         "ResourceSlice",
	DeviceClasses:          "DeviceClass",
	Pods:                   "Pod",
}

// KindOf finds the kind that manifests write so.
func KindOf(name string) (Kind, bool) {
	i := slices.Index(kindNames[:Kinds], name)
	return Kind(max(i, 0)), i >= 0
}

// KindNames lists the kinds as manifests write them.
func KindNames() []string { return slices.Clone(kindNames[:Kinds]) }

// Namespaced tells whether objects of the kind live in namespaces.
func (k Kind) Namespaced() bool {
	return k == PersistentVolumeClaims || k == CSIStorageCapacities || k == ResourceClaims || k == Pods
}

// Object is a value of one of the kinds. Immutable.
type Object interface{ Head() *Meta }

// API is an object as the API takes it: of k8s.io/api, with its kind written
// into it.
type API interface {
	metav1.Object
	runtime.Object
}

// Grouped is an Object that the table also lists under a group of its kind.
type Grouped interface {
	Object
	Group() string
}

// Meta is what all objects have. A kind's type embeds it.
type Meta struct {
	Kind      Kind
	Namespace string // "" for kinds that have none
	Name      string
	UID       types.UID
	Version   string // metadata.resourceVersion
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
