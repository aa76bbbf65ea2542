package machine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// flight is a pod between Assume and the end of its binding.
type flight struct {
	*attempt
	node  string
	phase phase
	// permits holds the Permit plugins that the pod waits for, and until when.
	permits map[string]time.Time
	// tries counts the reads that have shown the pod unbound after the reply to
	// its binding was lost, unread those that failed since: they show nothing.
	tries, unread int
	// refusal is why the API turned down a renewed binding. Of the one before,
	// whose reply was lost, that says nothing.
	refusal error
	// binder is the extender that binds the pod, or noExtender.
	binder int
	since  time.Time
	// deadlines are, by PreBind plugin, until when what it wrote may take to
	// have its effect.
	deadlines map[string]time.Time
	// writers are the plugins that asked for writes, one for each.
	writers []string
	// failed is why the attempt ends, while what it wrote is taken back.
	failed *decision.Status
	// preemptors wait for that end.
	preemptors []*object.Pod
}

type phase uint8

const (
	permitting phase = iota
	waiting          // a Permit plugin holds it
	writing          // PreBind writes are under way
	awaiting         // a PreBind plugin waits for what was written to take effect
	binding          // the binding is under way
	settling         // the binding's reply was lost: a read is under way
	retracting       // the attempt failed: what it wrote is taken back
)

const (
	maxPermitWait = 15 * time.Minute // v1.36's bound
	settleTries   = 8                // reads and renewed bindings before a lost one counts as refused
)

// assume places the pod on its node in memory and runs Reserve and Permit.
// nil: a plugin rejected it, and the attempt is over.
func (m *Machine) assume(a *attempt) *flight {
	f := &flight{attempt: a, node: a.record.Node, binder: noExtender, since: m.now}
	m.flights[a.pod.UID] = f
	m.assumed[a.pod.UID] = f.node
	m.table.Place(a.pod, f.node)
	if kept := m.queue.NominatedNode(a.pod.UID); kept != "" {
		m.queue.Unnominate(a.pod.UID)
		m.renominated(a.pod, kept, f.node)
	}
	for _, pl := range a.profile.Reserve {
		if pl.Reserve == nil {
			continue
		}
		if s := pl.Reserve(m.table, a.pod, f.node); s != nil && s.Code != decision.Success {
			m.fail(a, attribute(s, "Reserve", pl.Name), f)
			return nil
		}
	}
	if s := m.permit(f); s != nil {
		m.fail(a, s, f)
		return nil
	}
	if len(f.permits) == 0 {
		a.record.Result = decision.ResultScheduled
		m.do(Decided{a.record})
		return f
	}
	a.record.Result, f.phase = decision.ResultWaiting, waiting
	m.do(Decided{a.record})
	m.expect(f)
	return f
}

func (m *Machine) permit(f *flight) *decision.Status {
	for _, pl := range f.profile.Permit {
		out := pl.Permit(m.table, f.pod, f.node)
		m.release(pl.Name, out)
		if out.Status == nil || out.Status.Code == decision.Success {
			continue
		}
		if out.Status.Code != decision.Wait {
			return attribute(out.Status, "Permit", pl.Name)
		}
		if f.permits == nil {
			f.permits = map[string]time.Time{}
		}
		f.permits[pl.Name] = m.now.Add(min(out.Timeout, maxPermitWait))
	}
	return nil
}

// release ends the wait of other pods for the plugin.
func (m *Machine) release(plugin string, out framework.PermitResult) {
	for _, uid := range out.Allow {
		if f := m.flights[uid]; f != nil && f.phase == waiting {
			if delete(f.permits, plugin); len(f.permits) == 0 {
				m.advance(f)
			}
		}
	}
	for _, uid := range out.Reject {
		if f := m.flights[uid]; f != nil && f.phase == waiting {
			m.fail(f.attempt, m.permitRejection(f, plugin, "rejected"), f)
		}
	}
}

// expect shows in the API where the pod is about to be bound, when that takes
// a while.
func (m *Machine) expect(f *flight) {
	if node := m.nomination(f.pod, f.node); node != nil {
		m.do(Patch{Pod: f.pod, Nominated: node})
	}
}

func (m *Machine) expirePermits(f *flight) {
	for _, plugin := range sortedKeys(f.permits) {
		if deadline := f.permits[plugin]; !m.now.Before(deadline) {
			waited := m.now.Sub(f.since)
			m.fail(f.attempt, m.permitRejection(f, plugin,
				fmt.Sprintf("rejected due to timeout after waiting %v at plugin %v", waited, plugin)), f)
			return
		}
	}
}

func (m *Machine) permitRejection(f *flight, plugin, reason string) *decision.Status {
	if plugin == "" {
		for _, plugin = range sortedKeys(f.permits) {
			break
		}
	}
	return &decision.Status{Code: decision.Unschedulable, Plugin: plugin, Reasons: []string{reason}}
}

// advance takes a flight that no Permit plugin holds to PreBind, or to Bind.
func (m *Machine) advance(f *flight) {
	if f.phase == waiting && len(f.permits) > 0 {
		return
	}
	f.phase = permitting
	var writes []framework.Write
	for _, pl := range f.profile.PreBind {
		var w []framework.Write
		var s *decision.Status
		if err := m.guard("PreBind", pl.Name, func() { w, s = pl.PreBind(m.table, f.pod, f.node) }); err != nil {
			m.fail(f.attempt, &decision.Status{Code: decision.Error, Err: err}, f)
			return
		}
		if s != nil && s.Code != decision.Success && s.Code != decision.Skip {
			m.fail(f.attempt, attribute(s, "PreBind", pl.Name), f)
			return
		}
		writes = append(writes, w...)
		for range w {
			f.writers = append(f.writers, pl.Name)
		}
	}
	if len(writes) > 0 {
		m.expect(f)
		f.phase = writing
		m.do(Write{Pod: f.pod, Writes: writes})
		return
	}
	m.prepared(f)
}

// prepared goes on when PreBind has nothing left to write.
func (m *Machine) prepared(f *flight) {
	for _, pl := range f.profile.PreBind {
		if pl.WaitNotice == nil {
			continue
		}
		var n *framework.Notice
		if err := m.guard("PreBind", pl.Name, func() { n = pl.WaitNotice(m.table, f.pod, f.node) }); err != nil {
			m.fail(f.attempt, &decision.Status{Code: decision.Error, Err: err}, f)
			return
		}
		if n != nil {
			m.do(Announce{Pod: f.pod, Reason: n.Reason, Action: n.Action, Note: n.Note})
		}
	}
	m.await(f)
}

// await binds the pod if no PreBind plugin waits for its writes to take effect.
func (m *Machine) await(f *flight) {
	for _, pl := range f.profile.PreBind {
		if pl.WritesDone == nil {
			continue
		}
		var s *decision.Status
		if err := m.guard("PreBind", pl.Name, func() { s = pl.WritesDone(m.table, f.pod, f.node) }); err != nil {
			m.fail(f.attempt, &decision.Status{Code: decision.Error, Err: err}, f)
			return
		}
		switch {
		case s == nil || s.Code == decision.Success:
		case s.Code != decision.Wait:
			m.fail(f.attempt, attribute(s, "PreBind", pl.Name), f)
			return
		default:
			if f.deadlines == nil {
				f.deadlines = map[string]time.Time{}
			}
			if _, known := f.deadlines[pl.Name]; !known {
				f.deadlines[pl.Name] = m.now.Add(pl.WritesTimeout)
			}
			if f.phase != awaiting && len(f.writers) == 0 {
				m.expect(f) // where there are writes, it was told with them
			}
			f.phase = awaiting
			m.awaiting[f.pod.UID] = f
			return
		}
	}
	delete(m.awaiting, f.pod.UID)
	m.bind(f)
}

// awaitAgain asks the pods that wait for writes to take effect, on the node or
// on all ("").
func (m *Machine) awaitAgain(node string) {
	for _, uid := range sortedUIDs(m.awaiting) {
		if f := m.awaiting[uid]; f != nil && (node == "" || f.node == node) {
			m.await(f)
		}
	}
}

// expireAwait fails a pod that has waited long enough.
func (m *Machine) expireAwait(f *flight) {
	for _, plugin := range sortedKeys(f.deadlines) {
		if !m.now.Before(f.deadlines[plugin]) {
			m.fail(f.attempt, attribute(&decision.Status{Code: decision.Error, Err: f.profile.Plugins[plugin].WritesTimeoutError}, "PreBind", plugin), f)
			return
		}
	}
}

// bind has the pod bound: by the extender that binds it, or else by the first
// Bind plugin that takes it.
func (m *Machine) bind(f *flight) {
	if f.binder = m.binder(f.pod); f.binder != noExtender {
		m.send(f)
		return
	}
	m.bindByPlugin(f)
}

func (m *Machine) bindByPlugin(f *flight) {
	for _, pl := range f.profile.Bind {
		takes := false
		if err := m.guard("Bind", pl.Name, func() { takes = pl.Bind(f.pod, f.node) }); err != nil {
			m.fail(f.attempt, &decision.Status{Code: decision.Error, Err: err}, f)
			return
		}
		if takes {
			m.send(f)
			return
		}
	}
	m.fail(f.attempt, &decision.Status{Code: decision.Error, Err: fmt.Errorf("no Bind plugin of profile %q takes the pod", f.profile.Name)}, f)
}

func (m *Machine) send(f *flight) {
	f.phase = binding
	if f.binder != noExtender {
		m.do(BindBy{Pod: f.pod, Node: f.node, Extender: f.binder})
		return
	}
	m.do(Bind{Pod: f.pod, Node: f.node})
}

// bound takes in what is known of a binding. Only a sure refusal gives the
// room back; a lost reply is settled by reading the pod.
func (m *Machine) bound(e Bound) {
	if f := m.ended[e.UID]; f != nil {
		delete(m.ended, e.UID)
		if e.Result == BindDone {
			m.proclaim(f) // it was bound, however short its life
		}
		return
	}
	f := m.flights[e.UID]
	if f == nil || f.phase != binding {
		return
	}
	if pl := m.table.Pod(e.UID); pl != nil && pl.Pod.NodeName == f.node {
		m.settled(f) // the API has shown it bound, whatever the reply says
		return
	}
	if f.binder != noExtender {
		m.boundByExtender(f, e)
		return
	}
	switch e.Result {
	case BindDone:
		m.settled(f)
	case BindRefused:
		if f.tries == 0 {
			m.refused(f, e.Err)
			return
		}
		f.refusal = e.Err
		m.settle(f)
	case BindUnknown:
		m.settle(f)
	}
}

// boundByExtender takes in what an extender says of a binding: of what the API
// did only the API can tell.
func (m *Machine) boundByExtender(f *flight, e Bound) {
	if e.Result == BindRefused || e.Result == BindUnknown && m.options.Extenders[f.binder].Ignorable {
		f.refusal = e.Err
	}
	m.settle(f)
}

func (m *Machine) settle(f *flight) {
	f.phase = settling
	m.do(Read{Pod: f.pod, Delay: pauseAfter(f.tries + f.unread)})
}

// pauseAfter is how long to wait after so many reads of a pod before the next.
func pauseAfter(reads int) time.Duration {
	if reads == 0 {
		return 0
	}
	return min(time.Second<<min(reads-1, 4), 10*time.Second)
}

// podRead settles a lost binding: bound to our node, it was done; bound
// elsewhere or gone, the assumption ends; unbound, the same binding is tried
// again, so that an earlier one that is still under way can only do the same,
// until one is refused and the pod still unbound after that.
func (m *Machine) podRead(e PodRead) {
	f := m.flights[e.UID]
	if f == nil || f.phase != settling {
		m.doubtRead(e)
		return
	}
	if e.Err != nil {
		f.unread++
		m.settle(f) // without evidence the room stays taken
		return
	}
	f.tries++
	f.unread = 0
	switch {
	case e.Pod == nil || e.Pod.UID != e.UID:
		m.podGone(PodGone{UID: e.UID, Namespace: f.pod.Namespace, Name: f.pod.Name})
	case e.Pod.NodeName != "":
		m.podSet(e.Pod)
	case f.refusal != nil:
		m.refused(f, f.refusal)
	case f.tries >= settleTries:
		m.refused(f, fmt.Errorf("binding of pod %s to node %s: no answer in %d tries, and the pod is not bound", f.pod.Key(), f.node, f.tries))
	default:
		m.send(f)
	}
}

// settled ends a flight whose pod is bound.
func (m *Machine) settled(f *flight) {
	m.land(f)
	m.queue.Done(f.pod.UID)
	m.proclaim(f)
	m.retry(f.preemptors) // it was bound after all
	m.askDoubt(f.pod)
}

// proclaim tells all who want to know that the pod was bound.
func (m *Machine) proclaim(f *flight) {
	for _, pl := range f.profile.PostBind {
		_ = m.guard("PostBind", pl.Name, func() { pl.PostBind(f.pod, f.node) })
	}
	m.do(Announce{Pod: f.pod, Reason: "Scheduled", Action: "Binding",
		Note: explain.Assigned(f.pod, f.node)})
}

func (m *Machine) refused(f *flight, err error) {
	if f.binder != noExtender {
		if !m.options.Extenders[f.binder].Ignorable {
			m.fail(f.attempt, &decision.Status{Code: decision.Error, Err: err}, f)
			return
		}
		f.binder, f.refusal, f.tries = noExtender, nil, 0
		m.bindByPlugin(f)
		return
	}
	plugin := f.profile.Bind[0].Name
	m.fail(f.attempt, &decision.Status{Code: decision.Error, Err: fmt.Errorf("running Bind plugin %q: %w", plugin, err)}, f)
}

func (m *Machine) land(f *flight) {
	delete(m.flights, f.pod.UID)
	delete(m.awaiting, f.pod.UID)
	m.hurry(f.preemptors)
}

// unreserve takes the pod off its node, and ends what was reserved for it or,
// while that is being written, lets written do so.
func (m *Machine) unreserve(f *flight) {
	if f.phase == writing {
		m.ended[f.pod.UID] = f
	} else {
		m.giveBack(f)
	}
	delete(m.assumed, f.pod.UID)
	delete(m.doubts, f.pod.UID)
	m.table.Remove(f.pod.UID)
}

// giveBack undoes Reserve in reverse order.
func (m *Machine) giveBack(f *flight) {
	for _, pl := range slices.Backward(f.profile.Reserve) {
		if pl.Unreserve != nil {
			_ = m.guard("Unreserve", pl.Name, func() { pl.Unreserve(m.table, f.pod, f.node) })
		}
	}
}

// forgotten is the event of an assumption that ended: room became free.
func forgotten(f *flight) *framework.Event {
	return &framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: on(f.pod, f.node)}
}

func attribute(s *decision.Status, point, plugin string) *decision.Status {
	s.Plugin = plugin
	if s.Code == decision.Error {
		err := s.Err
		if err == nil {
			err = fmt.Errorf("%s", s.Reasons)
		}
		s.Err = fmt.Errorf("running %s plugin %q: %w", point, plugin, err)
	}
	return s
}

func sortedKeys(m map[string]time.Time) []string { return slices.Sorted(maps.Keys(m)) }
