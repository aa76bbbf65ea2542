package object

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/match"
)

// The kinds about devices hold the API object as it came, read only: the
// library that allocates devices (k8s.io/dynamic-resource-allocation), whose
// answers are Kubernetes' own, reads it so.

// ResourceClaim is a request for devices, with its allocation.
type ResourceClaim struct {
	Meta
	API *resourcev1.ResourceClaim
	// Ask is equal for claims with the same spec.
	Ask string
	// Nodes selects the nodes where the allocated devices can be used, nil for all; NodesError
	// is set if the allocation's node selector does not parse.
	Nodes      *match.NodeSelector
	NodesError error
}

// Allocation returns the claim's allocation, nil if it has none yet. Read only.
func (c *ResourceClaim) Allocation() *resourcev1.AllocationResult { return c.API.Status.Allocation }

// ReservedFor reports whether the pod or other consumer with this UID is in
// status.reservedFor.
func (c *ResourceClaim) ReservedFor(uid types.UID) bool {
	return slices.ContainsFunc(c.API.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == uid })
}

// IndexKey returns the UID of the pod for whose extended resources the scheduler created
// the claim, "" for all other claims.
func (c *ResourceClaim) IndexKey() string {
	if c.API.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" {
		return ""
	}
	if owner := metav1.GetControllerOfNoCopy(c.API); owner != nil {
		return string(owner.UID)
	}
	return ""
}

// ConfirmedBy reports whether shown, a state of the claim in the API, has an allocation, so
// that the assumed one is not needed any more. The scheduler assumes nothing else of a claim.
func (c *ResourceClaim) ConfirmedBy(shown Object) bool {
	s, ok := shown.(*ResourceClaim)
	return ok && s.Allocation() != nil
}

// ResourceSlice is a part of a pool of devices that a driver publishes.
type ResourceSlice struct {
	Meta
	API *resourcev1.ResourceSlice
}

// DeviceClass is a named selection of devices for which claims ask.
type DeviceClass struct {
	Meta
	API *resourcev1.DeviceClass
}

// DeviceTaintRule adds a taint to the devices that its selector selects.
type DeviceTaintRule struct {
	Meta
	// Driver, Pool and Device select devices by name, all three together; nil selects all.
	Driver, Pool, Device *string
	// SelectsNone is set if the rule has no selector: it taints no device.
	SelectsNone bool
	Taint       resourcev1.DeviceTaint
}

// PodClaim is an entry of a pod's spec.resourceClaims.
type PodClaim struct {
	// Claim is the name of the ResourceClaim. Entries that need no claim are left out of
	// Pod.Claims.
	Claim string
	// Owned is set if the claim is created for the pod from a template, and so must be owned by
	// the pod.
	Owned bool
	// Error says why the claim's name is not known; "" if it is.
	Error string
}

// ExtendedRequest is one container's request for an extended resource for which a
// DeviceClass may stand.
type ExtendedRequest struct {
	Resource v1.ResourceName
	// Count may be 0: the container names the resource and requests none.
	Count     int64
	Container string
	// At is the container's index among all containers of the pod, init containers first.
	At int
	// Request is the name of the device request that stands for this request in a
	// ResourceClaim.
	Request string
	// Passing is set for an init container that ends before the next container starts (it
	// is not a sidecar).
	Passing bool
}
