package decode

import (
	"encoding/json"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
)

func resourceClaim(c *resourcev1.ResourceClaim) *object.ResourceClaim {
	c = saneClaim(c)
	ask, _ := json.Marshal(&c.Spec) // API types always marshal
	decoded := &object.ResourceClaim{Meta: meta(object.ResourceClaims, &c.ObjectMeta), API: c, Ask: string(ask)}
	if a := c.Status.Allocation; a != nil && a.NodeSelector != nil {
		decoded.Nodes = match.NewNodeSelector(nil, a.NodeSelector)
		_, decoded.NodesError = nodeaffinity.NewNodeSelector(a.NodeSelector)
	}
	return decoded
}

// podClaims resolves the names of the pod's claims.
func podClaims(p *v1.Pod) []object.PodClaim {
	var claims []object.PodClaim
	for i := range p.Spec.ResourceClaims {
		name, owned, err := resourceclaim.Name(p, &p.Spec.ResourceClaims[i])
		switch {
		case err != nil:
			claims = append(claims, object.PodClaim{Error: err.Error()})
		case name != nil:
			c := object.PodClaim{Claim: *name, Owned: owned}
			if !slices.Contains(claims, c) { // two entries may share a claim
				claims = append(claims, c)
			}
		}
	}
	return claims
}
