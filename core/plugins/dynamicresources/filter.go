package dynamicresources

import (
	"errors"

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
	broken                                   // the search failed
	// unasked: the search took too long on another node, which ends the attempt
	// already.
	unasked
)

const notAvailable = "resourceclaim not available on the node"

// filter asks each node. Where a search takes too long the attempt is over,
// and the rest of the rows are not asked.
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
			if known, ok := s.known.verdicts.of(in.Table, row); ok {
				out[i] = framework.Verdict(known)
				continue
			}
			verdict, got, err := pl.ask(in, n)
			if out[i], over = verdict, errors.Is(err, errSteps); over {
				continue // the next attempt may have more luck on other rows
			}
			s.known.verdicts.keep(in.Table, row, int64(verdict))
			if got != nil {
				s.known.scores.keep(in.Table, row, s.preference(got))
			}
		}
	}
}

// ask gives the verdict on one node, and what the allocator said to it.
func (pl *plugin) ask(in *framework.Input, n *object.Node) (v framework.Verdict, got []resourcev1.AllocationResult, err error) {
	s := in.State.(*state)
	switch {
	case s.extended == nil:
	case s.extended.stale != nil:
		return leftover, nil, nil
	case s.extended.unlisted(n):
		return unoffered, nil, nil
	}
	if open, _ := s.openOn(n); len(open) > 0 {
		got, err = pl.allocate(in.Table, n, open, s.shared)
		switch {
		case errors.Is(err, structured.ErrFailedAllocationOnNode):
			return invalid, nil, err
		case err != nil:
			return broken, nil, err
		case got == nil:
			return tooLittle, nil, nil
		}
	}
	if s.late {
		return unavailable, got, nil
	}
	for _, c := range s.claims {
		if c.Allocation() != nil && !c.Nodes.Matches(n.Subject()) {
			return unavailable, got, nil
		}
	}
	return framework.Fits, got, nil
}

func (pl *plugin) explain(in *framework.Input, row table.Row, v framework.Verdict) (decision.Code, []string) {
	switch v {
	case unavailable:
		return decision.UnschedulableAndUnresolvable, []string{notAvailable}
	case tooLittle:
		return decision.UnschedulableAndUnresolvable, []string{"cannot allocate all claims"}
	case leftover:
		return decision.UnschedulableAndUnresolvable, []string{"cannot schedule extended resource claim"}
	case unoffered:
		return decision.UnschedulableAndUnresolvable, []string{"cannot fit resource"}
	}
	code := decision.UnschedulableAndUnresolvable
	if v >= broken {
		code, in = decision.Error, pl.inputFor(in)
	}
	if _, _, err := pl.ask(in, in.Table.Node(row)); err != nil {
		return code, []string{reasonOf(err, in.Table.Name(row))}
	}
	return code, []string{"devices could not be searched"}
}

// inputFor is the input for the pod at hand: errors name its claims, not those
// of another pod of its class.
func (pl *plugin) inputFor(in *framework.Input) *framework.Input {
	s, _ := pl.prepare(in.Table, in.Pod)
	if s == nil {
		return in
	}
	return &framework.Input{Table: in.Table, Pod: in.Pod, State: s}
}

// reasonOf is v1.36's text for what ended a search.
func reasonOf(err error, node string) string {
	if errors.Is(err, errSteps) {
		return "node " + node + ": timed out trying to allocate devices"
	}
	return err.Error()
}

// unusable tells whether devices that the claim has got failed to become ready
// for the pod, or take too long.
func (pl *plugin) unusable(t *table.Table, c *object.ResourceClaim) bool {
	if !pl.features.DeviceBindingConditions() {
		return false
	}
	ready, err := isReadyForBinding(c.API)
	return err != nil || !ready && pl.bindingTimedOut(t, c.API)
}

// bindingTimedOut tells whether the devices' time to become ready is over.
func (pl *plugin) bindingTimedOut(t *table.Table, c *resourcev1.ResourceClaim) bool {
	a := c.Status.Allocation
	if a == nil || a.AllocationTimestamp == nil || !conditional(a) {
		return false
	}
	return a.AllocationTimestamp.Add(pl.binding).Before(t.Now())
}
