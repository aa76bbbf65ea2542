package machine

import (
	"errors"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/explain"
)

// errAwaitsReply is why a pod that came back under its UID, as etcd was restored from a
// backup, is not scheduled yet: replies name the pod, and not the cycle.
var errAwaitsReply = errors.New("the pod was gone, and what was sent for it before that has no answer yet")

// ErrNoNodes is why a pod is not scheduled in a cluster without nodes.
var ErrNoNodes = errors.New(explain.NoNodes)

// scheduleOne pops the first pod of the queue and runs its scheduling cycle and, if a
// node was found, starts its binding cycle.
func (m *Machine) scheduleOne() {
	if m.evictions.awaited() {
		return
	}
	e := m.queue.Pop(m.now)
	if e == nil {
		return
	}
	ps := e.Owner.(*podState)
	if m.options.hasGroup(e.Pod) {
		m.scheduleGroup(ps)
		return
	}
	if e.Pod.Terminating {
		m.attempts.skip(ps)
		return
	}
	m.overcommits.counting = true
	a := m.attempts.start(ps)
	a.record.NodesTotal = m.table.Live()
	m.lookAheadFrom(e.Pod)
	var c *bindingCycle
	if err := m.guard.run("scheduling cycle", "", func() { c = m.schedulePod(a) }); err != nil {
		m.failAfterPanic(a, err)
		return
	}
	if c != nil && c.phase == reserve {
		m.bindings.runPreBind(c)
	}
}

// schedulePod evaluates every node and assumes the pod on the best. It returns
// nil when the attempt is over, or waits for extenders or a PostFilter plugin.
func (m *Machine) schedulePod(a *attempt) *bindingCycle {
	if s := m.cannotTry(a); s != nil {
		m.bindings.fail(a, s)
		return nil
	}
	if extenders := m.extendersOf(a.pod); extenders != nil {
		return m.startExtenderCycle(a, extenders)
	}
	o := m.engine.Decide(a.request, m.nominations)
	m.attempts.stepDone(nil, "Computing predicates and prioritizing done")
	if o.Row < 0 && (o.Rejected == nil || o.Rejected.Code.Rejects()) {
		m.attempts.recordRejection(a, o)
		n, waits := m.runPostFilter(a, o, 0, nominating{keep: true}, nil)
		m.attempts.stepDone(nil, "Running PostFilter plugins done")
		if !waits {
			m.attempts.requeue(a, n)
		}
		return nil
	}
	c := m.assumeChosen(a, o)
	m.engine.Reuse(o)
	return c
}

// cannotTry returns why no node is looked at, nil where nodes are.
func (m *Machine) cannotTry(a *attempt) *decision.Status {
	switch {
	case m.table.Live() == 0:
		return &decision.Status{Code: decision.UnschedulableAndUnresolvable, Err: ErrNoNodes}
	case a.state.ended != nil:
		return &decision.Status{Code: decision.Error, Err: errAwaitsReply}
	}
	return m.unlisted.undecidable(m.table, a.profile, a.pod)
}

// assumeChosen assumes the pod on the node that was found, unless scoring failed.
func (m *Machine) assumeChosen(a *attempt, o *engine.Outcome) *bindingCycle {
	m.attempts.recordNodes(a, o)
	if o.Rejected != nil {
		m.bindings.fail(a, o.Rejected)
		return nil
	}
	a.record.Score, a.record.Ties = o.Score, o.Ties
	return m.bindings.assume(a, o.Row)
}
