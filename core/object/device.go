package object

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/match"
)

// The kinds about devices hold the API object as it came, read only: the
// library that allocates devices (k8s.io/dynamic-resource-allocation), whose
// answers are Kubernetes' own, reads it so.

// ResourceClaim is what somebody asks for in devices, and what he got.
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

// Allocation is what the claim got, nil for nothing yet.
func (c *ResourceClaim) Allocation() *resourcev1.AllocationResult { return c.API.Status.Allocation }

// ReservedFor tells whether the consumer with this UID may use the claim.
func (c *ResourceClaim) ReservedFor(uid types.UID) bool {
	return slices.ContainsFunc(c.API.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == uid })
}

// Confirms tells that the state shown holds what is assumed of the claim: an
// allocation.
func (c *ResourceClaim) Confirms(shown Object) bool {
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
