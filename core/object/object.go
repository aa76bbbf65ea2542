package object

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is a kind of API object that only some plugins read: volumes, devices and what
// belongs to them, pod groups. Pods, nodes, namespaces, budgets, Services and controllers
// have types and events of their own.
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
	ElasticQuotas
	CoschedulingGroups // the PodGroups of sigs.k8s.io/scheduler-plugins
	// Kinds is the number of kinds.
	Kinds

	// Pods is used only in writes of a pod's status; no Object has this kind.
	Pods = Kinds
)

// kinds are the API's names of each kind. Of two kinds with one name in manifests, the name of the
// later one includes the group, as in PodGroup.scheduling.x-k8s.io.
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
	DeviceTaintRules:       {"DeviceTaintRule", "resource.k8s.io", "v1", "devicetaintrules", false},
	PodGroups:              {"PodGroup", "scheduling.k8s.io", "v1beta1", "podgroups", true},
	ElasticQuotas:          {"ElasticQuota", "scheduling.x-k8s.io", "v1alpha1", "elasticquotas", true},
	CoschedulingGroups:     {"PodGroup." + SchedulerPlugins, SchedulerPlugins, "v1alpha1", "podgroups", true},
	Pods:                   {"Pod", "", "v1", "pods", true},
}

// String returns the name of the kind, which no other kind has: the one in manifests, such as
// PersistentVolumeClaim, or PodGroup.scheduling.x-k8s.io.
func (k Kind) String() string { return kinds[k].name }

// ManifestName returns the name of the kind in manifests, such as PodGroup. PodGroups and
// CoschedulingGroups share it.
func (k Kind) ManifestName() string {
	name, _, _ := strings.Cut(kinds[k].name, ".")
	return name
}

// GroupVersion returns the API group, "" for the core group, and the version that Berth
// reads.
func (k Kind) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: kinds[k].group, Version: kinds[k].version}
}

// EventResource returns kube-scheduler's name of the kind in events for plugins, with the group
// unless that is the core group: storage.k8s.io/CSINode.
func (k Kind) EventResource() string {
	if kinds[k].group == "" {
		return k.ManifestName()
	}
	return kinds[k].group + "/" + k.ManifestName()
}

// Resource returns the kind as in paths of the API: persistentvolumeclaims.
func (k Kind) Resource() string { return kinds[k].resource }

// Namespaced reports whether objects of the kind belong to namespaces.
func (k Kind) Namespaced() bool { return kinds[k].namespaced }

// KindOf returns the kind with that name (Kind.String), such as PersistentVolume; false if
// the scheduler reads no such kind.
func KindOf(name string) (Kind, bool) {
	for k := range Kinds {
		if kinds[k].name == name {
			return k, true
		}
	}
	return 0, false
}

// KindNames returns the names of all kinds (Kind.String), in their order.
func KindNames() []string {
	names := make([]string, Kinds)
	for k := range Kinds {
		names[k] = kinds[k].name
	}
	return names
}

// Object is an object of one of the kinds: a struct that embeds Meta. Immutable.
// Head returns the object's metadata, never nil. Read only.
type Object interface{ Head() *Meta }

// API is an object in its API form: a type of k8s.io/api, with its kind set.
type API interface {
	metav1.Object
	runtime.Object
}

// Indexed is an Object that the table also lists under a key, such as the node's name
// (table.Objects.ByIndex).
type Indexed interface {
	Object
	// IndexKey returns the key. An assumed state of an object has the key of the shown one.
	IndexKey() string
}

// Meta is the metadata of an object of one of the Kinds; the struct of each kind embeds
// it.
type Meta struct {
	Kind      Kind
	Namespace string // "" for kinds that have none
	Name      string
	UID       types.UID
	Version   string // metadata.resourceVersion
	// Recorded is the API object in the form in which a record of the scheduler's inputs
	// holds it (edge/recording); "" unless a record is kept.
	Recorded string
}

// Head returns the object's metadata.
func (m *Meta) Head() *Meta { return m }

// Key returns namespace/name, or the name for an object without a namespace.
func (m *Meta) Key() string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}
