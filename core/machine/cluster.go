package machine

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

func (m *Machine) nodeSet(n *object.Node) {
	e := &framework.Event{Resource: framework.Node, ActionType: framework.Add, NewNode: n, Table: m.table}
	if row, ok := m.table.Find(n.Name); ok {
		e.OldNode = m.table.Node(row)
		e.ActionType = framework.NodeSchedulingPropertiesChange(e.OldNode, n)
	}
	m.table.SetNode(n)
	m.move(e)
	m.awaitAgain(n.Name)
}

func (m *Machine) nodeGone(name string) {
	row, ok := m.table.Find(name)
	if !ok {
		return
	}
	old := m.table.Node(row)
	m.table.RemoveNode(name)
	m.move(&framework.Event{Resource: framework.Node, ActionType: framework.Delete, OldNode: old})
	m.awaitAgain(name)
	for _, p := range m.queue.NominatedTo(name) {
		m.clearNomination(p)
	}
}

func (m *Machine) podSet(p *object.Pod) {
	key := p.Key()
	if known, ok := m.uids[key]; ok && known != p.UID {
		m.podGone(PodGone{UID: known, Namespace: p.Namespace, Name: p.Name})
	}
	switch {
	case p.Terminal:
		m.podGone(PodGone{UID: p.UID, Namespace: p.Namespace, Name: p.Name})
	case p.NodeName != "":
		m.uids[key] = p.UID
		m.podAssigned(p)
	case m.profiles[p.SchedulerName] != nil:
		m.uids[key] = p.UID
		m.podPending(p)
	}
}

// podAssigned takes in a pod that the API shows bound. That is the evidence
// which ends an assumption, whoever bound it.
func (m *Machine) podAssigned(p *object.Pod) {
	old := m.table.Pod(p.UID)
	f := m.flights[p.UID]
	kept := m.queue.NominatedNode(p.UID)
	m.queue.Unnominate(p.UID)
	delete(m.gated, p.UID)
	delete(m.asked, p.UID)
	delete(m.hunts, p.UID)
	delete(m.assumed, p.UID)
	m.confirm(p.UID)
	if f != nil && f.node != p.NodeName {
		// Another writer bound it elsewhere: the API proves the assumption false.
		m.unreserve(f)
		m.land(f)
		m.move(forgotten(f))
		f, old = nil, nil
	}
	if f == nil {
		m.unask(p.UID)
		m.queue.Delete(p.UID)
	}
	if old != nil && m.table.Name(old.Row) != p.NodeName {
		m.move(&framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: old.Pod})
		old = nil
	}
	var was *object.Pod
	if old != nil {
		was = old.Pod
	}
	m.table.Place(p, p.NodeName)
	m.renominated(p, kept, p.NodeName)
	if was == nil || was.NodeName == "" {
		m.move(&framework.Event{Resource: framework.AssignedPod, ActionType: framework.Add, NewPod: p})
	}
	if was != nil {
		m.podChanged(was, p)
	}
	if f != nil && f.phase != binding && f.phase != writing { // the answers to these end the flight
		m.settled(f)
	}
}

// podChanged lets the queue know of an update of a placed pod. One that was
// assumed until now may be bound with other labels, or with less to ask for,
// than it was assumed with.
func (m *Machine) podChanged(old, now *object.Pod) {
	if a := queue.Changes(old, now); old.NodeName != "" || a != framework.UpdateOther {
		m.move(&framework.Event{Resource: framework.AssignedPod, ActionType: a, OldPod: on(old, now.NodeName), NewPod: now})
	}
}

// podPending takes in a pod that waits to be scheduled by one of our
// profiles.
func (m *Machine) podPending(p *object.Pod) {
	if pl := m.table.Pod(p.UID); pl != nil && pl.Pod.NodeName != "" {
		m.doubt(pl.Pod)
		return
	}
	if asked, ok := m.asked[p.UID]; ok && asked == p.NominatedNode {
		delete(m.asked, p.UID)
	}
	f := m.flights[p.UID]
	if f != nil && p.Terminating && f.phase == waiting {
		m.fail(f.attempt, m.permitRejection(f, "", "pod is being deleted"), f)
		f = m.flights[p.UID]
	}
	if _, done := m.assumed[p.UID]; done && f == nil {
		return // bound by us; the API will show it
	}
	if m.queue.Where(p.UID) == queue.Nowhere {
		m.happened(framework.UnscheduledPod, framework.Add)
		m.queue.Add(m.now, p)
		return
	}
	m.happened(framework.UnscheduledPod, framework.UpdateOther)
	kept := m.queue.NominatedNode(p.UID)
	m.queue.Update(m.now, p)
	m.renominated(p, kept, m.queue.NominatedNode(p.UID))
}

func (m *Machine) podGone(e PodGone) {
	uid := e.UID
	key := e.Namespace + "/" + e.Name
	if uid == "" {
		uid = m.uids[key]
	}
	if m.uids[key] == uid {
		delete(m.uids, key)
	}
	delete(m.assumed, uid)
	delete(m.doubts, uid)
	delete(m.gated, uid)
	delete(m.asked, uid)
	delete(m.hunts, uid)
	m.evictionDone(uid)
	m.unask(uid)
	m.unqueue(uid)
	if f := m.flights[uid]; f != nil {
		m.unreserve(f)
		m.land(f)
		m.move(forgotten(f))
		if f.phase == binding {
			m.ended[uid] = f
		}
	}
	if pl := m.table.Pod(uid); pl != nil {
		node := m.table.Name(pl.Row)
		m.table.Remove(uid)
		m.move(&framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: on(pl.Pod, node)})
	}
}

// podUnreadable takes a pod that waits out of the queue and says why. For one
// that is assumed it is too late: the API will show what became of it.
func (m *Machine) podUnreadable(e PodUnreadable) {
	if m.profiles[e.SchedulerName] == nil || m.table.Pod(e.UID) != nil {
		return
	}
	m.podGone(PodGone{UID: e.UID, Namespace: e.Namespace, Name: e.Name})
	p := &object.Pod{UID: e.UID, Namespace: e.Namespace, Name: e.Name, SchedulerName: e.SchedulerName}
	r := &decision.Decision{UID: p.UID, Pod: p.Key(), Profile: e.SchedulerName, Result: decision.ResultError,
		NodesTotal: m.table.Live(), Err: fmt.Errorf("the pod cannot be decoded: %w", e.Why)}
	m.do(Decided{r})
	m.do(Announce{Pod: p, Warning: true, Reason: "FailedScheduling", Action: "Scheduling", Note: explain.Message(r)})
}

// unqueue takes the pod out of the queue.
func (m *Machine) unqueue(uid types.UID) {
	s, queued := m.queue.State(uid)
	m.queue.Delete(uid)
	if queued {
		m.happened(framework.UnscheduledPod, framework.Delete)
		m.renominated(s.Pod, s.NominatedNode, "")
	}
}

// renominated lets the queue know that the nomination to the node `kept` ended
// and the pod is nominated to, or placed on, the node `now`: the room that was
// kept for it is free for others of at most its priority.
func (m *Machine) renominated(p *object.Pod, kept, now string) {
	if kept == "" || kept == now {
		return
	}
	old := *p
	old.NominatedNode = kept
	m.queue.MoveUpTo(m.now, &framework.Event{
		Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: &old,
	}, old.Priority)
}

// move lets the queue ask which waiting pods the event may help.
func (m *Machine) move(e *framework.Event) {
	if e.ActionType != 0 {
		m.happened(e.Resource, e.ActionType)
		m.queue.Move(m.now, e)
	}
}

// preEnqueue asks the pod's profile whether it may enter the queue, and gives
// a record of the first refusal.
func (m *Machine) preEnqueue(p *object.Pod) *decision.Status {
	prof := m.profiles[p.SchedulerName]
	for _, pl := range prof.PreEnqueue {
		if m.blind(pl) != nil {
			continue // the attempt will say why it fails
		}
		var s *decision.Status
		if err := m.guard("PreEnqueue", pl.Name, func() { s = pl.PreEnqueue(m.table, p) }); err != nil {
			s = &decision.Status{Code: decision.Error, Err: err, Reasons: []string{err.Error()}}
		}
		if s == nil || s.Code == decision.Success {
			continue
		}
		s.Plugin = pl.Name
		if !m.gated[p.UID] {
			m.gated[p.UID] = true
			m.do(Decided{&decision.Decision{
				UID: p.UID, Pod: p.Key(), Profile: prof.Name, Result: decision.ResultGated, Gate: s,
				NodesTotal: m.table.Live(), RejectedBy: []string{pl.Name},
			}})
		}
		return s
	}
	return nil
}

// on is the pod as it would look bound to the node.
func on(p *object.Pod, node string) *object.Pod {
	if p.NodeName == node {
		return p
	}
	q := *p
	q.NodeName = node
	return &q
}
