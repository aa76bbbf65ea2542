package dynamicresources

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// claimsOf looks up the pod's claims as the API shows them. The reason, when
// not "", says why the pod has to wait for one.
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

// shown is the claim as the API shows it, nil where there is none.
func shown(t *table.Table, namespace, name string) *object.ResourceClaim {
	c, _ := t.ShownObject(object.ResourceClaims, namespace, name).(*object.ResourceClaim)
	return c
}

// withPendingAllocation is what the claim is assumed to get while that is being written;
// nil where no allocation is under way.
func withPendingAllocation(t *table.Table, c *object.ResourceClaim) *object.ResourceClaim {
	now, _ := t.Object(object.ResourceClaims, c.Namespace, c.Name).(*object.ResourceClaim)
	if now == nil || now == c || c.Allocation() != nil || now.Allocation() == nil {
		return nil
	}
	return now
}

func ownedBy(c *object.ResourceClaim, p *object.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(c.API)
	return owner != nil && owner.UID == p.UID
}

// preEnqueue keeps pods out of the queue while claims are missing.
func preEnqueue(t *table.Table, p *object.Pod) *decision.Status {
	if _, reason := claimsOf(t, p); reason != "" {
		return unresolvable(reason)
	}
	return nil
}

func unresolvable(reason string) *decision.Status {
	return &decision.Status{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reason}}
}

func failed(format string, args ...any) *decision.Status {
	return &decision.Status{Code: decision.Error, Err: fmt.Errorf(format, args...)}
}
