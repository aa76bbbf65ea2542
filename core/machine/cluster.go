package machine

import (
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/index/devicepools"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
)

// cluster follows everything in the cluster but pods: it keeps the table true, and tells
// the queue what changed.
type cluster struct {
	*step
	options     *Options
	unlisted    unlistedKinds
	budgets     *budgets
	pods        *pods
	nominations *nominations
	bindings    *bindingCycles
	groups      *podGroups
}

// handle handles an event about a node, a budget, an owner of a selector, a namespace, another
// API object, or kinds that can be listed. It ignores others.
func (c *cluster) handle(e Event) {
	switch e := e.(type) {
	case NodeSet:
		c.nodeSet(e.Node)
	case NodeGone:
		c.nodeGone(e.Name)
	case BudgetSet:
		c.budgets.set(e.Budget)
	case BudgetGone:
		c.budgets.remove(e.Namespace, e.Name)
	case SelectorOwnerSet:
		c.selectorOwnerChanged(c.table.SelectorOwners().Set(e.Owner), e.Owner)
	case SelectorOwnerGone:
		c.selectorOwnerChanged(c.table.SelectorOwners().Remove(e.Kind, e.Namespace, e.Name), nil)
	case NamespaceSet:
		c.namespaceSet(e.Namespace)
	case NamespaceGone:
		c.namespaceSet(&object.Namespace{Name: e.Name})
	case ObjectSet:
		c.objectSet(e.Object)
	case ObjectGone:
		c.objectGone(e)
	case KindUnlisted:
		c.kindUnlisted(e)
	case KindListed:
		c.kindListed(e.Kind)
	}
}

// kindUnlisted records that objects of a kind cannot be listed. Gated pods run PreEnqueue
// again, as the lack of these objects may gate them.
func (c *cluster) kindUnlisted(e KindUnlisted) {
	c.unlisted[e.Kind] = e.Err
	c.queue.MoveAllToActiveOrBackoff(c.now, anythingChanged, nil)
}

// kindListed records that all objects of the kind are known.
func (c *cluster) kindListed(kind object.Kind) {
	delete(c.unlisted, kind)
	c.queue.MoveAllToActiveOrBackoff(c.now, anythingChanged, nil)
}

var anythingChanged = &framework.Event{Resource: framework.WildCard, ActionType: framework.All}

// nodeSet adds or updates the node, moves the pods that the change may help, and checks
// again the pods whose binding waits for writes on the node.
func (c *cluster) nodeSet(n *object.Node) {
	e := &framework.Event{Resource: framework.Node, ActionType: framework.Add, NewNode: n, Table: c.table}
	if row, ok := c.table.Find(n.Name); ok {
		e.OldNode = c.table.Node(row)
		e.ActionType = framework.NodeSchedulingPropertiesChange(e.OldNode, n)
	}
	c.table.SetNode(n)
	c.moveAll(e)
	c.bindings.recheckWrites(n.Name)
}

func (c *cluster) nodeGone(name string) {
	row, ok := c.table.Find(name)
	if !ok {
		return
	}
	old := c.table.Node(row)
	c.table.RemoveNode(name)
	c.moveAll(&framework.Event{Resource: framework.Node, ActionType: framework.Delete, OldNode: old})
	c.bindings.recheckWrites(name)
	for _, p := range c.queue.NominatedTo(name) {
		c.nominations.clear(c.pods.byUID[p.UID])
	}
}

// selectorOwnerChanged passes a change of a Service or controller to the queue; nil for
// none. As in v1.36 it moves no pod.
func (c *cluster) selectorOwnerChanged(old, now *object.SelectorOwner) {
	e := &framework.Event{Resource: framework.SelectorOwner, OldSelectorOwner: old, NewSelectorOwner: now}
	switch {
	case old == nil && now != nil:
		e.ActionType = framework.Add
	case old != nil && now == nil:
		e.ActionType = framework.Delete
	case old != nil && old.Key != now.Key:
		e.ActionType = framework.UpdateSelector
	}
	c.moveAll(e)
}

// namespaceSet sets the labels of a namespace; one that is deleted has none. As in v1.36
// no change of them moves a pod.
func (c *cluster) namespaceSet(n *object.Namespace) {
	before := c.table.Namespaces().Set(n)
	if maps.Equal(before, n.Labels) {
		return
	}
	c.moveAll(&framework.Event{
		Resource: framework.Namespace, ActionType: framework.UpdateNamespaceLabel,
		OldNamespace: &object.Namespace{Name: n.Name, Labels: before}, NewNamespace: n,
	})
}

func (c *cluster) objectSet(o object.Object) {
	if c.table.Objects().Overtaken(o) || !c.follows(o.Head().Kind) {
		return
	}
	e := &framework.Event{Resource: framework.ResourceOf(o.Head().Kind), ActionType: framework.Add, NewObject: o}
	if e.OldObject = c.table.Objects().Set(o); e.OldObject != nil {
		e.ActionType = framework.UpdateOther
	}
	if o.Head().Kind == object.PodGroups {
		c.groups.shown(e.OldObject, o)
	}
	if o.Head().Kind == object.DeviceTaintRules {
		c.slicesRetainted()
	} else {
		c.moveAll(e)
	}
	c.bindings.recheckWrites("")
}

// writeReplied handles the reply to writes of PreBind, or of a PostFilter plugin.
func (m *Machine) writeReplied(e WriteReply) {
	for _, o := range e.Shown {
		m.cluster.objectReplied(o)
	}
	if e.Call != 0 {
		m.scheduling.postFilterWritten(e)
	} else {
		m.bindings.writesReplied(e)
	}
}

// objectReplied sets the object to the state in the reply to a write, unless the watch
// has shown a later one.
func (c *cluster) objectReplied(o object.Object) {
	if c.table.Objects().Overtakes(o) {
		c.objectSet(o)
		c.table.Objects().Replied(o)
	}
}

func (c *cluster) objectGone(e ObjectGone) {
	old := c.table.Objects().Remove(e.Kind, e.Namespace, e.Name)
	if e.Kind == object.PodGroups {
		c.groups.shown(old, nil)
	}
	switch {
	case old == nil:
		return
	case e.Kind == object.DeviceTaintRules:
		c.slicesRetainted()
	default:
		c.moveAll(&framework.Event{Resource: framework.ResourceOf(e.Kind), ActionType: framework.Delete, OldObject: old})
	}
	c.bindings.recheckWrites("")
}

// follows reports whether the machine reads objects of the kind. DeviceTaintRules need a
// plugin that reads them, that is the gate DRADeviceTaintRules. PodGroups need the gate
// GenericWorkload.
func (c *cluster) follows(kind object.Kind) bool {
	switch kind {
	case object.PodGroups:
		return c.options.PodGroups
	case object.DeviceTaintRules:
		return slices.Contains(profile.Reads(c.options.Profiles), kind)
	}
	return true
}

// slicesRetainted passes the slices to the queue whose devices a DeviceTaintRule taints,
// or taints no more. To plugins the slices changed; they know of no rules.
func (c *cluster) slicesRetainted() {
	for _, s := range devicepools.Of(c.table).Retainted() {
		c.moveAll(&framework.Event{Resource: framework.ResourceOf(object.ResourceSlices), ActionType: framework.UpdateOther, OldObject: s.Old, NewObject: s.New})
	}
}
