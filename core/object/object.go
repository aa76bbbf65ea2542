package object

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Kind is a kind of API object that only some plugins read: volumes,
// devices and what belongs to them. Pods, nodes, namespaces, budgets and families have ways of
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
)

// String is the kind as manifests write it: PersistentVolumeClaim.
func (k Kind) String() string { return kindNames[k] }

var kindNames = [Kinds]string{
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
}

// KindOf finds the kind that manifests write so.
func KindOf(name string) (Kind, bool) {
	i := slices.Index(kindNames[:], name)
	return Kind(max(i, 0)), i >= 0
}

// KindNames lists the kinds as manifests write them.
func KindNames() []string { return slices.Clone(kindNames[:]) }

// Namespaced tells whether objects of the kind live in namespaces.
func (k Kind) Namespaced() bool {
	return k == PersistentVolumeClaims || k == CSIStorageCapacities || k == ResourceClaims
}

// Object is a value of one of the kinds. Immutable.
type Object interface{ Head() *Meta }

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
