package machine

import (
	"maps"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// namespaceSet takes in the labels of a namespace; to one that is gone none
// are left. v1.36 lets no change of them wake a pod.
func (m *Machine) namespaceSet(n *object.Namespace) {
	before := m.table.SetNamespace(n)
	if maps.Equal(before, n.Labels) {
		return
	}
	m.move(&framework.Event{
		Resource: framework.Namespace, ActionType: framework.UpdateNamespaceLabel,
		OldNamespace: &object.Namespace{Name: n.Name, Labels: before}, NewNamespace: n,
	})
}
