package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1api "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	policyv1 "k8s.io/client-go/kubernetes/typed/policy/v1"
	resourcev1 "k8s.io/client-go/kubernetes/typed/resource/v1"
	schedulingv1beta1 "k8s.io/client-go/kubernetes/typed/scheduling/v1beta1"
	storagev1 "k8s.io/client-go/kubernetes/typed/storage/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/fence"
)

// Clients are the connections to the API server, one for each kind of work. As
// in kube-scheduler, all of them share one budget of requests (QPS and burst),
// and the creation of Events has another one of that size.
type Clients struct {
	Watch  rest.Interface // lists and watches the core group: pods, nodes, ...
	Policy rest.Interface // lists and watches PodDisruptionBudgets
	Apps   rest.Interface // lists and watches ReplicaSets and StatefulSets
	// Storage lists and watches storage.k8s.io.
	Storage rest.Interface
	// Volumes patches PersistentVolumeClaims and PersistentVolumes.
	Volumes rest.Interface
	// Devices lists and watches resource.k8s.io, Claims writes ResourceClaims.
	Devices, Claims rest.Interface
	// devices is the version of resource.k8s.io that Devices and Claims use, but for
	// DeviceTaintRules: an API server may serve them in another one, taintRules.
	devices, taintRules deviceVersion
	// Groups lists and watches Kubernetes' PodGroups, GroupStatus patches their status.
	Groups, GroupStatus rest.Interface
	// Custom lists and watches scheduling.x-k8s.io, CustomStatus patches the status of its
	// objects.
	Custom, CustomStatus rest.Interface
	objects              metadata.Interface // lists the metadata of any kind

	// Read gets single pods, to learn what became of a binding or an eviction. It works
	// without the lease too.
	Read   rest.Interface
	Bind   rest.Interface // marks and deletes the victims of a preemption
	Status rest.Interface // patches the status of pods

	Bindings *Poster        // creates bindings
	Events   *Poster        // creates Events of events.k8s.io
	Series   rest.Interface // patches the series of such Events

	protobuf bool // the configuration prefers answers in protobuf

	held func() bool // reports whether this process holds the leader lease
}

// NewClients returns clients of the API server of config, which also sets the rate of requests
// (QPS, Burst; a negative QPS is no limit). It sends nothing and does not change config. held
// is called before each request that writes; the request is not sent if it returns false.
func NewClients(config *rest.Config, held func() bool) (*Clients, error) {
	announcing := throttled(config)
	config = throttled(config)
	var errs []error
	core := func(fenced bool) rest.Interface {
		c, err := corev1.NewForConfig(separate(config, fenced, held))
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		return c.RESTClient()
	}
	clients := &Clients{Watch: core(false), Bind: core(true), Status: core(true), Volumes: core(true), held: held,
		protobuf: strings.HasPrefix(cmp.Or(config.AcceptContentTypes, config.ContentType), runtime.ContentTypeProtobuf)}
	read, err := corev1.NewForConfig(separate(config, true, func() bool { return true }))
	if err != nil {
		errs = append(errs, err)
	} else {
		clients.Read = read.RESTClient()
	}
	if clients.Bindings, err = newPoster(separate(config, true, held), "/api", v1.SchemeGroupVersion); err != nil {
		errs = append(errs, err)
	}
	if clients.Events, err = newPoster(separate(announcing, true, held), "/apis", eventsv1.SchemeGroupVersion); err != nil {
		errs = append(errs, err)
	}
	series, err := eventsclient.NewForConfig(separate(config, true, held))
	if err != nil {
		errs = append(errs, err)
	} else {
		clients.Series = series.RESTClient()
	}
	policy, err := policyv1.NewForConfig(separate(config, false, nil))
	if err != nil {
		errs = append(errs, err)
	} else {
		clients.Policy = policy.RESTClient()
	}
	apps, err := appsv1.NewForConfig(separate(config, false, nil))
	if err != nil {
		errs = append(errs, err)
	} else {
		clients.Apps = apps.RESTClient()
	}
	storage, err := storagev1.NewForConfig(separate(config, false, nil))
	if err != nil {
		errs = append(errs, err)
	} else {
		clients.Storage = storage.RESTClient()
	}
	devices := func(fenced bool) rest.Interface {
		c, err := resourcev1.NewForConfig(separate(config, fenced, held))
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		return c.RESTClient()
	}
	clients.Devices, clients.Claims = devices(false), devices(true)
	groups := func(fenced bool) rest.Interface {
		c, err := schedulingv1beta1.NewForConfig(separate(config, fenced, held))
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		return c.RESTClient()
	}
	clients.Groups, clients.GroupStatus = groups(false), groups(true)
	custom := func(fenced bool) rest.Interface {
		c, err := customClient(separate(config, fenced, held), object.ElasticQuotas)
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		return c
	}
	clients.Custom, clients.CustomStatus = custom(false), custom(true)
	if clients.objects, err = metadata.NewForConfig(separate(config, false, nil)); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("API server %s: %w", config.Host, errors.Join(errs...))
	}
	return clients, nil
}

// customClient returns a client for custom resources of the kind, which an API server sends
// as JSON alone. It changes config.
func customClient(config *rest.Config, kind object.Kind) (rest.Interface, error) {
	k := decode.Named(kind.String())
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &k.GroupVersion, "/apis", k.Codecs().WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	return rest.RESTClientFor(config)
}

// metadata reads a page of the metadata of all objects of a resource, as o says. For
// resource.k8s.io it takes the version that the API server serves instead of v1.
func (c *Clients) metadata(ctx context.Context, of schema.GroupVersionResource, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if of.GroupVersion() == resourcev1api.SchemeGroupVersion {
		of.Version = deviceVersions[c.versionOf(of.Resource).Load()]
	}
	return c.objects.Resource(of).List(ctx, o)
}

// requestTimeout bounds a request of a fenced client from when it is sent. It is a little more
// than an API server's default for any request, so that normally the server gives up and says
// so. The server gets this time, too (the parameter timeout), and serves nothing that nobody
// waits for any more.
const requestTimeout = 65 * time.Second

// separate returns a copy of the configuration for a client with a connection of its own
// (clients that dial through the same function share one). With fenced, requests have a
// timeout and are not sent when held returns false. Without fenced, the client is for lists
// and watches, and held is not called.
func separate(config *rest.Config, fenced bool, held func() bool) *rest.Config {
	c := rest.CopyConfig(config)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	c.Dial = gathering(c.Dial, !fenced)
	if fenced {
		c.RateLimiter = fencedLimiter{c.RateLimiter, held}
		c.Timeout = requestTimeout
		c.Wrap(func(base http.RoundTripper) http.RoundTripper { return placesTransport{fenceTransport{base, held}} })
	}
	return c
}

// throttled returns a copy of the configuration with a rate limiter, which all clients that
// are made of the copy share. A negative QPS means no limit, 0 client-go's default.
func throttled(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	switch {
	case c.QPS < 0:
		c.RateLimiter = flowcontrol.NewFakeAlwaysRateLimiter()
	case c.QPS == 0:
		c.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(rest.DefaultQPS, rest.DefaultBurst)
	default:
		c.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(c.QPS, max(c.Burst, 1))
	}
	return c
}

// fencedLimiter is the rate limiter of the clients that write. The wait may take seconds,
// so it checks afterwards that the leader lease is still held.
type fencedLimiter struct {
	flowcontrol.RateLimiter
	held func() bool
}

// Wait waits for the request's turn. It returns fence.ErrNotLeading if the lease is lost when
// the turn has come.
func (f fencedLimiter) Wait(ctx context.Context) error {
	if err := f.RateLimiter.Wait(ctx); err != nil {
		return err
	}
	if !f.held() {
		return fence.ErrNotLeading
	}
	return nil
}

// fenceTransport checks the leader lease once more as the body of a request is sent
// (package fence). No other transport comes after it.
type fenceTransport struct {
	http.RoundTripper
	held func() bool
}

// RoundTrip sends the request. One without a body only reads and is not checked. If the lease
// is lost, to read the body fails with fence.ErrNotLeading, and so does the request.
func (t fenceTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return t.RoundTripper.RoundTrip(r)
	}
	fenced := r.WithContext(r.Context()) // a copy
	fenced.Body = fence.Body(r.Body, t.held)
	if r.GetBody != nil {
		fenced.GetBody = func() (io.ReadCloser, error) {
			body, err := r.GetBody()
			return fence.Body(body, t.held), err
		}
	}
	return t.RoundTripper.RoundTrip(fenced)
}

// WrappedRoundTripper returns the transport inside. client-go calls it to find the
// connections.
func (t fenceTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }
