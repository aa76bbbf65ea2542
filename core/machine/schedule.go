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
		m.groups.scheduleGroup(ps)
		return
	}
	if e.Pod.Terminating {
		m.attempts.skip(ps)
		return
	}
	m.overcommits.counting = true
	a := m.attempts.start(ps)
	a.record.NodesTotal = m.table.Live()
	var c *bindingCycle
	if err := m.guard.run("scheduling cycle", "", func() { c = m.scheduling.schedulePod(a) }); err != nil {
		m.scheduling.failAfterPanic(a, err)
		return
	}
	if c != nil && c.phase == reserve {
		m.bindings.runPreBind(c)
	}
}

// schedulingCycles run from a pod's Pop to its assumption, or to the pod's return to the
// queue: they decide, call extenders, and run PostFilter plugins.
type schedulingCycles struct {
	*step
	options     *Options
	profiles    profiles
	unlisted    unlistedKinds
	budgets     *budgets
	engine      *engine.Engine
	guard       *guard
	pods        *pods
	attempts    *attempts
	nominations *nominations
	preemptors  *preemptors
	bindings    *bindingCycles
	evictions   *evictions
	extenders   *extenderCycles
}

// schedulePod evaluates every node and assumes the pod on the best. It returns
// nil when the attempt is over, or waits for extenders or a PostFilter plugin.
func (d *schedulingCycles) schedulePod(a *attempt) *bindingCycle {
	if s := d.cannotTry(a); s != nil {
		d.bindings.fail(a, s)
		return nil
	}
	if extenders := d.extenders.of(a.pod); extenders != nil {
		return d.startExtenderCycle(a, extenders)
	}
	o := d.engine.Decide(a.request, d.nominations)
	d.attempts.stepDone(nil, "Computing predicates and prioritizing done")
	if o.Row < 0 && (o.Rejected == nil || o.Rejected.Code.Rejects()) {
		d.attempts.recordRejection(a, o)
		n, waits := d.runPostFilter(a, o, 0, nominating{keep: true}, nil)
		d.attempts.stepDone(nil, "Running PostFilter plugins done")
		if !waits {
			d.attempts.requeue(a, n)
		}
		return nil
	}
	c := d.assumeChosen(a, o)
	d.engine.Reuse(o)
	return c
}

// cannotTry returns why no node is looked at, nil where nodes are.
func (d *schedulingCycles) cannotTry(a *attempt) *decision.Status {
	switch {
	case d.table.Live() == 0:
		return &decision.Status{Code: decision.UnschedulableAndUnresolvable, Err: ErrNoNodes}
	case a.state.ended != nil:
		return &decision.Status{Code: decision.Error, Err: errAwaitsReply}
	}
	return d.unlisted.undecidable(d.table, a.profile, a.pod)
}

// assumeChosen assumes the pod on the node that was found, unless scoring failed.
func (d *schedulingCycles) assumeChosen(a *attempt, o *engine.Outcome) *bindingCycle {
	d.attempts.recordNodes(a, o)
	if o.Rejected != nil {
		d.bindings.fail(a, o.Rejected)
		return nil
	}
	a.record.Score, a.record.Ties = o.Score, o.Ties
	return d.bindings.assume(a, o.Row)
}
