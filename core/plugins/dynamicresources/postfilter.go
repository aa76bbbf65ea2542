package dynamicresources

import (
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// postFilter returns the writes that delete a claim that an earlier attempt left behind, if there
// is one. Otherwise it returns the write that deallocates a claim which keeps the pod off other
// nodes and which nobody else uses: one claim, drawn at random, as in kube-scheduler. The pod is
// tried again when the API shows the change. It leaves the pod's nomination as it is.
func (pl *plugin) postFilter(c *framework.PostFilterCall) framework.PostFilterResult {
	result := framework.PostFilterResult{KeepNomination: true}
	if s := c.Filters.PreFilter; s != nil && s.Code == decision.UnschedulableAndUnresolvable && s.Plugin != names.NodeDeclaredFeatures && s.Plugin != names.DynamicResources {
		// kube-scheduler's plugin misses what its PreFilter would have left, an error
		// that ends PostFilter.
		result.Message, result.Resolved = "not found", true
		return result
	}
	s, status := pl.prepare(c.Table, c.Pod)
	switch {
	case s == nil || status != nil:
		return result
	case s.extended != nil && s.extended.stale != nil:
		result.Writes = deleteClaim(&s.extended.stale.Meta)
		result.Message = "deletion of ResourceClaim completed"
		return result
	case c.Filters.PreFilter != nil:
		return result
	}
	var idle []*object.ResourceClaim
	for _, claim := range s.claims {
		if claim.Allocation() != nil && onlyFor(claim, c.Pod) && pl.inTheWay(c, claim) {
			idle = append(idle, claim)
		}
	}
	if len(idle) == 0 {
		return result
	}
	result.Writes = []framework.Write{release(idle[c.Draw(len(idle))])}
	result.Message = "deallocation of ResourceClaim completed"
	return result
}

// deallocate returns the writes of postFilter for one pod of a group that could not be placed.
func (pl *plugin) deallocate(c *framework.PostFilterCall) []framework.Write {
	return pl.postFilter(c).Writes
}

// groupPostFilter returns kube-scheduler's status for any group that was not placed, whether
// deallocate had something to do or not. It has no reason if the group must be in one topology
// domain.
func groupPostFilter(c *framework.PodGroupPostFilterCall) framework.PodGroupPostFilterResult {
	s := &decision.Status{Code: decision.Unschedulable}
	if !c.Constrained {
		s.Reasons = []string{"deallocation and deletion of ResourceClaims completed"}
	}
	return framework.PodGroupPostFilterResult{Status: s}
}

// remedy returns OtherRemedy if postFilter may help the pod, else NoRemedy. It may help if the pod
// has an allocated claim that nobody else uses, or a claim that an earlier attempt left behind.
func (pl *plugin) remedy(t *table.Table, p *object.Pod) framework.Remedy {
	if e := pl.extendedOf(t, p); e != nil && e.stale != nil {
		return framework.OtherRemedy
	}
	claims, _ := pl.claimsFor(t, p)
	if slices.ContainsFunc(claims, func(c *object.ResourceClaim) bool { return c.Allocation() != nil && onlyFor(c, p) }) {
		return framework.OtherRemedy
	}
	return framework.NoRemedy
}

// onlyFor reports whether the claim is reserved for no pod but this one, or for none at all.
func onlyFor(c *object.ResourceClaim, p *object.Pod) bool {
	users := c.API.Status.ReservedFor
	return len(users) == 0 || len(users) == 1 && users[0].UID == p.UID
}

// inTheWay reports whether some node that was filtered is rejected because the claim's allocation
// cannot be used there, and by no Filter plugin before this one.
func (pl *plugin) inTheWay(c *framework.PostFilterCall, claim *object.ResourceClaim) bool {
	late := pl.unusable(c.Table, claim)
	for row := range c.Table.Rows() {
		n := c.Table.Node(table.Row(row))
		if _, asked := slices.BinarySearch(c.Filters.Rows, table.Row(row)); !asked && c.Filters.Rows != nil {
			continue
		}
		if n == nil || !late && usableOn(n, claim) {
			continue
		}
		if b := c.Filters.Run(table.Row(row)); b != nil && b.Plugin == names.DynamicResources && slices.Contains(b.Reasons, notAvailable) {
			return true
		}
	}
	return false
}

// release returns the write that removes the claim's allocation, reservations and device statuses,
// so that it can be allocated on another node.
func release(c *object.ResourceClaim) framework.Write {
	api, r := *c.API, *c
	api.Status.Allocation, api.Status.ReservedFor, api.Status.Devices = nil, nil, nil
	r.API, r.Nodes, r.NodesError = &api, nil, nil
	return framework.Write{
		Object: c.Meta, Subresource: "status",
		Patch:  map[string]any{"status": map[string]any{"allocation": nil, "reservedFor": nil, "devices": nil}},
		Result: []object.Object{&r},
	}
}
