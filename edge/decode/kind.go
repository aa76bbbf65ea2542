package decode

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/berth-scheduler/berth/core/object"
)

// Kind describes a kind of API object that Berth reads.
type Kind struct {
	schema.GroupVersion
	Name       string // as manifests write it: PersistentVolumeClaim
	Resource   string // as paths of the API write it: persistentvolumeclaims
	Namespaced bool
	// New returns an empty object of the kind.
	New func() metav1.Object
	// Strict returns an empty value into which an object is decoded to find fields that are not
	// known or stand twice; nil if decoding into New's finds them.
	Strict func() any
	// object decodes an object of one of package object's kinds; nil for
	// others.
	object func(o any) object.Object
}

// Key is the kind in files: v1/Node, apps/v1/ReplicaSet.
func (k *Kind) Key() string { return k.GroupVersion.String() + "/" + k.Name }

// Kinds lists every kind that Berth reads. Pods come after the priority classes
// that they name. The watches, `berth simulate` on files and on a live cluster,
// and the stories follow the list.
var Kinds = []Kind{
	global[schedulingv1.PriorityClass](schedulingv1.SchemeGroupVersion, "PriorityClass", "priorityclasses"),
	global[v1.Node](v1.SchemeGroupVersion, "Node", "nodes"),
	global[v1.Namespace](v1.SchemeGroupVersion, "Namespace", "namespaces"),
	namespaced[v1.Pod](v1.SchemeGroupVersion, "Pod", "pods"),
	namespaced[policyv1.PodDisruptionBudget](policyv1.SchemeGroupVersion, "PodDisruptionBudget", "poddisruptionbudgets"),
	namespaced[v1.Service](v1.SchemeGroupVersion, "Service", "services"),
	namespaced[v1.ReplicationController](v1.SchemeGroupVersion, "ReplicationController", "replicationcontrollers"),
	namespaced[appsv1.ReplicaSet](appsv1.SchemeGroupVersion, "ReplicaSet", "replicasets"),
	namespaced[appsv1.StatefulSet](appsv1.SchemeGroupVersion, "StatefulSet", "statefulsets"),
	objects(object.PersistentVolumeClaims, claim),
	objects(object.PersistentVolumes, volume),
	objects(object.StorageClasses, storageClass),
	objects(object.CSINodes, csiNode),
	objects(object.CSIDrivers, csiDriver),
	objects(object.CSIStorageCapacities, storageCapacity),
	objects(object.VolumeAttachments, attachment),
	objects(object.ResourceClaims, resourceClaim),
	objects(object.ResourceSlices, func(s *resourcev1.ResourceSlice) *object.ResourceSlice {
		return &object.ResourceSlice{Meta: meta(object.ResourceSlices, &s.ObjectMeta), API: saneSlice(s)}
	}),
	objects(object.DeviceClasses, func(c *resourcev1.DeviceClass) *object.DeviceClass {
		return &object.DeviceClass{Meta: meta(object.DeviceClasses, &c.ObjectMeta), API: c}
	}),
	objects(object.DeviceTaintRules, deviceTaintRule),
	objects(object.PodGroups, podGroup),
	custom[strictQuota](object.ElasticQuotas, elasticQuota),
	custom[strictGroup](object.CoschedulingGroups, coschedulingGroup),
}

// byName and byType find a kind.
var (
	byName = map[string]*Kind{}
	byType = map[reflect.Type]*Kind{}
)

func init() {
	for i := range Kinds {
		k := &Kinds[i]
		name := k.Name
		if byName[name] != nil {
			name += "." + k.Group // as object.Kind has it
		}
		byName[name], byType[reflect.TypeOf(k.New())] = k, k
	}
}

// Named is the kind of that name, as object.Kind has it; nil for one that Berth does not
// read.
func Named(name string) *Kind { return byName[name] }

// Of is the kind of an API object, nil for one that Berth does not read.
func Of(o any) *Kind { return byType[reflect.TypeOf(o)] }

// Custom reports whether the kind is defined by a CustomResourceDefinition: an API server may
// not have it, and sends its objects as JSON alone.
func (k *Kind) Custom() bool { return k.Group == object.SchedulerPlugins }

// Scheme returns a scheme that knows the kind.
func (k *Kind) Scheme() *runtime.Scheme {
	if k.Custom() {
		return customScheme
	}
	return scheme.Scheme
}

// SchemeOf returns a scheme that knows the kinds of the version that Berth reads.
func SchemeOf(version schema.GroupVersion) *runtime.Scheme {
	for i := range Kinds {
		if Kinds[i].GroupVersion == version {
			return Kinds[i].Scheme()
		}
	}
	return scheme.Scheme
}

// Codecs returns the codecs of the kind's scheme.
func (k *Kind) Codecs() serializer.CodecFactory {
	if k.Custom() {
		return customCodecs
	}
	return scheme.Codecs
}

// HasObject tells whether the kind is one of package object's.
func (k *Kind) HasObject() bool { return k.object != nil }

// api is a pointer to an API object.
type api[T any] interface {
	*T
	metav1.Object
}

func global[T any, P api[T]](version schema.GroupVersion, name, resource string) Kind {
	return Kind{GroupVersion: version, Name: name, Resource: resource, New: func() metav1.Object { return P(new(T)) }}
}

func namespaced[T any, P api[T]](version schema.GroupVersion, name, resource string) Kind {
	k := global[T, P](version, name, resource)
	k.Namespaced = true
	return k
}

// objects describes one of package object's kinds.
func objects[T any, P api[T], O object.Object](kind object.Kind, decode func(P) O) Kind {
	k := global[T, P](kind.GroupVersion(), kind.ManifestName(), kind.Resource())
	k.Namespaced = kind.Namespaced()
	k.object = func(o any) object.Object { return decode(o.(P)) }
	return k
}

// custom describes one of package object's kinds whose decoding keeps what cannot be read. S has its
// fields.
func custom[S, T any, P api[T], O object.Object](kind object.Kind, decode func(P) O) Kind {
	k := objects(kind, decode)
	k.Strict = func() any { return new(S) }
	return k
}
