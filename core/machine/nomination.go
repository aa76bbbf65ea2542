package machine

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// nominating says what becomes of the pod's nomination, and which nominations of other
// pods to its new node end, in favour of the pod.
type nominating struct {
	keep bool
	node string
	ends []types.UID
}

// nominationMoved sends the queue an event when a nomination to the node kept ends and
// the pod is nominated to, or placed on, the node now. What was reserved on kept is free
// for other pods of at most its priority.
func (m *Machine) nominationMoved(p *object.Pod, kept, now string) {
	if kept == "" || kept == now {
		return
	}
	old := *p
	old.NodeName, old.NominatedNode = "", kept // whoever bound it to another node
	m.queue.MoveAllToActiveOrBackoff(m.now, &framework.Event{
		Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: &old,
	}, func(other *object.Pod) bool { return other.Priority <= p.Priority && other.UID != p.UID })
}

// clearNomination ends the nomination of a pod in the queue.
func (m *Machine) clearNomination(ps *podState) {
	p, kept := ps.entry.Pod, ps.entry.NominatedNode()
	m.queue.Nominate(ps.entry, "")
	m.nominationMoved(p, kept, "")
	if none := m.nominationToWrite(ps, ""); none != nil {
		m.emit(PatchStatus{Pod: p, Nominated: none})
	}
}

// nominationToWrite returns what to write so that the API shows the pod nominated to
// the node: nil where it does, and was not asked for anything else meanwhile.
func (m *Machine) nominationToWrite(ps *podState, node string) *string {
	if node == ps.pod.NominatedNode && (ps.nominating == nil || *ps.nominating == node) {
		return nil
	}
	ps.nominating = &node
	return &node
}

// nominations gives the engine the queue's nominations.
type nominations struct {
	*queue.Queue
	machine *Machine
}

// NominatedNode returns the node that the pod is nominated to, "" for none.
func (n *nominations) NominatedNode(uid types.UID) string {
	return n.machine.Entry(uid).NominatedNode()
}
