package machine

import "fmt"

// phase is how far a binding cycle is. Where something was sent, the cycle waits
// for the reply.
type phase uint8

const (
	reserve            phase = iota // Reserve and Permit plugins run
	waitOnPermit                    // a Permit plugin holds the pod
	preBind                         // PreBind plugins run
	writesSent                      // PreBind plugins' writes were sent
	waitForWrites                   // a PreBind plugin waits until its writes have their effect
	preBindCalled                   // PreBind plugins that may block run
	bindSent                        // the binding was sent
	bindClaimed                     // a Bind plugin says that it bound the pod, and the API has not shown that yet
	readSent                        // the reply to the binding was lost: a read of the pod was sent
	revertSent                      // the attempt failed: writes that revert its writes were sent
	endedAwaitsWrites               // the cycle ended before the reply to its writes
	endedAwaitsPreBind              // the cycle ended while PreBind plugins run
	endedAwaitsBind                 // the pod is gone before the reply to its binding
	ended

	phases = int(ended) + 1
)

// String returns the phase's name in the docs and in errors.
func (p phase) String() string {
	return [phases]string{
		"reserve", "wait on permit", "prebind", "writes sent", "wait for the writes", "prebind called", "bind sent", "bind claimed", "read sent", "revert sent",
		"ended, awaits writes", "ended, awaits prebind", "ended, awaits bind", "ended",
	}[p]
}

// waits reports whether time or an event in the cluster may end the phase.
func (p phase) waits() bool { return p == waitOnPermit || p == waitForWrites || p == bindClaimed }

// moves are the legal moves of a binding cycle from phase to phase, each with
// what causes it. A move without a cause is illegal; Verify reports it.
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

// moveTo moves the binding cycle from its phase to another. Nothing else changes a phase.
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
