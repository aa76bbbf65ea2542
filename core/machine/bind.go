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

// bind starts the binding of the pod: by the extender that binds it, or else by the first
// Bind plugin that does not skip it.
func (m *Machine) bind(c *bindingCycle) {
	if c.binder = m.binder(c.pod); c.binder != noExtender && m.hasNode(c) {
		m.sendBinding(c)
		return
	}
	m.bindByPlugin(c, 0)
}

const (
	noExtender = -1 // the API server binds the pod
	byPlugin   = -2 // a plugin does
)

// binder returns the extender that binds the pod, or noExtender.
func (m *Machine) binder(p *object.Pod) int {
	if p.API == nil {
		return noExtender
	}
	return slices.IndexFunc(m.options.Extenders, func(x Extender) bool { return x.Bind && x.Interested(p.API) })
}

// bindByPlugin calls the Bind plugins from index from on, until one binds the pod. It
// first checks that the node still exists: it may have gone while Permit or PreBind held
// the pod, and the API server would accept the binding.
func (m *Machine) bindByPlugin(c *bindingCycle, from int) {
	if !m.hasNode(c) {
		m.fail(c.attempt, decision.Failed("binding of pod %s: node %q is gone", c.pod.Key(), c.node))
		return
	}
	for i, pl := range c.profile.Bind[from:] {
		c.bindPlugin = from + i
		if pl.Blocking.Bind {
			c.binder = byPlugin
			m.moveTo(bindSent, c)
			m.runPlugins(c, "Bind", pl.Name)
			return
		}
		c.binder = noExtender
		takes := false
		if err := m.guard.run("Bind", pl.Name, func() { takes = pl.Bind(c.pod, c.node) }); err != nil {
			m.fail(c.attempt, &decision.Status{Code: decision.Error, Err: err})
			return
		}
		if takes {
			m.sendBinding(c)
			return
		}
	}
	m.fail(c.attempt, decision.Failed("no Bind plugin of profile %q binds pod %s: each of them skips it", c.profile.Name, c.pod.Key()))
}

func (m *Machine) sendBinding(c *bindingCycle) {
	m.moveTo(bindSent, c)
	if c.binder != noExtender {
		m.emit(BindByExtender{Pod: c.pod, Node: c.node, Extender: c.binder})
		return
	}
	m.emit(Bind{Pod: c.pod, Node: c.node})
}

// bindReplied handles the result of a binding. Only a definite refusal frees the pod's
// place; if the reply was lost, the pod is read.
func (m *Machine) bindReplied(e BindReply) {
	ps := m.pods.byUID[e.UID]
	if ps == nil {
		return
	}
	if c := ps.ended; c != nil && c.phase == endedAwaitsBind {
		m.moveTo(ended, c)
		ps.ended = nil
		m.pods.forget(ps)
		if e.Result == BindDone {
			m.reportBound(c) // it was bound, however short its life
		}
		return
	}
	c := ps.binding
	if c == nil || c.phase != bindSent {
		return
	}
	if pl := m.table.Pod(e.UID); pl != nil && pl.Pod.NodeName == c.node {
		m.podBound(c) // the API has shown it bound, whatever the reply says
		return
	}
	switch {
	case e.Result == BindSkipped:
		m.bindByPlugin(c, c.bindPlugin+1)
	case c.binder == byPlugin && e.Result == BindDone:
		m.awaitClaimed(c)
	case c.binder == byPlugin: // it may have bound the pod before it failed
		c.lost.Refusal = e.Err
		m.readPod(c)
	case c.binder != noExtender: // of what the API did only the API can tell
		if e.Result == BindRefused || e.Result == BindUnknown && m.options.Extenders[c.binder].Ignorable {
			c.lost.Refusal = e.Err
		}
		m.readPod(c)
	case e.Result == BindDone:
		m.podBound(c)
	case e.Result == BindRefused && c.lost.Reads() == 0:
		m.bindingRefused(c, e.Err)
	case e.Result == BindRefused:
		c.lost.Refusal = e.Err
		m.readPod(c)
	default:
		m.readPod(c)
	}
}

// claimTimeout is how long the watch may take to show a binding that a Bind plugin
// reported.
const claimTimeout = 30 * time.Second

// awaitClaimed waits until the API shows the pod bound, as the plugin says that it is. When
// that takes long the pod is read: who bound nothing has failed.
func (m *Machine) awaitClaimed(c *bindingCycle) {
	plugin := c.profile.Bind[c.bindPlugin].Name
	c.deadlines = map[string]time.Time{plugin: m.now.Add(claimTimeout)}
	c.lost.Refusal = fmt.Errorf("it returned Success, and %v later the pod is not bound", claimTimeout)
	m.moveTo(bindClaimed, c)
}

func (m *Machine) readPod(c *bindingCycle) {
	m.moveTo(readSent, c)
	m.emit(ReadPod{Pod: c.pod, Delay: c.lost.Delay()})
}

// readReplied finds out about a lost binding (LostReply): bound to our node, it
// was done; bound elsewhere or gone, the assumption ends; unbound, the same
// binding is sent again while its node is there, until one is refused and the pod
// still unbound after that.
func (m *Machine) readReplied(e ReadReply) {
	ps := m.pods.byUID[e.UID]
	if ps == nil {
		return
	}
	if ps.staleRead {
		ps.staleRead = false
		m.readAgain(ps)
		return
	}
	if ps.goneByRead != nil {
		m.goneReplied(ps, e)
		return
	}
	c := ps.binding
	if c == nil || c.phase != readSent {
		m.recheckReplied(ps, e)
		return
	}
	if e.Err != nil {
		c.lost.ReadFailed()
		m.readPod(c) // without evidence the room stays taken
		return
	}
	c.lost.NotShown()
	switch {
	case !e.exists():
		m.endReadPod(ps)
	case e.Pod.NodeName != "":
		m.podSet(e.Pod)
	case c.lost.Refusal != nil:
		m.bindingRefused(c, c.lost.Refusal)
	case c.lost.Exhausted():
		m.bindingRefused(c, fmt.Errorf("binding of pod %s to node %s: no answer in %d tries, and the pod is not bound", c.pod.Key(), c.node, c.lost.Reads()))
	case !m.hasNode(c):
		m.readPod(c) // no binding goes to a node that is gone; one may still be on its way
	default:
		m.sendBinding(c)
	}
}

// hasNode reports whether the node exists on which the pod is assumed.
func (m *Machine) hasNode(c *bindingCycle) bool {
	return m.table.Node(c.row) != nil && m.table.Name(c.row) == c.node
}

// podBound ends the cycle of a pod that is bound.
func (m *Machine) podBound(c *bindingCycle) {
	m.endBindingCycle(c)
	m.dequeue(c.state)
	m.reportBound(c)
	m.profiles.endAttempt(c.pod)
	m.preemptors.retryAfterError(c.preemptors) // it was bound after all
	m.reads.sendUnconfirmed(c.state)
}

// endBindingCycle ends the cycle. If a reply is outstanding, the cycle stays in the pod's
// state as ended.
func (m *Machine) endBindingCycle(c *bindingCycle) {
	if c.state.ended != c {
		m.moveTo(ended, c)
	}
	c.state.binding = nil
	m.preemptors.skipBackoffs(c.preemptors)
}

// reportBound runs the PostBind plugins and emits the Scheduled event.
func (m *Machine) reportBound(c *bindingCycle) {
	if h := c.profile.Host; h != nil {
		h.ActivatePods(c.pod)
	}
	for _, pl := range c.profile.PostBind {
		if pl.PostBind == nil {
			m.runPlugins(c, "PostBind", pl.Name)
			continue
		}
		_ = m.guard.run("PostBind", pl.Name, func() { pl.PostBind(c.pod, c.node) })
	}
	m.emit(PublishEvent{Pod: c.pod, Reason: ReasonScheduled, Action: "Binding",
		Note: explain.Assigned(c.pod, c.node)})
}

func (m *Machine) bindingRefused(c *bindingCycle, err error) {
	if c.binder >= 0 {
		if !m.options.Extenders[c.binder].Ignorable {
			m.fail(c.attempt, &decision.Status{Code: decision.Error, Err: err})
			return
		}
		c.binder, c.lost = noExtender, LostReply{}
		m.bindByPlugin(c, 0)
		return
	}
	if r, ok := errors.AsType[*Rejection](err); ok {
		m.fail(c.attempt, r.status())
		return
	}
	plugin := c.profile.Bind[c.bindPlugin].Name
	m.fail(c.attempt, decision.Failed("running Bind plugin %q: %w", plugin, err))
}
