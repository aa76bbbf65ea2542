package machine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// bindingCycle is the state of one pod's attempt from being assumed on a node to the end of
// its binding.
type bindingCycle struct {
	*attempt
	node  string
	row   table.Row // of the node, while the pod is assumed there
	phase phase
	since time.Time // when the pod was assumed
	// deadlines holds, by plugin name, until when the pod waits for the plugin: a Permit
	// plugin that holds it; a PreBind plugin whose writes must take effect; a Bind plugin
	// that reported a binding that the API does not show yet.
	deadlines map[string]time.Time
	// answered is set if Answer accepted a reply that ends the wait for Permit plugins, and
	// the event with it is still to come.
	answered bool
	// writers are the PreBind plugins whose writes were sent, one name for each write.
	writers []string
	// binder is the index of the extender that binds the pod, or noExtender or byPlugin.
	binder int
	// bindPlugin is the index of the Bind plugin that was called last.
	bindPlugin int
	// lost counts the reads of a pod for which it is not known whether it is bound, and holds why
	// its binding was refused.
	lost LostReply
	// failed is why the attempt fails, while it waits for the reply to its writes, until they are
	// reverted, or for its PreBind plugins to return; nil otherwise.
	failed *decision.Status
	// preemptors are pods that have preempted this one and wait for the end of the cycle.
	preemptors []*object.Pod
}

// bindingCycles runs the binding cycles of all pods: it assumes pods on nodes, moves each
// cycle from phase to phase, and undoes the cycles that fail.
type bindingCycles struct {
	*step
	options     *Options
	guard       *guard
	profiles    profiles
	pods        *pods
	attempts    *attempts
	nominations *nominations
	preemptors  *preemptors
	reads       *reads

	// waiting are the cycles in a phase that may end by time or by an event in the cluster
	// (phase.waits).
	waiting underway[*bindingCycle]
	illegal error // the first move between phases that is not legal; nil: none
}

// uid returns the pod's UID, by which lists of cycles (underway) are sorted.
func (c *bindingCycle) uid() types.UID { return c.pod.UID }

// maxPermitWait bounds how long a Permit plugin may hold a pod, as in kube-scheduler.
const maxPermitWait = 15 * time.Minute

// assume places the pod on the row's node in memory, ends its nomination, and runs the Reserve
// and Permit plugins. It returns the binding cycle and emits AttemptDone. The cycle waits if a
// Permit plugin holds the pod; otherwise its phase is reserve, and the caller starts PreBind.
// If a plugin rejects the pod or fails, assume fails the attempt and returns nil.
func (b *bindingCycles) assume(a *attempt, row table.Row) *bindingCycle {
	c := a.binding
	c.attempt, c.row, c.node, c.binder, c.since = a, row, b.table.Name(row), noExtender, b.now
	a.record.Node = c.node
	a.state.binding = c
	b.pods.setAssumed(a.state, true)
	b.table.Place(a.pod, row)
	if kept := a.state.entry.NominatedNode(); kept != "" {
		b.queue.Nominate(a.state.entry, "")
		b.nominations.moved(a.pod, kept, c.node)
	}
	s := b.reserve(c.profile, c.pod, c.node)
	if s == nil {
		s = b.runPermit(c)
	}
	b.attempts.stepDone("Reserving and permitting done")
	switch {
	case s != nil:
		b.fail(a, s)
		return nil
	case len(c.deadlines) == 0:
		a.record.Result = decision.ResultScheduled
		b.emit(AttemptDone{a.record})
	default:
		a.record.Result = decision.ResultWaiting
		b.moveTo(waitOnPermit, c)
		b.emit(AttemptDone{a.record})
		if !a.grouped { // others of the group may let it go in this step
			b.showExpectedNode(c)
		}
	}
	if h := a.profile.Host; h != nil {
		h.ActivatePods(a.pod)
	}
	return c
}

// reserve runs the profile's Reserve plugins until one rejects the pod, and returns that one's
// status; nil if none does. It undoes nothing: the caller calls unreserve.
func (b *bindingCycles) reserve(by *profile.Profile, p *object.Pod, node string) *decision.Status {
	for _, pl := range by.Reserve {
		if pl.Reserve == nil {
			continue
		}
		if s := pl.Reserve(b.table, p, node); s != nil && s.Code != decision.Success {
			return attribute(s, "Reserve", pl.Name)
		}
	}
	return nil
}

// runPermit runs the Permit plugins. It sets c.deadlines for those that hold the pod, and returns
// the status of one that rejects it; nil if none does. It also releases or rejects other pods that
// a plugin holds and names now.
func (b *bindingCycles) runPermit(c *bindingCycle) *decision.Status {
	return b.askPermit(c, func(plugin string, out framework.PermitResult) {
		b.permitOthers(plugin, out)
		if out.Status == nil || out.Status.Code != decision.Wait {
			return
		}
		if c.deadlines == nil {
			c.deadlines = map[string]time.Time{}
		}
		c.deadlines[plugin] = b.now.Add(min(out.Timeout, maxPermitWait))
	})
}

// askPermit calls the Permit plugins for the pod until one rejects it, and calls
// answered with each result. It returns the rejection; nil if there is none.
func (b *bindingCycles) askPermit(c *bindingCycle, answered func(plugin string, out framework.PermitResult)) *decision.Status {
	for _, pl := range c.profile.Permit {
		out := pl.Permit(b.table, c.pod, c.node)
		answered(pl.Name, out)
		if s := out.Status; s != nil && s.Code != decision.Success && s.Code != decision.Wait {
			return attribute(s, "Permit", pl.Name)
		}
	}
	return nil
}

// permitOthers applies what a Permit plugin, called for one pod, decided about other pods that it
// holds: they are released or rejected. A released pod that no other plugin holds goes on to
// PreBind.
func (b *bindingCycles) permitOthers(plugin string, out framework.PermitResult) {
	for _, uid := range out.Allow {
		if c := b.waitingOnPermit(uid); c != nil && !c.answered {
			if delete(c.deadlines, plugin); len(c.deadlines) == 0 {
				b.runPreBind(c)
			}
		}
	}
	for _, uid := range out.Reject {
		if c := b.waitingOnPermit(uid); c != nil && !c.answered {
			b.fail(c.attempt, b.permitRejection(c, plugin, "rejected"))
		}
	}
}

// waitingOnPermit returns the pod's cycle if Permit plugins hold it, else nil.
func (b *bindingCycles) waitingOnPermit(uid types.UID) *bindingCycle {
	if ps := b.pods.byUID[uid]; ps != nil && ps.binding != nil && ps.binding.phase == waitOnPermit {
		return ps.binding
	}
	return nil
}

// permitRejection returns the status, with this reason, of a held pod that the plugin rejects.
// plugin "" stands for the first, by name, of the plugins that hold it.
func (b *bindingCycles) permitRejection(c *bindingCycle, plugin, reason string) *decision.Status {
	if plugin == "" {
		for _, plugin = range sortedKeys(c.deadlines) {
			break
		}
	}
	return &decision.Status{Code: decision.Unschedulable, Plugin: plugin, Reasons: []string{reason}}
}

// showExpectedNode emits a patch that sets the pod's nominatedNodeName to the node of its cycle,
// since binding takes a while (kube-scheduler's NominatedNodeNameForExpectation). It does nothing
// if the API shows that node already, or with Options.HideExpectedNode.
func (b *bindingCycles) showExpectedNode(c *bindingCycle) {
	if b.options.HideExpectedNode {
		return
	}
	if node := b.nominations.toWrite(c.state, c.node); node != nil {
		b.emit(PatchStatus{Pod: c.pod, Nominated: node})
	}
}

// runPreBind runs the native PreBind plugins of a pod that no Permit plugin holds, and emits their
// writes, whose reply continues the cycle. Without writes the cycle goes on at once. It fails the
// attempt if a plugin rejects the pod.
func (b *bindingCycles) runPreBind(c *bindingCycle) {
	b.moveTo(preBind, c)
	var writes []framework.Write
	if !b.eachPreBind(c, func(pl *framework.Plugin) *decision.Status {
		if pl.PreBind == nil {
			return nil
		}
		w, s := pl.PreBind(b.table, c.pod, c.node)
		if s != nil && s.Code != decision.Success && s.Code != decision.Skip {
			return s
		}
		writes = append(writes, w...)
		for range w {
			c.writers = append(c.writers, pl.Name)
		}
		return nil
	}) {
		return
	}
	if len(writes) > 0 {
		b.showExpectedNode(c)
		b.moveTo(writesSent, c)
		b.emit(Write{Pod: c.pod, Writes: writes})
		return
	}
	b.runWaitNotice(c)
}

// callPreBind emits an effect that runs the hosted PreBind plugins, which may block. It
// returns false if the profile has none.
func (b *bindingCycles) callPreBind(c *bindingCycle) bool {
	var names []string
	for _, pl := range c.profile.PreBind {
		if pl.Blocking().PreBind {
			names = append(names, pl.Name)
		}
	}
	if len(names) == 0 {
		return false
	}
	b.moveTo(preBindCalled, c)
	b.runPlugins(c, "PreBind", names...)
	return true
}

// eachPreBind calls f with each PreBind plugin. If f panics or returns a status, the
// attempt fails and eachPreBind returns false.
func (b *bindingCycles) eachPreBind(c *bindingCycle, f func(*framework.Plugin) *decision.Status) bool {
	var s *decision.Status
	at, err := b.guard.each("PreBind", c.profile.PreBind, func(pl *framework.Plugin) bool {
		s = f(pl)
		return s == nil
	})
	switch {
	case err != nil:
		b.fail(c.attempt, &decision.Status{Code: decision.Error, Point: "PreBind", Plugin: at.Name, Err: err})
	case s != nil:
		b.fail(c.attempt, attribute(s, "PreBind", at.Name))
	default:
		return true
	}
	return false
}

// runWaitNotice emits the Events in which PreBind plugins tell what the pod may have to
// wait for, and goes on to bind the pod. It is called when all writes are done.
func (b *bindingCycles) runWaitNotice(c *bindingCycle) {
	if b.eachPreBind(c, func(pl *framework.Plugin) *decision.Status {
		if pl.WaitNotice == nil {
			return nil
		}
		if n := pl.WaitNotice(b.table, c.pod, c.node); n != nil {
			b.emit(PublishEvent{Pod: c.pod, Reason: EventReason(n.Reason), Action: n.Action, Note: n.Note, WaitedDevices: n.WaitedDevices})
		}
		return nil
	}) {
		b.bindWhenWritten(c)
	}
}

// endedReplied handles the reply for which an ended cycle of the pod stayed in the phase waited:
// what was reserved is released now. It returns false, and does nothing, if the pod has no such
// cycle.
func (b *bindingCycles) endedReplied(ps *podState, waited phase) bool {
	c := ps.ended
	if c == nil || c.phase != waited {
		return false
	}
	b.moveTo(ended, c)
	ps.ended = nil
	b.unreserve(c.profile, c.pod, c.node)
	b.pods.forget(ps)
	return true
}

// writesReplied handles the reply to the cycle's writes, of PreBind or of their reversal. What was
// reserved stays reserved until the reply, since the API may have given it to the pod already.
func (b *bindingCycles) writesReplied(e WriteReply) {
	ps := b.pods.byUID[e.UID]
	if ps == nil {
		return
	}
	if b.endedReplied(ps, endedAwaitsWrites) {
		return
	}
	c := ps.binding
	switch {
	case c == nil:
		return
	case c.phase == writesSent:
		b.moveTo(preBind, c)
	case c.phase != revertSent:
		return
	}
	switch pl := b.table.Pod(e.UID); {
	case pl.Pod.NodeName == c.node: // another bound it meanwhile
		if e.Err != nil {
			b.unreserve(c.profile, c.pod, c.node)
		}
		b.podBound(c)
	case c.failed != nil:
		b.fail(c.attempt, c.failed)
	case e.Err != nil:
		plugin := c.writers[min(e.Done, len(c.writers)-1)]
		b.fail(c.attempt, attribute(&decision.Status{Code: decision.Error, Err: e.Err}, "PreBind", plugin))
	default:
		b.runWaitNotice(c)
	}
}

// bindWhenWritten goes on with the hosted PreBind plugins or the binding, if no native PreBind
// plugin still waits for the effect of its writes (WritesDone); else it waits. The attempt fails if
// a plugin rejects the pod.
func (b *bindingCycles) bindWhenWritten(c *bindingCycle) {
	var waits *framework.Plugin
	done := b.eachPreBind(c, func(pl *framework.Plugin) *decision.Status {
		if pl.WritesDone == nil || waits != nil {
			return nil
		}
		s := pl.WritesDone(b.table, c.pod, c.node)
		switch {
		case s == nil || s.Code == decision.Success:
			return nil
		case s.Code == decision.Wait:
			waits = pl
			return nil
		}
		return s
	})
	switch {
	case !done:
	case waits != nil:
		b.waitForWrites(c, waits)
	case !b.callPreBind(c):
		b.bind(c)
	}
}

// waitForWrites makes the pod wait for the effect of the plugin's writes, until the plugin's
// WritesTimeout, counted from the first call for it.
func (b *bindingCycles) waitForWrites(c *bindingCycle, pl *framework.Plugin) {
	if c.deadlines == nil {
		c.deadlines = map[string]time.Time{}
	}
	if _, known := c.deadlines[pl.Name]; !known {
		c.deadlines[pl.Name] = b.now.Add(pl.WritesTimeout.After)
	}
	if c.phase != waitForWrites {
		if len(c.writers) == 0 {
			b.showExpectedNode(c) // where there are writes, it was shown with them
		}
		b.moveTo(waitForWrites, c)
	}
}

// recheckWrites calls WritesDone again for the pods that wait for the effect of their
// writes: those on the node, or all for "".
func (b *bindingCycles) recheckWrites(node string) {
	for _, c := range slices.Clone(b.waiting) {
		if c.phase == waitForWrites && (node == "" || c.node == node) {
			b.bindWhenWritten(c)
		}
	}
}

// failLate handles the cycles one of whose deadlines is over. Pods that Permit plugins hold or that
// wait for their writes fail. A pod that a Bind plugin claims to have bound is read.
func (b *bindingCycles) failLate() {
	for _, c := range slices.Clone(b.waiting) {
		for _, plugin := range sortedKeys(c.deadlines) {
			if b.now.Before(c.deadlines[plugin]) {
				continue
			}
			switch {
			case c.answered:
			case c.phase == waitOnPermit:
				b.fail(c.attempt, b.permitRejection(c, plugin,
					fmt.Sprintf("rejected due to timeout after waiting %v at plugin %v", b.now.Sub(c.since), plugin)))
			case c.phase == waitForWrites:
				late := &decision.Status{Code: decision.Error, Err: c.profile.Plugins[plugin].WritesTimeout.Err}
				b.fail(c.attempt, attribute(late, "PreBind", plugin))
			case c.phase == bindClaimed:
				b.readPod(c)
			}
			break
		}
	}
}

// forgetAssumed removes the assumed pod from its node, since its attempt failed or the pod is gone
// or bound elsewhere, and runs Unreserve. If writes or PreBind plugins were sent and have not
// answered, it leaves Unreserve until they do, so that nothing is released that they still use.
func (b *bindingCycles) forgetAssumed(c *bindingCycle) {
	switch c.phase {
	case writesSent:
		b.moveTo(endedAwaitsWrites, c)
		c.state.ended = c
	case preBindCalled:
		b.moveTo(endedAwaitsPreBind, c)
		c.state.ended = c
	default:
		b.unreserve(c.profile, c.pod, c.node)
	}
	b.pods.setAssumed(c.state, false)
	c.state.unconfirmed = nil
	b.table.RemovePod(c.pod.UID)
}

// unreserve runs Unreserve of the profile's Reserve plugins, in reverse order. If one panics, the
// others run all the same.
func (b *bindingCycles) unreserve(by *profile.Profile, p *object.Pod, node string) {
	for _, pl := range slices.Backward(by.Reserve) {
		if pl.Unreserve != nil {
			_ = b.guard.run("Unreserve", pl.Name, func() { pl.Unreserve(b.table, p, node) })
		}
	}
}

// revertWrites begins to undo what was written for the pod of a cycle that fails
// because of why. It returns true if fail has to wait: until writes that were sent, or
// PreBind plugins that run, have ended, or until the writes are reverted. fail is then
// called again with why. It returns false if there is nothing to undo.
func (b *bindingCycles) revertWrites(c *bindingCycle, why *decision.Status) bool {
	switch c.phase {
	case revertSent:
		return false
	case writesSent: // not before it is known what there is to revert
		c.failed = why
		return true
	case preBindCalled: // not before the plugins have returned
		c.failed = why
		b.emit(CancelPlugins{Pod: c.pod, Why: why.Err})
		return true
	}
	var writes []framework.Write
	for _, pl := range slices.Backward(c.profile.Reserve) {
		if pl.RevertWrites != nil {
			_ = b.guard.run("Unreserve", pl.Name, func() { writes = append(writes, pl.RevertWrites(b.table, c.pod, c.node)...) })
		}
	}
	if len(writes) == 0 {
		return false
	}
	b.moveTo(revertSent, c)
	c.failed = why
	b.emit(Write{Pod: c.pod, Writes: writes})
	return true
}

// assumptionEnded returns the event that an assumed pod is not on its node any more, as
// if it were deleted there: its resources are free.
func assumptionEnded(c *bindingCycle) *framework.Event {
	return &framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: boundTo(c.pod, c.node)}
}

// sortedKeys returns the plugin names in the map sorted, so that every replay handles the
// deadlines in one order.
func sortedKeys(m map[string]time.Time) []string { return slices.Sorted(maps.Keys(m)) }
