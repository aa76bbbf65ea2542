package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/object"
)

// bind starts to bind the pod: by the extender that binds it, else by the first Bind plugin that
// does not skip it. If the node is gone, the attempt fails.
func (b *bindingCycles) bind(c *bindingCycle) {
	if c.binder = b.binder(c.pod); c.binder != noExtender && b.hasNode(c) {
		b.sendBinding(c)
		return
	}
	b.bindByPlugin(c, 0)
}

const (
	noExtender = -1 // no extender binds the pod: a Bind effect is sent
	byPlugin   = -2 // a hosted Bind plugin binds the pod
)

// binder returns the index in Options.Extenders of the extender that binds the pod, the first of
// several, or noExtender.
func (b *bindingCycles) binder(p *object.Pod) int {
	if p.API == nil {
		return noExtender
	}
	return slices.IndexFunc(b.options.Extenders, func(x Extender) bool { return x.Bind && x.Interested(p.API) })
}

// bindByPlugin calls the Bind plugins from index from on, until one binds the pod. A hosted one is
// run by the edge, and its reply continues the cycle. The attempt fails if all skip the pod, or if
// the node is gone: Permit or PreBind may have held the pod for long, and the API server would
// accept the binding.
func (b *bindingCycles) bindByPlugin(c *bindingCycle, from int) {
	if !b.hasNode(c) {
		b.fail(c.attempt, decision.Failed("binding of pod %s: node %q is gone", c.pod.Key(), c.node))
		return
	}
	for i, pl := range c.profile.Bind[from:] {
		c.bindPlugin = from + i
		if pl.Blocking().Bind {
			c.binder = byPlugin
			b.moveTo(bindSent, c)
			b.runPlugins(c, "Bind", pl.Name)
			return
		}
		c.binder = noExtender
		takes := false
		if err := b.guard.run("Bind", pl.Name, func() { takes = pl.Bind(c.pod, c.node) }); err != nil {
			b.fail(c.attempt, &decision.Status{Code: decision.Error, Err: err})
			return
		}
		if takes {
			b.sendBinding(c)
			return
		}
	}
	b.fail(c.attempt, decision.Failed("no Bind plugin of profile %q binds pod %s: each of them skips it", c.profile.Name, c.pod.Key()))
}

// sendBinding emits the binding, to the API server or to the extender c.binder, and moves the cycle
// to bindSent.
func (b *bindingCycles) sendBinding(c *bindingCycle) {
	b.moveTo(bindSent, c)
	if c.binder != noExtender {
		b.emit(BindByExtender{Pod: c.pod, Node: c.node, Extender: c.binder})
		return
	}
	b.emit(Bind{Pod: c.pod, Node: c.node})
}

// bindReplied handles the reply to a binding. Only a definite refusal by the API frees the
// resources that the pod reserves. If the reply leaves open what the API did, as that of an
// extender does, the pod is read.
func (b *bindingCycles) bindReplied(e BindReply) {
	ps := b.pods.byUID[e.UID]
	if ps == nil {
		return
	}
	if c := ps.ended; c != nil && c.phase == endedAwaitsBind {
		b.moveTo(ended, c)
		ps.ended = nil
		b.pods.forget(ps)
		if e.Result == BindDone {
			b.reportBound(c) // it was bound, however short its life
		}
		return
	}
	c := ps.binding
	if c == nil || c.phase != bindSent {
		return
	}
	if pl := b.table.Pod(e.UID); pl != nil && pl.Pod.NodeName == c.node {
		b.podBound(c) // the API has shown it bound, whatever the reply says
		return
	}
	switch {
	case e.Result == BindSkipped:
		b.bindByPlugin(c, c.bindPlugin+1)
	case c.binder == byPlugin && e.Result == BindDone:
		b.awaitClaimed(c)
	case c.binder == byPlugin: // it may have bound the pod before it failed
		c.lost.Refusal = e.Err
		b.readPod(c)
	case c.binder != noExtender: // of what the API did only the API can tell
		if e.Result == BindRefused || e.Result == BindUnknown && b.options.Extenders[c.binder].Ignorable {
			c.lost.Refusal = e.Err
		}
		b.readPod(c)
	case e.Result == BindDone:
		b.podBound(c)
	case e.Result == BindRefused && c.lost.Reads() == 0:
		b.bindingRefused(c, e.Err)
	case e.Result == BindRefused:
		c.lost.Refusal = e.Err
		b.readPod(c)
	default:
		b.readPod(c)
	}
}

// claimTimeout is how long the API may take to show a binding that a hosted Bind plugin has
// reported.
const claimTimeout = 30 * time.Second

// awaitClaimed waits until the API shows the pod bound, as a hosted Bind plugin
// reported it. After claimTimeout the pod is read; if it is unbound then, the plugin
// has failed.
func (b *bindingCycles) awaitClaimed(c *bindingCycle) {
	plugin := c.profile.Bind[c.bindPlugin].Name
	c.deadlines = map[string]time.Time{plugin: b.now.Add(claimTimeout)}
	c.lost.Refusal = fmt.Errorf("it returned Success, and %v later the pod is not bound", claimTimeout)
	b.moveTo(bindClaimed, c)
}

// readPod emits a read of the pod, with a delay that grows with the tries, and moves the cycle to
// readSent, where it waits for the reply.
func (b *bindingCycles) readPod(c *bindingCycle) {
	b.moveTo(readSent, c)
	b.emit(ReadPod{Pod: c.pod, Delay: c.lost.Delay()})
}

// notBound handles a read that shows the pod unbound. It treats the binding as refused if
// c.lost.Refusal is set, or after maxReads reads. Otherwise it sends the binding again, or reads
// the pod again if the node is gone.
func (b *bindingCycles) notBound(c *bindingCycle) {
	switch {
	case c.lost.Refusal != nil:
		b.bindingRefused(c, c.lost.Refusal)
	case c.lost.Exhausted():
		b.bindingRefused(c, fmt.Errorf("binding of pod %s to node %s: no answer in %d tries, and the pod is not bound", c.pod.Key(), c.node, c.lost.Reads()))
	case !b.hasNode(c):
		b.readPod(c) // no binding goes to a node that is gone; one may still be on its way
	default:
		b.sendBinding(c)
	}
}

// hasNode reports whether the node exists on which the pod is assumed.
func (b *bindingCycles) hasNode(c *bindingCycle) bool {
	return b.table.Node(c.row) != nil && b.table.Name(c.row) == c.node
}

// podBound ends the cycle of a pod that is bound: the pod leaves the queue, PostBind
// plugins run, and the Scheduled event is emitted.
func (b *bindingCycles) podBound(c *bindingCycle) {
	b.finish(c)
	b.attempts.dequeue(c.state)
	b.reportBound(c)
	b.profiles.endAttempt(c.pod)
	b.preemptors.retryAfterError(c.preemptors) // it was bound after all
	b.reads.sendUnconfirmed(c.state)
}

// finish ends the cycle. If a reply to what the cycle sent is outstanding, c is already state.ended
// and keeps its phase. Pods that have preempted this one may skip their backoff.
func (b *bindingCycles) finish(c *bindingCycle) {
	if c.state.ended != c {
		b.moveTo(ended, c)
	}
	c.state.binding = nil
	b.preemptors.skipBackoffs(c.preemptors)
}

// reportBound activates the pods that hosted plugins asked for, runs the PostBind plugins, and
// emits the Scheduled event.
func (b *bindingCycles) reportBound(c *bindingCycle) {
	if h := c.profile.Host; h != nil {
		h.ActivatePods(c.pod)
	}
	for _, pl := range c.profile.PostBind {
		if pl.PostBind == nil {
			b.runPlugins(c, "PostBind", pl.Name)
			continue
		}
		_ = b.guard.run("PostBind", pl.Name, func() { pl.PostBind(c.pod, c.node) })
	}
	b.emit(PublishEvent{Pod: c.pod, Reason: ReasonScheduled, Action: "Binding",
		Note: explain.Assigned(c.pod, c.node)})
}

// bindingRefused handles a binding that was surely not made: the attempt fails, or,
// after an ignorable extender, the Bind plugins run.
func (b *bindingCycles) bindingRefused(c *bindingCycle, err error) {
	if c.binder >= 0 {
		if !b.options.Extenders[c.binder].Ignorable {
			b.fail(c.attempt, &decision.Status{Code: decision.Error, Err: err})
			return
		}
		c.binder, c.lost = noExtender, LostReply{}
		b.bindByPlugin(c, 0)
		return
	}
	if r, ok := errors.AsType[*Rejection](err); ok {
		b.fail(c.attempt, r.status())
		return
	}
	plugin := c.profile.Bind[c.bindPlugin].Name
	b.fail(c.attempt, decision.Failed("running Bind plugin %q: %w", plugin, err))
}

// phase is how far a binding cycle is. In a phase in which something was sent, the cycle
// waits for the reply.
type phase uint8

const (
	reserve            phase = iota // Reserve and Permit plugins run
	waitOnPermit                    // a Permit plugin holds the pod
	preBind                         // native PreBind plugins run
	writesSent                      // PreBind plugins' writes were sent
	waitForWrites                   // a PreBind plugin waits for the effect of its writes
	preBindCalled                   // hosted PreBind plugins run, which may block
	bindSent                        // the binding was sent
	bindClaimed                     // reported bound by a Bind plugin, not yet shown by the API
	readSent                        // it is not known whether the pod is bound: a read was sent
	revertSent                      // the attempt failed: writes that revert its writes were sent
	endedAwaitsWrites               // the pod is gone or bound elsewhere; its writes have no reply
	endedAwaitsPreBind              // the pod is gone or bound elsewhere; PreBind plugins run
	endedAwaitsBind                 // the pod is gone before the reply to its binding
	ended                           // nothing is left to do

	phases = int(ended) + 1 // number of phases
)

// String returns the phase's name in the docs and in errors.
func (p phase) String() string {
	return [phases]string{
		"reserve", "wait on permit", "prebind", "writes sent", "wait for the writes", "prebind called", "bind sent", "bind claimed", "read sent", "revert sent",
		"ended, awaits writes", "ended, awaits prebind", "ended, awaits bind", "ended",
	}[p]
}

// waits reports whether the phase may end by time or by an event in the cluster, not
// only by a reply.
func (p phase) waits() bool { return p == waitOnPermit || p == waitForWrites || p == bindClaimed }

// moves holds the legal moves of a binding cycle, by the phase before and the phase after,
// each with its cause. A move that is not listed is a bug; Verify reports it.
var moves = [phases][phases]string{
	reserve: {
		waitOnPermit: "a Permit plugin answers Wait",
		preBind:      "Reserve and Permit plugins agree",
		revertSent:   "a plugin rejects the pod, or fails",
		ended:        "a plugin rejects the pod, or fails",
	},
	waitOnPermit: {
		preBind:    "all Permit plugins allow the pod",
		revertSent: "rejected, timed out, or preempted",
		ended:      "rejected, timed out, preempted, or the pod is gone or bound",
	},
	preBind: {
		writesSent:    "PreBind plugins have something to write",
		waitForWrites: "a PreBind plugin waits",
		preBindCalled: "PreBind plugins that may block have something to do",
		bindSent:      "nothing is left to wait for",
		revertSent:    "a plugin or a write failed",
		ended:         "a plugin or a write failed, or another bound the pod",
	},
	writesSent: {
		preBind:           "the reply to the writes",
		endedAwaitsWrites: "the pod is gone, or another bound it elsewhere",
	},
	waitForWrites: {
		preBindCalled: "the writes have their effect",
		bindSent:      "the writes have their effect",
		revertSent:    "a plugin failed, timed out, or the pod was preempted",
		ended:         "a plugin failed, timed out, the pod was preempted, is gone, or another bound it",
	},
	preBindCalled: {
		preBind:            "a plugin failed, or the pod was preempted",
		bindSent:           "the plugins have returned",
		ended:              "another bound it",
		endedAwaitsPreBind: "the pod is gone, or another bound it elsewhere",
	},
	bindSent: {
		bindSent:        "a Bind plugin leaves it to the next",
		bindClaimed:     "a Bind plugin says that it bound the pod",
		readSent:        "the reply is lost, or is an extender's",
		revertSent:      "the binding is refused",
		ended:           "the pod is bound, or the binding is refused",
		endedAwaitsBind: "the pod is gone",
	},
	bindClaimed: {
		readSent: "the API has not shown it bound for 30 seconds",
		ended:    "the API shows it bound, or the pod is gone",
	},
	readSent: {
		readSent:   "the read failed",
		bindSent:   "the pod is not bound: the binding is sent again",
		revertSent: "the binding is refused, or was sent 8 times",
		ended:      "the pod is bound or gone, or the binding is refused, or was sent 8 times",
	},
	revertSent: {
		ended: "the reply to the reverting writes, or the pod is gone or bound",
	},
	endedAwaitsWrites:  {ended: "the reply to the writes"},
	endedAwaitsPreBind: {ended: "the plugins have returned"},
	endedAwaitsBind:    {ended: "the reply to the binding"},
}

// moveTo moves the binding cycle to the phase and keeps b.waiting up to date. Nothing else changes
// a phase. An illegal move is made, too, and recorded in b.illegal.
func (b *bindingCycles) moveTo(to phase, c *bindingCycle) {
	if moves[c.phase][to] == "" && b.illegal == nil {
		b.illegal = fmt.Errorf("the binding cycle of pod %s moved from %s to %s, which is not a legal move", c.pod.Key(), c.phase, to)
	}
	if c.phase.waits() && !to.waits() {
		b.waiting.remove(c)
	} else if to.waits() && !c.phase.waits() {
		b.waiting.add(c)
	}
	c.phase = to
}
