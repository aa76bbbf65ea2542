package dynamicresources

import (
	"errors"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

const (
	unavailable framework.Verdict = iota + 1 // what a claim has got cannot be used there
	tooLittle                                // the claims cannot all be allocated
	invalid                                  // and some pools are not valid
	leftover                                 // a claim of an attempt before is in the way
	unoffered                                // a resource has neither a class nor the node
	refused                                  // the pod cannot have what the devices take of the node
	lacking                                  // not before others go
	updating                                 // all devices are asked for, and a pool is incomplete
	unsound                                  // all devices are asked for, and a pool is not valid
	// Above these four bits a verdict holds a hash of the reasons.
	kinds = 1<<4 - 1
)

const (
	broken framework.Verdict = 1<<62 + iota // the search failed
	// unasked: the search took too long on another node, which ends the attempt
	// already.
	unasked
)

const notAvailable = "resourceclaim not available on the node"

// filter asks about each node. If a search takes too long, the attempt is over, and the
// other rows are not asked about.
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

// alone reports whether the search on one node may serve others, too. It may not if
// devices that several nodes can see have rare features, or devices take of their node's
// resources.
func (pl *plugin) alone(in *framework.Input) bool {
	return !pl.features.DRANodeAllocatableResources && in.State.(*state).shared != nil && pl.inventories.table == in.Table && pl.inventories.readShared(in.Table, pl.allocator.PartitionableDevices)
}

// ask returns the verdict on one node and the score. It calls search, if needed, to
// search for devices.
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
		if why := pl.sharedWith(in, n); why != nil {
			return found{verdict: why.verdict(refused)}, why
		}
	}
	if len(s.open) > 0 || s.extended != nil {
		if f, err = search(); f.verdict != framework.Fits {
			return f, err
		}
	}
	if s.late {
		f.verdict = unavailable
		return f, nil
	}
	for _, c := range s.claims {
		if c.Allocation() != nil && !c.Nodes.Matches(n.Subject()) {
			f.verdict = unavailable
			return f, nil
		}
	}
	return f, nil
}

// searchOn searches the devices that the node can see for the claims to be allocated
// there. It returns a fit if there are none.
func (pl *plugin) searchOn(in *framework.Input, n *object.Node) (found, error) {
	s := in.State.(*state)
	open, _ := s.openOn(n)
	if len(open) == 0 {
		return found{}, nil
	}
	got, err := pl.allocate(in.Table, n, open, s.shared)
	switch {
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return found{verdict: invalid}, err
	case err != nil && concernsPool(err, "being updated"):
		return found{verdict: updating}, err
	case err != nil && concernsPool(err, "invalid"):
		return found{verdict: unsound}, err
	case err != nil:
		return found{verdict: broken}, err
	case got == nil:
		return found{verdict: tooLittle}, nil
	}
	if pl.features.DRANodeAllocatableResources {
		if f, err := pl.checkNodeResources(in, n, open, got); err != nil || f.verdict != framework.Fits {
			return f, err
		}
	}
	return found{score: s.preference(got)}, nil
}

// concernsPool reports whether the allocator failed because a request asks for all devices
// while a pool of the node is in the state. kube-scheduler fails the attempt then. The allocator has
// no other word for it than its text.
func concernsPool(err error, state string) bool {
	text := err.Error()
	return strings.Contains(text, ": asks for all devices, but resource pool ") && strings.HasSuffix(text, " is currently "+state)
}

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

// inputFor returns the input for the pod at hand: errors name its claims, not those
// of another pod of its class.
func (pl *plugin) inputFor(in *framework.Input) *framework.Input {
	s, _ := pl.prepare(in.Table, in.Pod)
	if s == nil {
		return in
	}
	return &framework.Input{Table: in.Table, Pod: in.Pod, State: s}
}

// reasonOf returns v1.36's text for an error that ended a search.
func reasonOf(err error, node string) string {
	if errors.Is(err, errSteps) {
		return "node " + node + ": timed out trying to allocate devices"
	}
	return err.Error()
}

// unusable reports whether devices of the claim failed to become ready for the pod, or
// take too long.
func (pl *plugin) unusable(t *table.Table, c *object.ResourceClaim) bool {
	if !pl.features.DeviceBindingConditions() {
		return false
	}
	ready, err := isReadyForBinding(c.API)
	return err != nil || !ready && pl.bindingTimedOut(t, c.API)
}

// bindingTimedOut reports whether the time for the devices to become ready is over.
func (pl *plugin) bindingTimedOut(t *table.Table, c *resourcev1.ResourceClaim) bool {
	a := c.Status.Allocation
	if a == nil || a.AllocationTimestamp == nil || !conditional(a) {
		return false
	}
	return a.AllocationTimestamp.Add(pl.binding).Before(t.Now())
}
