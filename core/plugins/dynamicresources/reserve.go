package dynamicresources

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// reserve allocates devices to the claims on the node, and assumes the claims so that all readers
// of the table see it. The pod is in the table already; with DRANodeAllocatableResources reserve
// updates it there to consume what its devices do. It returns a status if the devices cannot be
// allocated.
func (pl *plugin) reserve(t *table.Table, p *object.Pod, node string) *decision.Status {
	s, status := pl.prepare(t, p)
	if status != nil {
		return status
	}
	if pl.features.DRANodeAllocatableResources {
		assumeTaken(t, p, node, nil)
	}
	if s == nil {
		return nil
	}
	for _, c := range s.claims {
		if c != shown(t, c.Namespace, c.Name) { // the pod shares a pending allocation
			t.Objects().Assume(reserved(c, p))
		}
	}
	if s.shared == nil {
		return nil
	}
	row, ok := t.Find(node)
	if !ok {
		return decision.Failed("node %q not found", node)
	}
	open, made := s.openOn(t.Node(row))
	var got []resourcev1.AllocationResult
	if len(open) > 0 {
		var err error
		if got, err = pl.allocate(t, t.Node(row), open, s.shared); err != nil {
			return &decision.Status{Code: decision.Error, Err: err}
		}
		if got == nil {
			return decision.Failed("claim allocation not found for node")
		}
	}
	if pl.features.DRANodeAllocatableResources {
		taken, _, err := pl.takenOn(t, p, t.Node(row), s, open, got)
		if err != nil {
			return &decision.Status{Code: decision.Error, Err: err}
		}
		assumeTaken(t, p, node, taken)
	}
	for _, c := range s.claims {
		if c.Allocation() != nil {
			continue
		}
		t.Objects().Assume(pl.granted(t, c, &got[0], p))
		got = got[1:]
	}
	if made != nil {
		pl.grantMade(t, p, made, &got[0])
	}
	return nil
}

// granted returns claim c with the allocation a and reserved for the pod, as it is to be written.
// It sets the allocation time in a, and share IDs that follow from the claim.
func (pl *plugin) granted(t *table.Table, c *object.ResourceClaim, a *resourcev1.AllocationResult, p *object.Pod) *object.ResourceClaim {
	api := *c.API
	if !slices.Contains(api.Finalizers, resourcev1.Finalizer) {
		api.Finalizers = append(slices.Clone(api.Finalizers), resourcev1.Finalizer)
	}
	if pl.features.DeviceBindingConditions() {
		a.AllocationTimestamp = &metav1.Time{Time: t.Now()}
	}
	api.Status.Allocation = a
	api.Status.ReservedFor = append(slices.Clone(api.Status.ReservedFor), consumer(p))
	nameShares(a, cmp.Or(string(c.UID), c.Name))
	g := &object.ResourceClaim{Meta: c.Meta, API: &api, Ask: c.Ask}
	if a.NodeSelector != nil {
		g.Nodes = match.NewNodeSelector(nil, a.NodeSelector)
	}
	return g
}

// nameShares replaces the share IDs of devices, which the library draws at random, by IDs
// derived from the claim, so that decisions follow from the input alone.
func nameShares(a *resourcev1.AllocationResult, claim string) {
	for i := range a.Devices.Results {
		r := &a.Devices.Results[i]
		if r.ShareID == nil {
			continue
		}
		h := sha256.Sum256(fmt.Appendf(nil, "%s %d %s/%s/%s", claim, i, r.Driver, r.Pool, r.Device))
		h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // version 8, as RFC 9562 has it for IDs made like this
		id := types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16]))
		r.ShareID = &id
	}
}

// consumer returns the pod as an entry of a claim's status.reservedFor.
func consumer(p *object.Pod) resourcev1.ResourceClaimConsumerReference {
	return resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p.Name, UID: p.UID, APIGroup: v1.GroupName}
}

// unreserve removes what reserve assumed for the pod's claims from the table, and forgets the claim
// that was being made for it. A claim that other pods of its group share stays allocated.
func (pl *plugin) unreserve(t *table.Table, p *object.Pod, _ string) {
	for i := range p.Claims {
		c := shown(t, p.Namespace, p.Claims[i].Claim)
		if c == nil {
			continue
		}
		g := withPendingAllocation(t, c)
		switch {
		case g == nil || !g.ReservedFor(p.UID):
		case len(g.API.Status.ReservedFor) > 1: // pods of its group share it
			t.Objects().Assume(withoutConsumer(g, p))
		default:
			t.Objects().Restore(&c.Meta)
		}
	}
	if c := pl.madeFor(t, p); c != nil {
		t.Objects().Restore(&c.Meta)
	}
	delete(pl.made, p.UID)
}

// revertWrites returns the writes that undo what preBind wrote for the pod, as far as the API shows
// it. They remove the pod's reservations. Claims keep their allocations; one that was made for the
// pod is deleted. What devices consume is removed from the pod's status.
func (pl *plugin) revertWrites(t *table.Table, p *object.Pod, _ string) []framework.Write {
	var writes []framework.Write
	for i := range p.Claims {
		c := shown(t, p.Namespace, p.Claims[i].Claim)
		if c == nil || c.Allocation() == nil || !c.ReservedFor(p.UID) {
			continue
		}
		writes = append(writes, framework.Write{Object: c.Meta, Strategic: true, Subresource: "status",
			Patch:  map[string]any{"status": map[string]any{"reservedFor": []any{map[string]any{"$patch": "delete", "uid": p.UID}}}},
			Result: []object.Object{withoutConsumer(c, p)}})
	}
	if c := pl.madeFor(t, p); c != nil && pl.made[p.UID].sent {
		writes = append(writes, deleteClaim(&c.Meta)...)
	}
	if pl.features.DRANodeAllocatableResources {
		writes = append(writes, writeTaken(t, p, false)...)
	}
	return writes
}

// preBind returns the writes that allocate the claims and reserve them for the pod, make the claim
// for its extended resources, and say in its status what its devices consume. A write to a claim
// that the pod names only adds, whatever else happens to the claim, and the API server refuses it
// if another allocation was written. It returns a status if a claim was deleted or deallocated in
// the meantime.
func (pl *plugin) preBind(t *table.Table, p *object.Pod, _ string) ([]framework.Write, *decision.Status) {
	var writes []framework.Write
	for i := range p.Claims {
		c := shown(t, p.Namespace, p.Claims[i].Claim)
		if c == nil || c.API.DeletionTimestamp != nil {
			return nil, decision.Failed("claim %s got deleted in the meantime", p.Namespace+"/"+p.Claims[i].Claim)
		}
		if c.ReservedFor(p.UID) {
			continue
		}
		status := map[string]any{"reservedFor": []any{consumer(p)}}
		result := c
		if g := withPendingAllocation(t, c); g != nil && g.ReservedFor(p.UID) {
			if !slices.Contains(c.API.Finalizers, resourcev1.Finalizer) {
				writes = append(writes, framework.Write{Object: c.Meta, Strategic: true,
					Patch: map[string]any{"metadata": map[string]any{"finalizers": []string{resourcev1.Finalizer}}}})
			}
			status["allocation"] = g.Allocation()
			result = g
		} else if c.Allocation() == nil {
			return nil, decision.Failed("claim %s got deallocated elsewhere in the meantime", c.Key())
		} else {
			result = reserved(c, p)
		}
		writes = append(writes, framework.Write{Object: c.Meta, Strategic: true, Subresource: "status",
			Patch: map[string]any{"status": status}, Result: []object.Object{result}})
	}
	if m, c := pl.made[p.UID], pl.madeFor(t, p); c != nil {
		m.sent = true
		writes = append(writes, makeClaim(p, c)...)
	} else if m != nil {
		return nil, decision.Failed("claim %s got deleted in the meantime", p.Namespace+"/"+m.name)
	}
	if pl.features.DRANodeAllocatableResources {
		writes = append(writes, writeTaken(t, p, true)...)
	}
	return writes, nil
}

// withoutConsumer returns a copy of the claim that is not reserved for the pod.
func withoutConsumer(c *object.ResourceClaim, p *object.Pod) *object.ResourceClaim {
	api, left := *c.API, *c
	api.Status.ReservedFor = slices.DeleteFunc(slices.Clone(api.Status.ReservedFor),
		func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == p.UID })
	left.API = &api
	return &left
}

// reserved returns a copy of the claim that is reserved for the pod, too.
func reserved(c *object.ResourceClaim, p *object.Pod) *object.ResourceClaim {
	api, r := *c.API, *c
	api.Status.ReservedFor = append(slices.Clone(api.Status.ReservedFor), consumer(p))
	r.API = &api
	return &r
}
