package dynamicresources

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// claimsOf returns the pod's claims as the API shows them, in the pod's order. If one is missing or
// cannot be used yet, it returns no claims, and reason says why; otherwise reason is "".
func claimsOf(t *table.Table, p *object.Pod) (claims []*object.ResourceClaim, reason string) {
	for i := range p.Claims {
		c := &p.Claims[i]
		if c.Error != "" {
			return nil, c.Error
		}
		claim := shown(t, p.Namespace, c.Claim)
		switch {
		case claim == nil:
			return nil, fmt.Sprintf("could not find ResourceClaim %q", p.Namespace+"/"+c.Claim)
		case claim.API.DeletionTimestamp != nil:
			return nil, fmt.Sprintf("resourceclaim %q is being deleted", claim.Name)
		case c.Owned && !ownedBy(claim, p):
			return nil, fmt.Sprintf("ResourceClaim %s was not created for Pod %s (Pod is not owner)", claim.Key(), p.Key())
		}
		claims = append(claims, claim)
	}
	return claims, ""
}

// claimsFor returns the pod's claims, or the reason why it must wait for them. Under
// GenericWorkload a claim whose allocation is being written for another pod of the pod's group
// counts as allocated; any other is as the API shows it.
func (pl *plugin) claimsFor(t *table.Table, p *object.Pod) (claims []*object.ResourceClaim, reason string) {
	claims, reason = claimsOf(t, p)
	if pl.features.GenericWorkload && p.PodGroup() != "" {
		for i, c := range claims {
			if g := withPendingAllocation(t, c); g != nil && reservedForGroup(t, g, p) {
				claims[i] = g
			}
		}
	}
	return claims, reason
}

// reservedForGroup reports whether the claim is reserved for a pod of p's group that is assumed or
// bound. No pod of a gang is bound before the others are assumed, so none can wait until the API
// shows the allocation. Each writes the whole allocation, whoever is first.
func reservedForGroup(t *table.Table, c *object.ResourceClaim, p *object.Pod) bool {
	return slices.ContainsFunc(c.API.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
		other := t.Pod(r.UID)
		return other != nil && other.Pod.GroupKey() == p.GroupKey()
	})
}

// shown returns the claim as the API shows it, without what is assumed; nil if it does not exist
// there.
func shown(t *table.Table, namespace, name string) *object.ResourceClaim {
	c, _ := t.Objects().Shown(object.ResourceClaims, namespace, name).(*object.ResourceClaim)
	return c
}

// withPendingAllocation returns the assumed version of claim c, with the allocation that is being
// written; nil if there is none, or c has an allocation already. c is as the API shows it.
func withPendingAllocation(t *table.Table, c *object.ResourceClaim) *object.ResourceClaim {
	now, _ := t.Objects().Named(object.ResourceClaims, c.Namespace, c.Name).(*object.ResourceClaim)
	if now == nil || now == c || c.Allocation() != nil || now.Allocation() == nil {
		return nil
	}
	return now
}

// ownedBy reports whether the pod is the claim's controller owner.
func ownedBy(c *object.ResourceClaim, p *object.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(c.API)
	return owner != nil && owner.UID == p.UID
}

// preEnqueue gates the pod while one of its claims is missing or cannot be used yet, by what the
// API shows.
func preEnqueue(t *table.Table, p *object.Pod) *decision.Status {
	if _, reason := claimsOf(t, p); reason != "" {
		return unresolvable(reason)
	}
	return nil
}

// unresolvable returns an UnschedulableAndUnresolvable status with the reason.
func unresolvable(reason string) *decision.Status {
	return &decision.Status{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reason}}
}
