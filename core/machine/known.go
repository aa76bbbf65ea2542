package machine

import "k8s.io/apimachinery/pkg/types"

// Known is an object as the machine knows it.
type Known struct {
	Name    types.NamespacedName
	UID     types.UID // "" for a node
	Version string    // as the API showed it last; "" for a node, and for what is not where that version belongs
}

// KnownPods lists the pods that the machine knows, in no order. One that is shown
// bound belongs on its node, one that waits into the queue, or on a node on our
// word; one that is being deleted while it waits leaves the queue at its turn.
func (m *Machine) KnownPods() []Known {
	pods := make([]Known, 0, len(m.pods.byName))
	for name, ps := range m.pods.byName { // any order: so it says
		k := Known{Name: name, UID: ps.pod.UID, Version: ps.pod.Version}
		if !m.isWhereShown(ps) {
			k.Version = ""
		}
		pods = append(pods, k)
	}
	return pods
}

// isWhereShown reports whether the pod is where the API shows it: on its node, or
// waiting.
func (m *Machine) isWhereShown(ps *podState) bool {
	pl := m.table.Pod(ps.pod.UID)
	switch on := ps.pod.NodeName; {
	case ps.goneByRead != nil:
		return false
	case on == "":
		return pl != nil || ps.entry != nil || ps.pod.Terminating
	default:
		return pl != nil && m.table.Name(pl.Row) == on
	}
}

// KnownNodes lists the nodes of the table.
func (m *Machine) KnownNodes() []Known {
	nodes := make([]Known, 0, m.table.Live())
	for _, r := range m.table.All() {
		if m.table.Node(r) != nil { // else only pods of an unknown node are there
			nodes = append(nodes, Known{Name: types.NamespacedName{Name: m.table.Name(r)}})
		}
	}
	return nodes
}
