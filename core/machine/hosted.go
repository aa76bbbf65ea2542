package machine

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/queue"
)

// Hosted plugins are written against another contract (edge/compat). What may block
// in them runs outside of the machine; what they say at times of their own comes as
// an event.

// preBindBegins handles the event that the pod's hosted PreBind plugins begin to run, which may
// take a while: it emits a patch of nominatedNodeName that shows where the pod is about to be
// bound. It does nothing if the cycle had writes, as the patch was emitted with them.
func (b *bindingCycles) preBindBegins(e PreBindBegins) {
	ps := b.pods.byUID[e.UID]
	if ps == nil || ps.binding == nil || ps.binding.phase != preBindCalled {
		return
	}
	if len(ps.binding.writers) == 0 { // with writes, the node was shown with them
		b.showExpectedNode(ps.binding)
	}
}

// runPlugins emits an effect that runs the hosted plugins at the point: PreBind, Bind or PostBind.
func (b *bindingCycles) runPlugins(c *bindingCycle, point string, plugins ...string) {
	h := c.profile.Host
	b.emit(RunPlugins{Pod: c.pod, Node: c.node, Profile: c.profile.Name, Point: point, Plugins: plugins, Attempt: h.Attempt(c.pod.UID)})
}

// preBindReplied handles the return of the pod's hosted PreBind plugins. It binds the pod, or fails
// the attempt if a plugin rejected the pod or failed, or if the attempt has failed meanwhile. The
// pod's resources stay reserved until the plugins return, even if its attempt has failed.
func (b *bindingCycles) preBindReplied(e PreBindReply) {
	ps := b.pods.byUID[e.UID]
	if ps == nil {
		return
	}
	if b.endedReplied(ps, endedAwaitsPreBind) {
		return
	}
	c := ps.binding
	if c == nil || c.phase != preBindCalled {
		return
	}
	pl := b.table.Pod(e.UID)
	switch why := c.failed; {
	case pl != nil && pl.Pod.NodeName == c.node: // another bound it meanwhile
		b.podBound(c)
	case why != nil:
		c.failed = nil
		b.moveTo(preBind, c)
		b.fail(c.attempt, why)
	case e.Status != nil && e.Status.Code.Rejects():
		b.moveTo(preBind, c)
		b.fail(c.attempt, (&Rejection{e.Status}).status())
	case e.Status != nil:
		b.moveTo(preBind, c)
		b.fail(c.attempt, attribute(e.Status, "PreBind", e.Status.Plugin))
	default:
		b.bind(c)
	}
}

// Rejection is the error of a pod that a plugin rejects at PreBind or Bind. As in kube-scheduler
// the pod is unschedulable with that reason, but no plugin counts as its rejector, so
// that it backs off as after an error.
type Rejection struct{ Status *decision.Status }

// Error returns the reason as the pod's condition shows it.
func (r *Rejection) Error() string { return explain.Status(r.Status) }

// status returns the status with which the attempt fails.
func (r *Rejection) status() *decision.Status {
	return &decision.Status{Code: r.Status.Code, Err: r}
}

// Answer accepts a hosted Permit plugin's answer about a pod that it holds. It returns
// false if the attempt does not wait any more or an earlier answer ended the wait;
// otherwise the caller must send the answer as an event. Call it between two steps or
// within one.
func (m *Machine) Answer(e PermitReply) bool { return m.bindings.answer(e) }

// answer accepts the answer of a Permit plugin for Machine.Answer. It returns false if the attempt
// does not wait any more, or if an earlier answer ended the wait.
func (b *bindingCycles) answer(e PermitReply) bool {
	c := b.waitingOnPermit(e.UID)
	if c == nil || c.answered || c.record.Attempt != e.Attempt {
		return false
	}
	if e.Allow {
		delete(c.deadlines, e.Plugin)
	}
	c.answered = !e.Allow || len(c.deadlines) == 0
	return true
}

// permitReplied handles the event with a Permit plugin's answer about a pod that it holds. A
// rejection or a preemption fails the attempt. PreBind runs when no plugin holds the pod any more.
// An answer to an attempt that does not wait is ignored; e.Attempt 0 means any attempt.
func (b *bindingCycles) permitReplied(e PermitReply) {
	c := b.waitingOnPermit(e.UID)
	if c == nil || e.Attempt != 0 && e.Attempt != c.record.Attempt {
		return
	}
	switch {
	case e.Preempt:
		b.fail(c.attempt, permitPreemption(e.Plugin, e.Message))
	case !e.Allow:
		b.fail(c.attempt, b.permitRejection(c, e.Plugin, e.Message))
	default:
		if delete(c.deadlines, e.Plugin); len(c.deadlines) == 0 {
			c.answered = false
			b.runPreBind(c)
		}
	}
}

// permitPreemption returns kube-scheduler's error status for a pod that was preempted while Permit
// plugins held it.
func permitPreemption(plugin, message string) *decision.Status {
	return &decision.Status{Code: decision.Error, Plugin: plugin, Err: fmt.Errorf("waiting on permit for pod: %s", message)}
}

// activate moves the pods to the active queue, unless a PreEnqueue plugin gates them.
func (m *Machine) activate(e Activate) {
	for _, uid := range e.UIDs {
		if ps := m.pods.byUID[uid]; ps != nil && ps.entry != nil {
			m.queue.Activate(m.now, ps.entry)
		}
	}
}

// askGatedAgain runs PreEnqueue again for the gated pods whose PreEnqueue plugin failed with an
// error. A pod that is not gated again becomes active.
func (m *Machine) askGatedAgain() {
	for _, ps := range m.pods.sorted() {
		if e := ps.entry; e.Place() == queue.Gated && e.State().PreEnqueueStatus.Code == decision.Error {
			m.queue.Activate(m.now, e)
		}
	}
}

// nominate nominates a pod of the queue to e.Node, or to no node for "". It passes to the queue
// that the pod left its earlier node, which may wake others. It writes nothing to the API, and
// ignores pods that are not in the queue.
func (m *Machine) nominate(e NominationSet) {
	ps := m.pods.byUID[e.UID]
	if ps == nil || ps.entry.Place() == queue.Nowhere {
		return
	}
	kept := ps.entry.NominatedNode()
	m.queue.Nominate(ps.entry, e.Node)
	m.nominations.moved(ps.entry.Pod, kept, e.Node)
}

// hostedObjectChanged passes a change of an object that hosted plugins read to the queue. The
// engine does not use earlier answers of hosted plugins any more.
func (m *Machine) hostedObjectChanged(e HostedObjectChanged) {
	m.engine.Told()
	m.moveAll(&framework.Event{Resource: framework.HostedObject, ActionType: e.ActionType, HostedResource: e.Resource, OldHostedObject: e.Old, NewHostedObject: e.New})
}
