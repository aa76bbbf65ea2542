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

// preBindBegins shows in the API where the pod is about to be bound: that takes a while, as
// a plugin has something to do.
func (b *bindingCycles) preBindBegins(e PreBindBegins) {
	ps := b.pods.byUID[e.UID]
	if ps == nil || ps.binding == nil || ps.binding.phase != preBindCalled {
		return
	}
	if len(ps.binding.writers) == 0 { // where there are writes, it was shown with them
		b.showExpectedNode(ps.binding)
	}
}

func (b *bindingCycles) runPlugins(c *bindingCycle, point string, plugins ...string) {
	h := c.profile.Host
	b.emit(RunPlugins{Pod: c.pod, Node: c.node, Profile: c.profile.Name, Point: point, Plugins: plugins, Attempt: h.Attempt(c.pod.UID)})
}

// preBindReplied handles the return of the pod's PreBind plugins. The pod keeps its place
// until then, whatever became of its attempt.
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

// Rejection is a plugin's rejection of a pod at PreBind or Bind. As in v1.36 that is too
// late for a verdict: the pod is unschedulable for the reason, but no plugin counts as
// its rejector, and it is tried again as after an error.
type Rejection struct{ Status *decision.Status }

func (r *Rejection) Error() string { return explain.Status(r.Status) }

func (r *Rejection) status() *decision.Status {
	return &decision.Status{Code: r.Status.Code, Err: r}
}

// Answer records the reply and reports whether it counts: the pod's attempt still waits,
// and no earlier reply ended the wait. The caller then sends it as an event. Until the
// event comes, only the pod's end or preemption can end the wait otherwise. Call it
// between two steps or within one.
func (m *Machine) Answer(e PermitReply) bool { return m.bindings.answer(e) }

// answer records the reply and reports whether it ends or shortens the wait.
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

// permitReplied handles the answer of a Permit plugin for a pod that it holds.
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

// permitPreemption returns v1.36's error for a pod that was preempted while Permit
// plugins held it.
func permitPreemption(plugin, message string) *decision.Status {
	return &decision.Status{Code: decision.Error, Plugin: plugin, Err: fmt.Errorf("waiting on permit for pod: %s", message)}
}

func (m *Machine) activate(e Activate) {
	for _, uid := range e.UIDs {
		if ps := m.pods.byUID[uid]; ps != nil && ps.entry != nil {
			m.queue.Activate(m.now, ps.entry)
		}
	}
}

func (m *Machine) askGatedAgain() {
	for _, ps := range m.pods.sorted() {
		if e := ps.entry; e.Place() == queue.Gated && e.State().PreEnqueueStatus.Code == decision.Error {
			m.queue.Activate(m.now, e)
		}
	}
}

func (m *Machine) nominate(e NominationSet) {
	ps := m.pods.byUID[e.UID]
	if ps == nil || ps.entry.Place() == queue.Nowhere {
		return
	}
	kept := ps.entry.NominatedNode()
	m.queue.Nominate(ps.entry, e.Node)
	m.nominations.moved(ps.entry.Pod, kept, e.Node)
}

func (m *Machine) hostedObjectChanged(e HostedObjectChanged) {
	m.engine.Told()
	m.moveAll(&framework.Event{Resource: framework.HostedObject, ActionType: e.ActionType, HostedResource: e.Resource, OldHostedObject: e.Old, NewHostedObject: e.New})
}
