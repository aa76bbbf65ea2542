package machine

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
)

// Known is an object as the machine knows it.
type Known struct {
	Name    types.NamespacedName
	UID     types.UID // "" for a node
	Version string    // as the API showed it last; "" for a node, and for what is not where that version belongs
}

// KnownPods lists the pods that the machine knows, in no order. One that is shown
// bound belongs on its node, one that waits into the queue, or on a node on our
// word; one that is being deleted while it waits leaves the queue at its turn.
func (v *Inspector) KnownPods() []Known {
	pods := make([]Known, 0, len(v.pods.byName))
	for name, ps := range v.pods.byName { // any order: so it says
		k := Known{Name: name, UID: ps.pod.UID, Version: ps.pod.Version}
		if !v.isWhereShown(ps) {
			k.Version = ""
		}
		pods = append(pods, k)
	}
	return pods
}

// isWhereShown reports whether the pod is where the API shows it: on its node, or
// waiting.
func (v *Inspector) isWhereShown(ps *podState) bool {
	pl := v.table.Pod(ps.pod.UID)
	switch on := ps.pod.NodeName; {
	case ps.goneByRead != nil:
		return false
	case on == "":
		return pl != nil || ps.entry != nil || ps.pod.Terminating
	default:
		return pl != nil && v.table.Name(pl.Row) == on
	}
}

// KnownNodes lists the nodes of the table.
func (v *Inspector) KnownNodes() []Known {
	nodes := make([]Known, 0, v.table.Live())
	for _, r := range v.table.All() {
		if v.table.Node(r) != nil { // else only pods of an unknown node are there
			nodes = append(nodes, Known{Name: types.NamespacedName{Name: v.table.Name(r)}})
		}
	}
	return nodes
}

// WaitingPod is a pod that Permit plugins hold, in its attempt of that number, and the
// names of these, sorted.
type WaitingPod struct {
	Pod     *object.Pod
	Attempt int
	Node    string
	Profile string
	Plugins []string
}

// GroupPod is a pod of a pod group, and the node on which it is bound or assumed, "" for
// none.
type GroupPod struct {
	Pod  *object.Pod
	Node string
}
