package dynamicresources

import (
	"cmp"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/index/devicepools"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// extended is a pod's requests for extended resources of which at least one may be met by the
// devices of a DeviceClass. A node that has such a resource in its allocatable provides it itself.
// On any other node the pod gets devices of the class, by a claim that is made after the node is
// chosen.
type extended struct {
	pod       *object.Pod
	resources []resourceOfClass // all extended ones; at least one has a class
	// stale is a claim that an earlier attempt left behind; nil: none.
	stale *object.ResourceClaim
}

// resourceOfClass is an extended resource and the DeviceClass whose devices provide it.
type resourceOfClass struct {
	name  v1.ResourceName
	class string // "" for none
}

// extendedOf returns the pod's extended resources; nil if no class provides any of
// them, or the feature gate is off.
func (pl *plugin) extendedOf(t *table.Table, p *object.Pod) *extended {
	if !pl.features.DRAExtendedResource || !slices.ContainsFunc(p.Demand.Requests.Scalars, func(s resource.Scalar) bool {
		return devicepools.Of(t).ClassFor(s.Name) != nil && resource.ByDevices(s.Name) // the dearest last
	}) {
		return nil
	}
	e := &extended{pod: p}
	for _, s := range p.Demand.Requests.Scalars {
		if !resource.ByDevices(s.Name) {
			continue
		}
		r := resourceOfClass{name: s.Name}
		if class := devicepools.Of(t).ClassFor(s.Name); class != nil {
			r.class = class.Name
		}
		e.resources = append(e.resources, r)
	}
	for o := range t.Objects().ByIndex(object.ResourceClaims, string(p.UID)) {
		if c := o.(*object.ResourceClaim); e.stale == nil || c.UID < e.stale.UID {
			e.stale = c
		}
	}
	return e
}

// check returns a status that rejects the pod on all nodes, for an error in the classes or counts;
// nil if there is none. e may be nil.
func (e *extended) check(t *table.Table) *decision.Status {
	if e == nil {
		return nil
	}
	for _, r := range e.resources {
		if r.class == "" {
			continue
		}
		if status := checkClass(t, r.class, string(r.name)); status != nil {
			return status
		}
		for i := range e.pod.Extended {
			c := &e.pod.Extended[i]
			if c.Resource != r.name {
				continue
			}
			if status := checkCount(e.pod.Namespace+"/"+inMemory, c.Request, max(c.Count, 0)); status != nil {
				return status
			}
		}
	}
	return nil
}

// appendKey appends to a signature what of these requests the pod's verdicts and scores depend on.
// If there is a stale claim, that alone counts.
func (e *extended) appendKey(key []byte) []byte {
	if e.stale != nil {
		return append(key, ",stale"...)
	}
	for _, r := range e.resources {
		key = strconv.AppendQuote(strconv.AppendQuote(append(key, ",of "...), string(r.name)), r.class)
	}
	for i := range e.pod.Extended {
		r := &e.pod.Extended[i]
		key = strconv.AppendQuote(strconv.AppendQuote(append(key, ' '), string(r.Resource)), r.Request)
		key = strconv.AppendBool(strconv.AppendInt(append(key, ' '), r.Count, 36), r.Passing)
	}
	return key
}

// unlisted reports whether the pod requests an extended resource that is neither in the node's
// allocatable nor provided by a class.
func (e *extended) unlisted(n *object.Node) bool {
	return slices.ContainsFunc(e.resources, func(r resourceOfClass) bool { return r.class == "" && n.Allocatable.Of(r.name) == 0 })
}

// inMemory is kube-scheduler's name for the claim before it is made, for messages.
const inMemory = "<extended-resources>"

// claimOn returns the claim to make for the resources that have a class and that the node does not
// provide itself; nil if there are none. It is named inMemory until its name is chosen.
func (e *extended) claimOn(n *object.Node) *resourcev1.ResourceClaim {
	var requests []resourcev1.DeviceRequest
	for _, r := range e.resources {
		if r.class != "" && n.Allocatable.Of(r.name) == 0 {
			list, _ := deviceRequests(e.pod, r)
			requests = append(requests, list...)
		}
	}
	if len(requests) == 0 {
		return nil
	}
	slices.SortFunc(requests, func(a, b resourcev1.DeviceRequest) int { return cmp.Compare(a.Name, b.Name) })
	controller := true
	return &resourcev1.ResourceClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "ResourceClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.pod.Namespace, Name: inMemory,
			Annotations:     map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: e.pod.Name, UID: e.pod.UID, Controller: &controller}},
			Finalizers:      []string{resourcev1.Finalizer},
		},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests}},
	}
}

// deviceRequests returns the device requests for the pod's resource r, and which containers use
// which. Containers and sidecars get devices of their own. A plain init container uses those of
// containers that start after it; if it needs more, it shares additional ones with other init
// containers.
func deviceRequests(p *object.Pod, r resourceOfClass) (requests []resourcev1.DeviceRequest, uses []v1.ContainerExtendedResourceRequest) {
	for i := range p.Extended {
		if c := &p.Extended[i]; c.Resource == r.name && !c.Passing && c.Count > 0 {
			requests = append(requests, deviceRequest(c, r.class, c.Count))
			uses = append(uses, use(c, c.Request))
		}
	}
	var most *resourcev1.DeviceRequest
	lacking := []int{} // in uses: init containers that lack some
	for i := range p.Extended {
		c := &p.Extended[i]
		if c.Resource != r.name || !c.Passing || c.Count <= 0 {
			continue
		}
		lacks := c.Count
		for j := range p.Extended {
			later := &p.Extended[j]
			if later.Resource == r.name && !later.Passing && later.Count > 0 && later.At >= c.At && lacks > 0 {
				uses = append(uses, use(c, later.Request))
				lacks -= later.Count
			}
		}
		if lacks <= 0 {
			continue
		}
		lacking = append(lacking, len(uses))
		uses = append(uses, use(c, c.Request))
		if most == nil || lacks > most.Exactly.Count {
			own := deviceRequest(c, r.class, lacks)
			most = &own
		}
	}
	if most != nil {
		requests = append(requests, *most)
		for _, at := range lacking {
			uses[at].RequestName = most.Name
		}
	}
	return requests, uses
}

// deviceRequest returns a request, with the name that c has for it, for count devices of the class.
func deviceRequest(c *object.ExtendedRequest, class string, count int64) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Name: c.Request, Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}}
}

// use returns the entry of the pod's status which says that the container uses the request.
func use(c *object.ExtendedRequest, request string) v1.ContainerExtendedResourceRequest {
	return v1.ContainerExtendedResourceRequest{ContainerName: c.Container, ResourceName: string(c.Resource), RequestName: request}
}
