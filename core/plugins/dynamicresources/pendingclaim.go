package dynamicresources

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// pendingClaim is a claim that is being made for a pod's extended resources, from
// Reserve until the pod is bound.
type pendingClaim struct {
	name string
	sent bool // PreBind has returned its writes
}

// grantMade names the claim to be made for the pod and adds it to the table, allocated as a says,
// so that all readers of the table see it. It is in pl.made from then on.
func (pl *plugin) grantMade(t *table.Table, p *object.Pod, claim *resourcev1.ResourceClaim, a *resourcev1.AllocationResult) {
	claim.Name = nameFor(p, t.Now())
	c := &object.ResourceClaim{Meta: object.Meta{Kind: object.ResourceClaims, Namespace: claim.Namespace, Name: claim.Name}, API: claim}
	t.Objects().AssumeMade(pl.granted(t, c, a, p))
	pl.made[p.UID] = &pendingClaim{name: claim.Name}
}

// madeFor returns the claim that is being made for the pod, with its allocation; nil if
// there is none, or it was deleted.
func (pl *plugin) madeFor(t *table.Table, p *object.Pod) *object.ResourceClaim {
	m := pl.made[p.UID]
	if m == nil {
		return nil
	}
	return table.Lookup[*object.ResourceClaim](t, object.ResourceClaims, p.Namespace, m.name)
}

// Kept implements framework.Keeper, for snapshots of the machine: it returns the name of the claim
// that is being made for the pod, and whether PreBind has returned its writes; nil for none.
func (pl *plugin) Kept(p *object.Pod) *framework.Kept {
	if m := pl.made[p.UID]; m != nil {
		return &framework.Kept{Name: m.name, Done: m.sent}
	}
	return nil
}

// Keep implements framework.Keeper: it restores what Kept returned.
func (pl *plugin) Keep(_ *table.Table, p *object.Pod, k *framework.Kept) {
	pl.made[p.UID] = &pendingClaim{name: k.Name, sent: k.Done}
}

// nameFor returns a name for the pod's claim, different for each attempt (the time of Reserve). A
// write that is tried again keeps the name, so that no second claim is made.
func nameFor(p *object.Pod, attempt time.Time) string {
	return MadeName(p.Name, fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s %d", p.UID, attempt.UnixNano())))[:MadeSuffix])
}

// MadeSuffix is the length of the suffix that tells apart the names of claims that the
// scheduler makes for one pod's extended resources (MadeName).
const MadeSuffix = 10

// MadeName returns the name of a claim that the scheduler makes for the pod's extended resources:
// the pod's name and "-extended-resources-", cut so that all has at most 63 characters, and the
// suffix.
func MadeName(pod, suffix string) string {
	const base, longest = "-extended-resources-", 63 // as generated names are
	name := pod + base
	return name[:min(len(name), longest-len(suffix))] + suffix
}

// makeClaim returns the writes that create the claim, allocate it, and set the pod's
// extendedResourceClaimStatus.
func makeClaim(p *object.Pod, c *object.ResourceClaim) []framework.Write {
	bare := *c.API
	bare.Status = resourcev1.ResourceClaimStatus{}
	status := map[string]any{"reservedFor": c.API.Status.ReservedFor, "allocation": c.Allocation()}
	found := map[string]any{"resourceClaimName": c.Name, "requestMappings": uses(p, c.API)}
	return []framework.Write{
		{Object: c.Meta, Create: &bare},
		{Object: c.Meta, Strategic: true, Subresource: "status", Patch: map[string]any{"status": status}, Result: []object.Object{c}},
		{Object: object.Meta{Kind: object.Pods, Namespace: p.Namespace, Name: p.Name, UID: p.UID}, Strategic: true, Subresource: "status",
			Patch: map[string]any{"status": map[string]any{"extendedResourceClaimStatus": found}}},
	}
}

// uses returns which of the pod's containers use which requests of the claim that was made for its
// extended resources, for the pod's status.
func uses(p *object.Pod, claim *resourcev1.ResourceClaim) []v1.ContainerExtendedResourceRequest {
	var list []v1.ContainerExtendedResourceRequest
	for _, s := range p.Demand.Requests.Scalars {
		_, uses := deviceRequests(p, resourceOfClass{name: s.Name})
		for _, u := range uses {
			if slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool { return r.Name == u.RequestName }) {
				list = append(list, u)
			}
		}
	}
	return list
}

// deleteClaim returns the writes that delete a claim made for a pod. The first removes
// the finalizer: only the pod uses the claim, and only its controller guards it.
func deleteClaim(c *object.Meta) []framework.Write {
	unguard := map[string]any{"metadata": map[string]any{"$deleteFromPrimitiveList/finalizers": []string{resourcev1.Finalizer}}}
	return []framework.Write{
		{Object: *c, Strategic: true, Patch: unguard},
		{Object: *c, Delete: true},
	}
}
