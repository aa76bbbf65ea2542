package dynamicresources

import (
	"errors"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/draoptionalnodeoperations"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

const (
	unavailable framework.Verdict = iota + 1 // the node cannot use an allocated claim
	tooLittle                                // the claims cannot all be allocated
	invalid                                  // the same, and some pools are not valid
	leftover                                 // a claim that an earlier attempt made must be deleted first
	unoffered                                // an extended resource is provided by neither the node nor a class
	refused                                  // the node can never have the CPU etc. that the devices consume
	lacking                                  // the node has too little of it left, because of other pods
	updating                                 // a request for all devices, and a pool is incomplete
	unsound                                  // a request for all devices, and a pool is not valid
	// kinds masks the above; in refused and lacking, the higher bits are a hash of the
	// reasons.
	kinds = 1<<4 - 1
)

const (
	broken framework.Verdict = 1<<62 + iota // the search failed with an error
	// unasked: a search took too long on another node, which fails the attempt, so that
	// this node was not searched.
	unasked
)

// notAvailable is kube-scheduler's reason for unavailable.
const notAvailable = "resourceclaim not available on the node"

// filter writes a verdict for each row to out. It reuses answers that are kept for the row, and
// keeps new ones. If a search takes too many steps, the attempt fails, and the remaining rows are
// not searched (unasked). A row without a node fits.
func (pl *plugin) filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	over, s := false, in.State.(*state)
	for i, row := range rows {
		out[i] = framework.Fits
		n := in.Table.Node(row)
		switch {
		case n == nil:
		case over:
			out[i] = unasked
		default:
			if known, ok := s.known.verdicts.of(in.Table, row); ok && !pl.features.DRANodeAllocatableResources {
				out[i] = framework.Verdict(known)
				continue
			}
			f, err := pl.ask(in, n, func() (found, error) { return pl.allocateAlike(in, row, n) })
			if out[i], over = f.verdict, errors.Is(err, errSteps); over {
				continue // the next attempt may have more luck on other rows
			}
			s.known.verdicts.keep(in.Table, row, int64(f.verdict))
			if f.verdict == framework.Fits || f.verdict == unavailable {
				s.known.scores.keep(in.Table, row, s.settled()+f.score)
			}
		}
	}
}

// alone reports whether nodes are searched one at a time, with results that other nodes may reuse.
// It is false if nothing is to be allocated, if devices that several nodes can see have rare
// features, or if devices consume node resources. If devices that several nodes can see changed, it
// first numbers them again.
func (pl *plugin) alone(t *table.Table, s *state) bool {
	return !pl.features.DRANodeAllocatableResources && s.shared != nil && pl.inventories.table == t && pl.inventories.readShared(t, pl.allocator.PartitionableDevices)
}

// ask returns the verdict on one node, and the raw score of what the pod's claims that are still to
// be allocated would get there. It calls search only if there is something to allocate, or if
// devices may consume node resources; other checks that reject come before and after. With a
// rejecting verdict an error may say why.
func (pl *plugin) ask(in *framework.Input, n *object.Node, search func() (found, error)) (f found, err error) {
	s := in.State.(*state)
	switch {
	case s.extended == nil:
	case s.extended.stale != nil:
		return found{verdict: leftover}, nil
	case s.extended.unlisted(n):
		return found{verdict: unoffered}, nil
	}
	if pl.features.DRANodeAllocatableResources {
		if why := pl.sharedDeviceRejection(in, n); why != nil {
			return found{verdict: why.verdict(refused)}, why
		}
	}
	if len(s.open) > 0 || s.extended != nil || pl.features.DRANodeAllocatableResources {
		if f, err = search(); f.verdict != framework.Fits {
			return f, err
		}
	}
	if s.late {
		f.verdict = unavailable
		return f, nil
	}
	for _, c := range s.claims {
		if c.Allocation() != nil && !usableOn(n, c) {
			f.verdict = unavailable
			return f, nil
		}
	}
	return f, nil
}

// searchOn runs the allocator on the node for the claims to be allocated there. It returns the
// verdict and the raw score, but not what was allocated, which Reserve computes again. With a
// rejecting verdict other than tooLittle an error says why.
func (pl *plugin) searchOn(in *framework.Input, n *object.Node) (found, error) {
	s := in.State.(*state)
	open, _ := s.openOn(n)
	var got []resourcev1.AllocationResult
	var err error
	if len(open) > 0 {
		got, err = pl.allocate(in.Table, n, open, s.shared)
	}
	switch {
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return found{verdict: invalid}, err
	case err != nil && concernsPool(err, "being updated"):
		return found{verdict: updating}, err
	case err != nil && concernsPool(err, "invalid"):
		return found{verdict: unsound}, err
	case err != nil:
		return found{verdict: broken}, err
	case len(got) < len(open):
		return found{verdict: tooLittle}, nil
	}
	if pl.features.DRANodeAllocatableResources {
		if f, err := pl.checkNodeResources(in, n, open, got); err != nil || f.verdict != framework.Fits {
			return f, err
		}
	}
	return found{score: s.preference(got)}, nil
}

// withoutNodeOperations are the features that a node has to declare for devices whose driver does
// not run there.
var withoutNodeOperations = []string{draoptionalnodeoperations.DRAOptionalNodeOperationsFeatureGate}

// usableOn reports whether the node can use the claim's allocation: its node selector admits the
// node, and the node declares what devices need whose driver does not run there.
func usableOn(n *object.Node, c *object.ResourceClaim) bool {
	return c.Nodes.Matches(n.Subject()) && (!skipsNodeOperations(c.Allocation()) || n.Declares(withoutNodeOperations))
}

// skipsNodeOperations reports whether the kubelet must not call the driver of a device of the
// allocation for some operations, whatever the feature gate says.
func skipsNodeOperations(a *resourcev1.AllocationResult) bool {
	return slices.ContainsFunc(a.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool { return len(r.SkipNodeOperations) > 0 })
}

// concernsPool reports whether the allocator's error is that a request for all devices meets a pool
// in the state ("being updated" or "invalid"). The error's text is the only sign for it.
// kube-scheduler fails the whole attempt then.
func concernsPool(err error, state string) bool {
	text := err.Error()
	return strings.Contains(text, ": asks for all devices, but resource pool ") && strings.HasSuffix(text, " is currently "+state)
}

// explain returns the code and reasons of a verdict on the row. Where the reasons are an error or
// missing node resources, it searches the node again.
func (pl *plugin) explain(in *framework.Input, row table.Row, v framework.Verdict) decision.Blocker {
	switch v {
	case unavailable:
		return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{notAvailable}}
	case tooLittle:
		return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{"cannot allocate all claims"}}
	case leftover:
		return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{"cannot schedule extended resource claim"}}
	case unoffered:
		return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{"cannot fit resource"}}
	case updating:
		return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{"cannot allocate all devices, a resource pool is being updated"}}
	case unsound:
		return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{"cannot allocate all devices, a resource pool is invalid"}}
	}
	code := decision.UnschedulableAndUnresolvable
	if v >= broken {
		code, in = decision.Error, pl.inputFor(in)
	}
	n := in.Table.Node(row)
	_, err := pl.ask(in, n, func() (found, error) { return pl.searchOn(in, n) })
	if why := (rejection)(nil); errors.As(err, &why) {
		return decision.Blocker{Code: codeOf(v & kinds), Reasons: why}
	}
	if err != nil {
		return decision.Blocker{Code: code, Reasons: []string{reasonOf(err, in.Table.Name(row))}}
	}
	return decision.Blocker{Code: code, Reasons: []string{"devices could not be searched"}}
}

// inputFor returns the filter's input made for the pod itself, so that errors name its claims and
// not those of another pod of its class. It returns in if the pod's claims cannot be read any more.
func (pl *plugin) inputFor(in *framework.Input) *framework.Input {
	s, _ := pl.prepare(in.Table, in.Pod)
	if s == nil {
		return in
	}
	return &framework.Input{Table: in.Table, Pod: in.Pod, State: s}
}

// reasonOf returns kube-scheduler's text for an error that ended a search.
func reasonOf(err error, node string) string {
	if errors.Is(err, errSteps) {
		return "node " + node + ": timed out trying to allocate devices"
	}
	return err.Error()
}

// unusable reports whether binding conditions of the claim's devices have failed or timed out, so
// that the allocation is of no use. It is false while they may still become true, and without the
// feature gates of binding conditions.
func (pl *plugin) unusable(t *table.Table, c *object.ResourceClaim) bool {
	if !pl.features.DeviceBindingConditions() {
		return false
	}
	ready, err := isReadyForBinding(c.API)
	return err != nil || !ready && pl.bindingTimedOut(t, c.API)
}

// bindingTimedOut reports whether the time for the binding conditions of the claim's devices is
// over; false if they have none.
func (pl *plugin) bindingTimedOut(t *table.Table, c *resourcev1.ResourceClaim) bool {
	a := c.Status.Allocation
	if a == nil || a.AllocationTimestamp == nil || !conditional(a) {
		return false
	}
	return a.AllocationTimestamp.Add(pl.binding).Before(t.Now())
}
