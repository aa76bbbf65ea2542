package machine

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
)

// fail ends an attempt with a status: an error, or a rejection by a plugin after
// the pod was assumed. The binding cycle, if there is one, is undone; where
// writes have to be reverted, when that is done.
func (b *bindingCycles) fail(a *attempt, s *decision.Status) {
	c := a.state.binding
	if c != nil && b.revertWrites(c, s) {
		return
	}
	r := a.record
	if c != nil {
		again := *r
		r, a = &again, &attempt{state: a.state, pod: a.pod, profile: a.profile, record: &again}
		r.Node, r.Nodes = "", nil
		b.forgetAssumed(c)
		b.finish(c)
	}
	r.Result, r.Err = decision.ResultError, s.Err
	r.RejectedBy, r.PendingBy = nil, nil // a failure is no verdict, whatever was found before
	if s.Code.Rejects() && s.Err == nil {
		// As v1.36: the one node that it was to go to, and why not.
		r.Result, r.NodesTotal, r.NodesFeasible = decision.ResultUnschedulable, 1, 0
		r.Tallies = []decision.Tally{{Blocker: decision.Blocker{Plugin: s.Plugin, Code: s.Code, Reasons: s.Reasons}, Nodes: 1}}
		if s.Code == decision.Pending {
			r.PendingBy = []string{s.Plugin}
		} else {
			r.RejectedBy = []string{s.Plugin}
		}
	} else if s.Code.Rejects() { // ErrNoNodes, or a Rejection
		r.Result = decision.ResultUnschedulable
	} else {
		r.FailedPoint, r.FailedPlugin = s.Point, s.Plugin
	}
	if c != nil && !s.Code.Rejects() {
		b.moveAll(assumptionEnded(c))
	}
	b.attempts.requeue(a, nominating{})
	if c != nil && s.Code.Rejects() {
		b.queue.MoveAllToActiveOrBackoff(b.now, assumptionEnded(c), func(p *object.Pod) bool { return p.UID != a.pod.UID })
	}
}

// failAfterPanic ends an attempt that panicked: it undoes what the attempt did, and the
// pod backs off.
func (d *schedulingCycles) failAfterPanic(a *attempt, err error) {
	d.extenders.finish(a.state)
	if a.state.binding == nil {
		d.table.RemovePod(a.pod.UID)
		d.pods.setAssumed(a.state, false)
	}
	d.bindings.fail(a, &decision.Status{Code: decision.Error, Err: err})
}

// attribute records in the status which plugin returned it, at which point.
func attribute(s *decision.Status, point, plugin string) *decision.Status {
	s.Plugin, s.Point = plugin, point
	if s.Code == decision.Error {
		err := s.Err
		if err == nil {
			err = fmt.Errorf("%s", s.Reasons)
		}
		s.Err = fmt.Errorf("%s: %w", calling(point, plugin), err)
	}
	return s
}
