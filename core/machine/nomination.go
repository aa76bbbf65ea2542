package machine

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// nominations are those of the pods in the queue, which keeps them: it also shows them to
// the engine. What changes one also tells the queue, and the API.
type nominations struct {
	*step
	*queue.Queue
	pods *pods
}

// nominating says what becomes of the pod's nomination, and which nominations of other
// pods to its new node end, in favour of the pod.
type nominating struct {
	keep bool
	node string
	ends []types.UID
}

// moved sends the queue an event when a nomination to the node kept ends and
// the pod is nominated to, or placed on, the node now. What was reserved on kept is free
// for other pods of at most its priority.
func (n *nominations) moved(p *object.Pod, kept, now string) {
	if kept == "" || kept == now {
		return
	}
	old := *p
	old.NodeName, old.NominatedNode = "", kept // whoever bound it to another node
	n.queue.MoveAllToActiveOrBackoff(n.now, &framework.Event{
		Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: &old,
	}, func(other *object.Pod) bool { return other.Priority <= p.Priority && other.UID != p.UID })
}

// clear ends the nomination of a pod in the queue.
func (n *nominations) clear(ps *podState) {
	p, kept := ps.entry.Pod, ps.entry.NominatedNode()
	n.queue.Nominate(ps.entry, "")
	n.moved(p, kept, "")
	if none := n.toWrite(ps, ""); none != nil {
		n.emit(PatchStatus{Pod: p, Nominated: none})
	}
}

// toWrite returns what to write so that the API shows the pod nominated to
// the node: nil where it does, and was not asked for anything else meanwhile.
func (n *nominations) toWrite(ps *podState, node string) *string {
	if node == ps.pod.NominatedNode && (ps.nominating == nil || *ps.nominating == node) {
		return nil
	}
	ps.nominating = &node
	return &node
}

// NominatedNode returns the node that the pod is nominated to, "" for none.
func (n *nominations) NominatedNode(uid types.UID) string {
	return n.pods.entry(uid).NominatedNode()
}
