package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/api/v1beta1"
	"k8s.io/dynamic-resource-allocation/api/v1beta2"
)

// deviceVersions are the versions of resource.k8s.io that can be read, in the
// order in which they are tried: an API server may serve an older one only.
var deviceVersions = [...]string{"v1", "v1beta2", "v1beta1"}

// deviceVersion is the index of the version that the API server serves.
type deviceVersion struct{ atomic.Int32 }

// of returns the request directed to the version of resource.k8s.io that is served.
func (v *deviceVersion) of(r *rest.Request) *rest.Request { return in(v.Load(), r) }

// in returns the request directed to resource.k8s.io in deviceVersions[version].
func in(version int32, r *rest.Request) *rest.Request {
	return r.AbsPath("/apis", resourcev1.GroupName, deviceVersions[version])
}

// listWatch returns a ListWatch of a resource of resource.k8s.io, in the version that is
// served, whose objects are converted to v1. A list that is not found tries the other
// versions and records the one that is served. A list that is forbidden is not found if no
// version has the resource: the roles of an older API server do not name it then.
func (v *deviceVersion) listWatch(client rest.Interface, resource string) *cache.ListWatch {
	list := func(ctx context.Context, version int32, o metav1.ListOptions) (runtime.Object, error) {
		return in(version, client.Get()).Resource(resource).VersionedParams(&o, metav1.ParameterCodec).Do(ctx).Get()
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			version, versions := v.Load(), int32(len(deviceVersions))
			objects, err := list(ctx, version, o)
			for range versions - 1 {
				if !apierrors.IsNotFound(err) {
					break
				}
				version = (version + 1) % versions
				objects, err = list(ctx, version, o)
			}
			if apierrors.IsForbidden(err) && !mayBeServed(ctx, client, resource) {
				err = apierrors.NewNotFound(resourcev1.Resource(resource), "")
			}
			if err != nil {
				return nil, err
			}
			v.Store(version)
			return toV1(objects)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch = true
			older := v.Load() > 0
			w, err := v.of(client.Get()).Resource(resource).VersionedParams(&o, metav1.ParameterCodec).Watch(ctx)
			if err != nil || !older {
				return w, err
			}
			return newRelay(w, eventToV1), nil
		},
	}
}

// mayBeServed reports whether a version of resource.k8s.io that can be read has the resource,
// as far as discovery says.
func mayBeServed(ctx context.Context, client rest.Interface, resource string) bool {
	for i := range deviceVersions {
		body, err := in(int32(i), client.Get()).SetHeader("Accept", runtime.ContentTypeJSON).DoRaw(ctx)
		if apierrors.IsNotFound(err) {
			continue
		}
		var version metav1.APIResourceList
		if err != nil || json.Unmarshal(body, &version) != nil || version.Kind != "APIResourceList" {
			return true
		}
		if slices.ContainsFunc(version.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
			return true
		}
	}
	return false
}

// eventToV1 converts the object of a watch event to v1. An object that cannot be converted
// becomes an error event.
func eventToV1(e watch.Event) watch.Event {
	object, err := toV1(e.Object)
	if e.Object = object; err != nil {
		e = watch.Event{Type: watch.Error, Object: &apierrors.NewInternalError(err).ErrStatus}
	}
	return e
}

// deviceConversions convert between the versions of resource.k8s.io.
var deviceConversions = runtime.NewScheme()

// init registers the conversions of the beta versions.
func init() {
	utilruntime.Must(v1beta1.AddToScheme(deviceConversions))
	utilruntime.Must(v1beta2.AddToScheme(deviceConversions))
}

// body sets o, an object of v1 to be created, as the request's body, converted to the
// version that is served.
func (v *deviceVersion) body(r *rest.Request, o runtime.Object) (*rest.Request, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil || kinds[0].Group != resourcev1.GroupName || v.Load() == 0 {
		return r.Body(o), nil
	}
	older := kinds[0].GroupKind().WithVersion(deviceVersions[v.Load()])
	converted, err := scheme.Scheme.New(older)
	if err == nil {
		err = deviceConversions.Convert(o, converted, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", older, err)
	}
	converted.GetObjectKind().SetGroupVersionKind(older) // the client would write its own
	text, err := json.Marshal(converted)
	return r.SetHeader("Content-Type", runtime.ContentTypeJSON).Body(text), err
}

// into fills o, an object of v1, from a reply in the version that is served.
func (v *deviceVersion) into(o runtime.Object, r rest.Result) error {
	if v.Load() == 0 {
		return r.Into(o)
	}
	older, err := r.Get()
	if err != nil {
		return err
	}
	return deviceConversions.Convert(older, o, nil)
}

// toV1 converts an object or a list of resource.k8s.io to v1. It returns other objects,
// such as a Status, unchanged.
func toV1(object runtime.Object) (runtime.Object, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil || kinds[0].Group != resourcev1.GroupName || kinds[0].Version == resourcev1.SchemeGroupVersion.Version {
		return object, nil
	}
	converted, err := scheme.Scheme.New(resourcev1.SchemeGroupVersion.WithKind(kinds[0].Kind))
	if err != nil {
		return nil, err
	}
	if err := deviceConversions.Convert(object, converted, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", kinds[0], err)
	}
	return converted, nil
}
