package machine

import (
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// Cluster returns events from which another machine gets to know the cluster as this one
// does: assumed pods are bound in them, and nominations are the queue's. The objects are
// shared; nobody changes them.
func (m *Machine) Cluster() []Event {
	events := make([]Event, 0, m.table.Live()+len(m.pods.byName))
	for _, kind := range slices.Sorted(maps.Keys(m.unlisted)) {
		events = append(events, KindUnlisted{Kind: kind, Err: m.unlisted[kind]})
	}
	for _, n := range m.table.Namespaces() {
		events = append(events, NamespaceSet{Namespace: n})
	}
	for _, owner := range m.table.AllSelectorOwners() {
		events = append(events, SelectorOwnerSet{Owner: owner})
	}
	for _, b := range m.budgets.list {
		events = append(events, BudgetSet{Budget: b})
	}
	for kind := range object.Kinds {
		for _, o := range m.table.Objects(kind) {
			events = append(events, ObjectSet{Object: o})
		}
	}
	for _, r := range m.table.All() {
		if n := m.table.Node(r); n != nil { // else only pods of an unknown node are there
			events = append(events, NodeSet{Node: n})
		}
	}
	for _, r := range m.table.All() {
		for _, pl := range m.table.Pods(r) {
			events = append(events, PodSet{Pod: boundTo(pl.Pod, m.table.Name(r))})
		}
	}
	for e := range m.queue.Entries() {
		p := e.Pod
		if m.table.Pod(p.UID) != nil {
			continue
		}
		if p.NominatedNode != e.NominatedNode() {
			nominated := *p
			nominated.NominatedNode, p = e.NominatedNode(), &nominated
		}
		events = append(events, PodSet{Pod: p})
	}
	return events
}
