package machine

import (
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
)

// clusterChanged handles an event about anything but a pod.
func (m *Machine) clusterChanged(e Event) {
	switch e := e.(type) {
	case NodeSet:
		m.nodeSet(e.Node)
	case NodeGone:
		m.nodeGone(e.Name)
	case BudgetSet:
		m.budgets.set(e.Budget)
	case BudgetGone:
		m.budgets.remove(e.Namespace, e.Name)
	case SelectorOwnerSet:
		m.selectorOwnerChanged(m.table.SetSelectorOwner(e.Owner), e.Owner)
	case SelectorOwnerGone:
		m.selectorOwnerChanged(m.table.RemoveSelectorOwner(e.Kind, e.Namespace, e.Name), nil)
	case NamespaceSet:
		m.namespaceSet(e.Namespace)
	case NamespaceGone:
		m.namespaceSet(&object.Namespace{Name: e.Name})
	case ObjectSet:
		m.objectSet(e.Object)
	case ObjectGone:
		m.objectGone(e)
	case KindUnlisted:
		m.kindUnlisted(e)
	case KindListed:
		m.kindListed(e.Kind)
	}
}

// kindUnlisted records that objects of a kind cannot be listed. Gated pods run PreEnqueue
// again, as the lack of these objects may gate them.
func (m *Machine) kindUnlisted(e KindUnlisted) {
	m.unlisted[e.Kind] = e.Err
	m.queue.MoveAllToActiveOrBackoff(m.now, anythingChanged, nil)
}

// kindListed records that all objects of the kind are known.
func (m *Machine) kindListed(kind object.Kind) {
	delete(m.unlisted, kind)
	m.queue.MoveAllToActiveOrBackoff(m.now, anythingChanged, nil)
}

var anythingChanged = &framework.Event{Resource: framework.WildCard, ActionType: framework.All}

func (m *Machine) nodeSet(n *object.Node) {
	e := &framework.Event{Resource: framework.Node, ActionType: framework.Add, NewNode: n, Table: m.table}
	if row, ok := m.table.Find(n.Name); ok {
		e.OldNode = m.table.Node(row)
		e.ActionType = framework.NodeSchedulingPropertiesChange(e.OldNode, n)
	}
	m.table.SetNode(n)
	m.moveAll(e)
	m.bindings.recheckWrites(n.Name)
}

func (m *Machine) nodeGone(name string) {
	row, ok := m.table.Find(name)
	if !ok {
		return
	}
	old := m.table.Node(row)
	m.table.RemoveNode(name)
	m.moveAll(&framework.Event{Resource: framework.Node, ActionType: framework.Delete, OldNode: old})
	m.bindings.recheckWrites(name)
	for _, p := range m.queue.NominatedTo(name) {
		m.nominations.clear(m.pods.byUID[p.UID])
	}
}

// selectorOwnerChanged passes a change of a Service or controller to the queue; nil for
// none. As in v1.36 it moves no pod.
func (m *Machine) selectorOwnerChanged(old, now *object.SelectorOwner) {
	e := &framework.Event{Resource: framework.SelectorOwner, OldSelectorOwner: old, NewSelectorOwner: now}
	switch {
	case old == nil && now != nil:
		e.ActionType = framework.Add
	case old != nil && now == nil:
		e.ActionType = framework.Delete
	case old != nil && old.Key != now.Key:
		e.ActionType = framework.UpdateSelector
	}
	m.moveAll(e)
}

// namespaceSet sets the labels of a namespace; one that is deleted has none. As in v1.36
// no change of them moves a pod.
func (m *Machine) namespaceSet(n *object.Namespace) {
	before := m.table.SetNamespace(n)
	if maps.Equal(before, n.Labels) {
		return
	}
	m.moveAll(&framework.Event{
		Resource: framework.Namespace, ActionType: framework.UpdateNamespaceLabel,
		OldNamespace: &object.Namespace{Name: n.Name, Labels: before}, NewNamespace: n,
	})
}

func (m *Machine) objectSet(o object.Object) {
	if m.table.Overtaken(o) || !m.follows(o.Head().Kind) {
		return
	}
	e := &framework.Event{Resource: framework.ResourceOf(o.Head().Kind), ActionType: framework.Add, NewObject: o}
	if e.OldObject = m.table.SetObject(o); e.OldObject != nil {
		e.ActionType = framework.UpdateOther
	}
	if o.Head().Kind == object.PodGroups {
		m.groupShown(e.OldObject, o)
	}
	if o.Head().Kind == object.DeviceTaintRules {
		m.slicesRetainted()
	} else {
		m.moveAll(e)
	}
	m.bindings.recheckWrites("")
}

// writeReplied handles the reply to writes of PreBind, or of a PostFilter plugin.
func (m *Machine) writeReplied(e WriteReply) {
	for _, o := range e.Shown {
		m.objectReplied(o)
	}
	if e.Call != 0 {
		m.scheduling.postFilterWritten(e)
	} else {
		m.bindings.writesReplied(e)
	}
}

// objectReplied sets the object to the state in the reply to a write, unless the watch
// has shown a later one.
func (m *Machine) objectReplied(o object.Object) {
	if m.table.Overtakes(o) {
		m.objectSet(o)
		m.table.Replied(o)
	}
}

func (m *Machine) objectGone(e ObjectGone) {
	old := m.table.RemoveObject(e.Kind, e.Namespace, e.Name)
	if e.Kind == object.PodGroups {
		m.groupShown(old, nil)
	}
	switch {
	case old == nil:
		return
	case e.Kind == object.DeviceTaintRules:
		m.slicesRetainted()
	default:
		m.moveAll(&framework.Event{Resource: framework.ResourceOf(e.Kind), ActionType: framework.Delete, OldObject: old})
	}
	m.bindings.recheckWrites("")
}

// follows reports whether the machine reads objects of the kind. DeviceTaintRules need a
// plugin that reads them, that is the gate DRADeviceTaintRules. PodGroups need the gate
// GenericWorkload.
func (m *Machine) follows(kind object.Kind) bool {
	switch kind {
	case object.PodGroups:
		return m.options.PodGroups
	case object.DeviceTaintRules:
		return slices.Contains(profile.Reads(m.options.Profiles), kind)
	}
	return true
}

// slicesRetainted passes the slices to the queue whose devices a DeviceTaintRule taints,
// or taints no more. To plugins the slices changed; they know of no rules.
func (m *Machine) slicesRetainted() {
	for _, s := range m.table.Retainted() {
		m.moveAll(&framework.Event{Resource: framework.ResourceOf(object.ResourceSlices), ActionType: framework.UpdateOther, OldObject: s.Old, NewObject: s.New})
	}
}
