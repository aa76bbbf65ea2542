package apiserver

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is one kind of objects that the server has.
type kind struct {
	resource  schema.GroupVersionResource
	kind      string
	clustered bool // without a namespace
}

func (k *kind) gvk() schema.GroupVersionKind { return k.resource.GroupVersion().WithKind(k.kind) }

// key names the kind: pods, leases.coordination.k8s.io.
func (k *kind) key() string { return k.resource.GroupResource().String() }

// kinds are the kinds that there are.
var kinds = []kind{
	{v1.SchemeGroupVersion.WithResource("pods"), "Pod", false},
	{v1.SchemeGroupVersion.WithResource("nodes"), "Node", true},
	{v1.SchemeGroupVersion.WithResource("namespaces"), "Namespace", true},
	{v1.SchemeGroupVersion.WithResource("services"), "Service", false},
	{v1.SchemeGroupVersion.WithResource("replicationcontrollers"), "ReplicationController", false},
	{v1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), "PersistentVolumeClaim", false},
	{v1.SchemeGroupVersion.WithResource("persistentvolumes"), "PersistentVolume", true},
	{v1.SchemeGroupVersion.WithResource("events"), "Event", false},
	{eventsv1.SchemeGroupVersion.WithResource("events"), "Event", false},
	{appsv1.SchemeGroupVersion.WithResource("replicasets"), "ReplicaSet", false},
	{appsv1.SchemeGroupVersion.WithResource("statefulsets"), "StatefulSet", false},
	{policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), "PodDisruptionBudget", false},
	{storagev1.SchemeGroupVersion.WithResource("storageclasses"), "StorageClass", true},
	{storagev1.SchemeGroupVersion.WithResource("csinodes"), "CSINode", true},
	{storagev1.SchemeGroupVersion.WithResource("csidrivers"), "CSIDriver", true},
	{storagev1.SchemeGroupVersion.WithResource("csistoragecapacities"), "CSIStorageCapacity", false},
	{storagev1.SchemeGroupVersion.WithResource("volumeattachments"), "VolumeAttachment", true},
	{resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), "ResourceClaim", false},
	{resourcev1.SchemeGroupVersion.WithResource("resourceslices"), "ResourceSlice", true},
	{resourcev1.SchemeGroupVersion.WithResource("deviceclasses"), "DeviceClass", true},
	{resourcev1beta2.SchemeGroupVersion.WithResource("devicetaintrules"), "DeviceTaintRule", true},
	{coordinationv1.SchemeGroupVersion.WithResource("leases"), "Lease", false},
}

// byResource and byType find a kind.
var (
	byResource = map[schema.GroupVersionResource]*kind{}
	byType     = map[schema.GroupVersionKind]*kind{}
)

func init() {
	for i := range kinds {
		byResource[kinds[i].resource] = &kinds[i]
		byType[kinds[i].gvk()] = &kinds[i]
	}
}

// target is what the path of a request names.
type target struct {
	kind                         *kind
	namespace, name, subresource string
}

// parse reads a path such as /api/v1/namespaces/ns/pods/p/status. It is false
// for one that names nothing that there is.
func parse(path string) (target, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var version schema.GroupVersion
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		version, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		version, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return target{}, false
	}
	var t target
	if len(parts) >= 3 && parts[0] == "namespaces" {
		t.namespace, parts = parts[1], parts[2:]
	}
	if t.kind = byResource[version.WithResource(parts[0])]; t.kind == nil || len(parts) > 3 {
		return target{}, false
	}
	if len(parts) > 1 {
		t.name = parts[1]
	}
	if len(parts) > 2 {
		t.subresource = parts[2]
	}
	return t, true
}

// kindOf returns the kind of an object of one of the known types.
func kindOf(o runtime.Object) *kind {
	for _, gvk := range typesOf(o) {
		if k := byType[gvk]; k != nil {
			return k
		}
	}
	return nil
}
