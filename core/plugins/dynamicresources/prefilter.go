package dynamicresources

import (
	"slices"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/devices"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/index/devicepools"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// state is what PreFilter passes to Filter, and PreScore to Score, about a pod's claims.
type state struct {
	claims []*object.ResourceClaim // all that the pod names
	// open are the claims that are not allocated yet. The allocator allocates them.
	open []*resourcev1.ResourceClaim
	// late is set if binding conditions of allocated devices have failed or timed out.
	late bool
	// extended is the pod's extended resources that devices may provide; nil: none.
	extended *extended
	// shared is the devices that several nodes can see; nil if nothing is to be allocated.
	shared *devices.Offer
	// alone is the Alone of the PreFilterResult: whether rows may share results.
	alone bool
	// known keeps verdicts and scores by row, for all pods whose claims are like these.
	known *columns
}

// openOn returns the claims to be allocated on the node. made, the last of them, is the
// claim for extended resources that the node does not provide; nil if none is needed.
func (s *state) openOn(n *object.Node) (open []*resourcev1.ResourceClaim, made *resourcev1.ResourceClaim) {
	if s.extended == nil {
		return s.open, nil
	}
	if made = s.extended.claimOn(n); made == nil {
		return s.open, nil
	}
	return append(slices.Clip(s.open), made), made
}

// sign appends to key what of the pod's claims verdicts and scores depend on: what open ones
// request, where allocated ones can be used, and what extended resources the pod requests. It
// appends nothing for a pod that needs no devices.
func (pl *plugin) sign(key []byte, t *table.Table, p *object.Pod) []byte {
	e := pl.extendedOf(t, p)
	if len(p.Claims) == 0 && e == nil {
		return key
	}
	claims, reason := pl.claimsFor(t, p)
	if reason != "" {
		return append(append(key, '!'), reason...)
	}
	key = strconv.AppendUint(key, devicepools.Of(t).Revision(), 36)
	if pl.features.DRANodeAllocatableResources { // what the pod takes depends on its containers, and on who has its claims
		key = strconv.AppendQuote(strconv.AppendQuote(key, string(p.UID)), p.Version)
	}
	for _, c := range claims {
		switch {
		case c.Allocation() != nil:
			key = strconv.AppendBool(append(key, ",got "...), pl.unusable(t, c))
			if c.Nodes != nil {
				key = strconv.AppendQuote(append(key, " on "...), c.Nodes.Key)
			}
			if c.NodesError != nil {
				key = append(key, " bad"...)
			}
			if skipsNodeOperations(c.Allocation()) {
				key = append(key, " skips"...)
			}
			if scored(c.API) { // what it got counts in the score
				key = append(append(append(key, c.Key()...), ' '), c.Version...)
			}
		case withPendingAllocation(t, c) != nil:
			key = append(append(key, ",promised "...), c.Key()...)
		default:
			key = strconv.AppendQuote(append(key, ','), c.Ask)
		}
	}
	if e != nil {
		key = e.appendKey(key)
	}
	return key
}

// signRevision returns revision 0, which never changes, for pods that need no claim, so that
// their signature is computed once. For others known is false, so that sign is called at
// every attempt.
func signRevision(_ *table.Table, p *object.Pod) (revision uint64, known bool) {
	return 0, len(p.Claims) == 0 && len(p.Demand.Requests.Scalars) == 0
}

// preFilter rejects a pod whose claims cannot be used or allocated anywhere, skips pods that need
// no devices, and returns the state for others. The state refers to the answers that are kept for
// such claims.
func (pl *plugin) preFilter(t *table.Table, p *object.Pod) framework.PreFilterResult {
	s, status := pl.prepare(t, p)
	if status != nil {
		return framework.PreFilterResult{Status: status}
	}
	if s != nil {
		s.known = pl.answers.of(t, pl.sign(nil, t, p))
		s.known.verdicts.makeRoom(t.Rows())
		if s.shared != nil {
			pl.inventories.makeRoom(t)
			s.alone = pl.alone(t, s)
		}
		if pl.scores(s) {
			s.known.scores.makeRoom(t.Rows())
		}
	}
	return framework.PreFilterResult{State: s, Skip: s == nil, Alone: s != nil && s.alone}
}

// prepare returns the state for the pod, or a status that rejects it; the state is of no use with a
// status. Both are nil for a pod without claims and without extended resources that devices may
// provide.
func (pl *plugin) prepare(t *table.Table, p *object.Pod) (*state, *decision.Status) {
	e := pl.extendedOf(t, p)
	if len(p.Claims) == 0 && e == nil {
		return nil, nil
	}
	claims, reason := pl.claimsFor(t, p)
	if reason != "" {
		return nil, unresolvable(reason)
	}
	s := &state{claims: claims, extended: e}
	for _, c := range claims {
		if c.Allocation() != nil {
			if c.NodesError != nil {
				return nil, &decision.Status{Code: decision.Error, Err: c.NodesError}
			}
			s.late = s.late || pl.unusable(t, c)
			continue
		}
		if withPendingAllocation(t, c) != nil {
			return nil, unresolvable("resource claim " + c.Key() + " is in the process of being allocated")
		}
		if status := pl.checkRequests(t, c); status != nil {
			return nil, status
		}
		s.open = append(s.open, c.API)
	}
	if len(s.claims) == 0 && e == nil {
		return nil, nil
	}
	if len(s.open) > 0 || e != nil || pl.features.DRANodeAllocatableResources {
		s.shared = devices.Shared(t, pl.features.DRAConsumableCapacity)
	}
	return s, e.check(t)
}

// checkRequests returns a status for an error in the requests of claim c, which no node can change;
// nil if there is none.
func (pl *plugin) checkRequests(t *table.Table, c *object.ResourceClaim) *decision.Status {
	for i := range c.API.Spec.Devices.Requests {
		r := &c.API.Spec.Devices.Requests[i]
		switch {
		case r.Exactly != nil:
			if status := checkClass(t, r.Exactly.DeviceClassName, r.Name); status != nil {
				return status
			}
			if status := checkCount(c.Key(), r.Name, r.Exactly.Count); status != nil {
				return status
			}
		case len(r.FirstAvailable) == 0:
			return unresolvable("resource claim " + c.Key() + ", request " + r.Name + ": unknown request type")
		case !pl.features.DRAPrioritizedList:
			return unresolvable("resource claim " + c.Key() + ", request " + r.Name + ": has subrequests, but the DRAPrioritizedList feature is disabled")
		}
		for j := range r.FirstAvailable {
			sub := &r.FirstAvailable[j]
			if r.Exactly != nil {
				break
			}
			if status := checkClass(t, sub.DeviceClassName, r.Name+"/"+sub.Name); status != nil {
				return status
			}
			if status := checkCount(c.Key(), r.Name+"/"+sub.Name, sub.Count); status != nil {
				return status
			}
		}
	}
	return nil
}

// checkCount returns an error status for a negative number n of devices, which the allocator does
// not survive; nil otherwise. claim and request are named in the message.
func checkCount(claim, request string, n int64) *decision.Status {
	if n < 0 {
		return decision.Failed("claim %s, request %s: %d is no number of devices", claim, request, n)
	}
	return nil
}

// checkClass returns a status if the named class is "", does not exist or has a selector of an
// unknown type; nil otherwise. request is named in the message.
func checkClass(t *table.Table, class, request string) *decision.Status {
	if class == "" {
		return decision.Failed("request %s: unsupported request type", request)
	}
	c, _ := t.Objects().Named(object.DeviceClasses, "", class).(*object.DeviceClass)
	if c == nil {
		return unresolvable("request " + request + ": device class " + class + " does not exist")
	}
	for i := range c.API.Spec.Selectors {
		if c.API.Spec.Selectors[i].CEL == nil { // the allocator would not look
			return decision.Failed("class %s: selector #%d: CEL expression empty (unsupported selector type?)", class, i)
		}
	}
	return nil
}
