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
	// Nodes is where the allocated devices can be used, nil for anywhere, and
	// NodesError why its selector does not parse.
	Nodes      *match.NodeSelector
	NodesError error
}

// Allocation returns what the claim got, nil for nothing yet.
func (c *ResourceClaim) Allocation() *resourcev1.AllocationResult { return c.API.Status.Allocation }

// ReservedFor reports whether the claim is reserved for the consumer with this UID.
func (c *ResourceClaim) ReservedFor(uid types.UID) bool {
	return slices.ContainsFunc(c.API.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == uid })
}

// IndexKey returns the UID of the pod whose requests for extended resources the claim
// stands for, "" for a claim of any other sort.
func (c *ResourceClaim) IndexKey() string {
	if c.API.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" {
		return ""
	}
	if owner := metav1.GetControllerOfNoCopy(c.API); owner != nil {
		return string(owner.UID)
	}
	return ""
}

// ConfirmedBy reports whether the state that the API shows has an allocation, which is
// what is assumed of a claim.
func (c *ResourceClaim) ConfirmedBy(shown Object) bool {
	s, ok := shown.(*ResourceClaim)
	return ok && s.Allocation() != nil
}

// ResourceSlice is a part of the devices that a driver offers in a pool.
type ResourceSlice struct {
	Meta
	API *resourcev1.ResourceSlice
}

// DeviceClass is a selection of devices that claims ask for by name.
type DeviceClass struct {
	Meta
	API *resourcev1.DeviceClass
}

// DeviceTaintRule taints devices of any driver that its selector picks.
type DeviceTaintRule struct {
	Meta
	// Driver, Pool and Device pick devices; nil picks all.
	Driver, Pool, Device *string
	Taint                resourcev1.DeviceTaint
}

// PodClaim is an entry of a pod's spec.resourceClaims.
type PodClaim struct {
	// Claim is the name of the ResourceClaim. An entry that needs none is left
	// out of the pod's list.
	Claim string
	// Owned: it was made for the pod from a template, and has to be the pod's.
	Owned bool
	// Error is why there is no name; "" when there is one.
	Error string
}

// ExtendedRequest is the request of one container for a resource that a device class may
// stand for.
type ExtendedRequest struct {
	Resource v1.ResourceName
	// Count may be 0: the resource is named, and nothing of it requested.
	Count     int64
	Container string
	// At is the index of the container, with init containers first.
	At int
	// Request is what a request for devices in its place is called.
	Request string
	// Passing: an init container that is done before the next one starts.
	Passing bool
}
