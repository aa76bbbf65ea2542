package apiserver

import (
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/berth-scheduler/berth/edge/decode"
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

// served is a scheme of all kinds that the server has.
var served = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		panic(err) // client-go's own kinds
	}
	metav1.AddToGroupVersion(s, v1.SchemeGroupVersion)
	decode.AddCustomToScheme(s)
	return s
}()

var codecs = serializer.NewCodecFactory(served)

// kinds are the kinds that there are: those that a scheduler reads, and those that
// it writes and does not read.
var kinds = func() []kind {
	list := []kind{
		{v1.SchemeGroupVersion.WithResource("events"), "Event", false},
		{eventsv1.SchemeGroupVersion.WithResource("events"), "Event", false},
		{coordinationv1.SchemeGroupVersion.WithResource("leases"), "Lease", false},
	}
	for i := range decode.Kinds {
		k := &decode.Kinds[i]
		list = append(list, kind{k.WithResource(k.Resource), k.Name, !k.Namespaced})
	}
	return list
}()

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
