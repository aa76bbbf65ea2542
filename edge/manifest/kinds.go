package manifest

import (
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kind is a kind of object that the simulation knows.
type kind struct {
	namespaced bool
	empty      func() metav1.Object
}

func namespaced[T any, P interface {
	*T
	metav1.Object
}]() kind {
	return kind{true, func() metav1.Object { return P(new(T)) }}
}

func global[T any, P interface {
	*T
	metav1.Object
}]() kind {
	return kind{false, func() metav1.Object { return P(new(T)) }}
}

// kinds by apiVersion/kind. Every other kind is counted and left alone.
var kinds = map[string]kind{
	"v1/Node":                                  global[v1.Node](),
	"v1/Pod":                                   namespaced[v1.Pod](),
	"v1/Namespace":                             global[v1.Namespace](),
	"v1/PersistentVolume":                      global[v1.PersistentVolume](),
	"v1/PersistentVolumeClaim":                 namespaced[v1.PersistentVolumeClaim](),
	"v1/Service":                               namespaced[v1.Service](),
	"v1/ReplicationController":                 namespaced[v1.ReplicationController](),
	"apps/v1/ReplicaSet":                       namespaced[appsv1.ReplicaSet](),
	"apps/v1/StatefulSet":                      namespaced[appsv1.StatefulSet](),
	"policy/v1/PodDisruptionBudget":            namespaced[policyv1.PodDisruptionBudget](),
	"scheduling.k8s.io/v1/PriorityClass":       global[schedulingv1.PriorityClass](),
	"storage.k8s.io/v1/StorageClass":           global[storagev1.StorageClass](),
	"storage.k8s.io/v1/CSINode":                global[storagev1.CSINode](),
	"storage.k8s.io/v1/CSIDriver":              global[storagev1.CSIDriver](),
	"storage.k8s.io/v1/CSIStorageCapacity":     namespaced[storagev1.CSIStorageCapacity](),
	"storage.k8s.io/v1/VolumeAttachment":       global[storagev1.VolumeAttachment](),
	"resource.k8s.io/v1/DeviceClass":           global[resourcev1.DeviceClass](),
	"resource.k8s.io/v1/ResourceSlice":         global[resourcev1.ResourceSlice](),
	"resource.k8s.io/v1/ResourceClaim":         namespaced[resourcev1.ResourceClaim](),
	"resource.k8s.io/v1/ResourceClaimTemplate": namespaced[resourcev1.ResourceClaimTemplate](),
}

// makesPods holds the kinds, by apiVersion/kind, of which people may expect
// that their pods are placed.
var makesPods = map[string]bool{
	"v1/ReplicationController": true,
	"apps/v1/Deployment":       true,
	"apps/v1/ReplicaSet":       true,
	"apps/v1/StatefulSet":      true,
	"apps/v1/DaemonSet":        true,
	"batch/v1/Job":             true,
	"batch/v1/CronJob":         true,
}
