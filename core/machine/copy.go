package machine

import (
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// Cluster returns events from which another machine gets to know the cluster as this one
// does: assumed pods are bound in them, and nominations are the queue's. The objects are
// shared; nobody changes them.
func (v *Inspector) Cluster() []Event {
	events := make([]Event, 0, v.table.Live()+len(v.pods.byName))
	for _, kind := range slices.Sorted(maps.Keys(v.unlisted)) {
		events = append(events, KindUnlisted{Kind: kind, Err: v.unlisted[kind]})
	}
	for _, n := range v.table.Namespaces().List() {
		events = append(events, NamespaceSet{Namespace: n})
	}
	for _, owner := range v.table.SelectorOwners().List() {
		events = append(events, SelectorOwnerSet{Owner: owner})
	}
	for _, b := range v.budgets.list {
		events = append(events, BudgetSet{Budget: b})
	}
	for kind := range object.Kinds {
		for _, o := range v.table.Objects().List(kind) {
			events = append(events, ObjectSet{Object: o})
		}
	}
	for _, r := range v.table.All() {
		if n := v.table.Node(r); n != nil { // else only pods of an unknown node are there
			events = append(events, NodeSet{Node: n})
		}
	}
	for _, r := range v.table.All() {
		for _, pl := range v.table.Pods(r) {
			events = append(events, PodSet{Pod: boundTo(pl.Pod, v.table.Name(r))})
		}
	}
	for e := range v.queue.Entries() {
		p := e.Pod
		if v.table.Pod(p.UID) != nil {
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
