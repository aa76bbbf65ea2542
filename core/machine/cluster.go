package machine

import (
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/index/devicepools"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
)

// cluster handles the events about everything but pods: it updates the table and passes the
// changes to the queue.
type cluster struct {
	*step
	options     *Options
	unlisted    unlistedKinds
	budgets     *budgets
	pods        *pods
	nominations *nominations
	bindings    *bindingCycles
	groups      *podGroups
	quotas      *quotas
	statuses    *groupStatuses
}

// handle handles an event about a node, a PodDisruptionBudget, a Service or controller, a
// namespace, or another API object, or about kinds that cannot be listed. It ignores other events.
func (c *cluster) handle(e Event) {
	switch e := e.(type) {
	case NodeSet:
		c.nodeSet(e.Node)
	case NodeGone:
		c.nodeGone(e.Name)
	case BudgetSet:
		c.budgetChanged(c.budgets.set(e.Budget))
	case BudgetGone:
		c.budgetChanged(c.budgets.remove(e.Namespace, e.Name), nil)
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

// kindUnlisted records that objects of a kind cannot be listed. It also lets all pods
// be tried again, as plugins may have rejected or gated them for want of these objects.
func (c *cluster) kindUnlisted(e KindUnlisted) {
	c.unlisted[e.Kind] = e.Err
	c.queue.MoveAllToActiveOrBackoff(c.now, anythingChanged(), nil)
}

// kindListed records that all objects of the kind are known now, and lets all pods be tried
// again.
func (c *cluster) kindListed(kind object.Kind) {
	delete(c.unlisted, kind)
	c.queue.MoveAllToActiveOrBackoff(c.now, anythingChanged(), nil)
}

// anythingChanged returns an event that may help every pod.
func anythingChanged() *framework.Event {
	return &framework.Event{Resource: framework.WildCard, ActionType: framework.All}
}

// nodeSet adds or updates the node, moves the pods that the change may help, and checks
// again the pods whose binding waits for writes on the node.
func (c *cluster) nodeSet(n *object.Node) {
	e := &framework.Event{Resource: framework.Node, ActionType: framework.Add, NewNode: n}
	if row, ok := c.table.Find(n.Name); ok {
		e.OldNode = c.table.Node(row)
		e.ActionType = framework.NodeSchedulingPropertiesChange(e.OldNode, n)
	}
	c.table.SetNode(n)
	c.moveAll(e)
	if e.OldNode != nil {
		c.groups.relabelled(e.OldNode, n)
	}
	c.bindings.recheckWrites(n.Name)
}

// nodeGone removes the node, passes that to the queue, and ends nominations to it. It ignores a
// node that is not known.
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

// selectorOwnerChanged passes a change of a Service or controller from old to now to the queue,
// unless the selector stays; nil means that it did not or does not exist. Unlike in kube-scheduler
// that moves the pods whose default spread constraints may change.
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

// namespaceSet sets the labels of a namespace, none if it is deleted, and passes the change to the
// queue. Unlike in kube-scheduler that moves the pods whose pod affinity it may help.
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

// objectSet stores an object that the watch or the reply to a write shows, and passes the change to
// the queue. It ignores a state that is no later than that of an earlier reply, and kinds that
// nobody reads. Pods that wait for the effect of their writes are checked again.
func (c *cluster) objectSet(o object.Object) {
	if c.table.Objects().Overtaken(o) || !c.follows(o.Head().Kind) {
		return
	}
	e := &framework.Event{Resource: framework.ResourceOf(o.Head().Kind), ActionType: framework.Add, NewObject: o}
	if e.OldObject = c.table.Objects().Set(o); e.OldObject != nil {
		e.ActionType = framework.UpdateOther
	}
	switch o.Head().Kind {
	case object.PodGroups, object.CoschedulingGroups:
		c.groups.shown(e.OldObject, o)
		c.statuses.shown(e.OldObject, o)
	case object.ElasticQuotas:
		c.quotas.shown(e.OldObject, o)
	}
	if o.Head().Kind == object.DeviceTaintRules {
		c.slicesRetainted()
	} else {
		c.moveAll(e)
	}
	if o.Head().Kind == object.ElasticQuotas && e.OldObject == nil {
		c.quotas.came(o)
	}
	c.bindings.recheckWrites("")
}

// writeReplied handles the reply to writes of PreBind or of a PostFilter plugin, and stores
// the objects that it shows.
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

// objectReplied stores the state of an object in the reply to a write, unless the watch has shown a
// later one, or does not show the object.
func (c *cluster) objectReplied(o object.Object) {
	if c.table.Objects().Overtakes(o) {
		c.objectSet(o)
		c.table.Objects().Replied(o)
	}
}

// objectGone removes an object that was deleted, and passes that to the queue.
func (c *cluster) objectGone(e ObjectGone) {
	old := c.table.Objects().Remove(e.Kind, e.Namespace, e.Name)
	switch e.Kind {
	case object.PodGroups, object.CoschedulingGroups:
		c.groups.shown(old, nil)
		c.statuses.shown(old, nil)
	case object.ElasticQuotas:
		c.quotas.shown(old, nil)
	}
	switch {
	case old == nil:
		return
	case e.Kind == object.DeviceTaintRules:
		c.slicesRetainted()
	default:
		c.moveAll(&framework.Event{Resource: framework.ResourceOf(e.Kind), ActionType: framework.Delete, OldObject: old})
	}
	if e.Kind == object.ElasticQuotas {
		c.quotas.gone(old)
	}
	c.bindings.recheckWrites("")
}

// follows reports whether the machine reads objects of the kind. PodGroups of Kubernetes need the
// gate GenericWorkload. DeviceTaintRules (gate DRADeviceTaintRules), ElasticQuotas and the
// PodGroups of scheduler-plugins need a plugin that reads them. All other kinds are read always.
func (c *cluster) follows(kind object.Kind) bool {
	switch kind {
	case object.PodGroups:
		return c.options.PodGroups
	case object.DeviceTaintRules, object.ElasticQuotas, object.CoschedulingGroups:
		return slices.Contains(profile.Reads(c.options.Profiles), kind)
	}
	return true
}

// slicesRetainted passes the ResourceSlices whose devices got or lost the taint of a
// DeviceTaintRule to the queue, as updates. Plugins register for no events about rules.
func (c *cluster) slicesRetainted() {
	for _, s := range devicepools.Of(c.table).Retainted() {
		c.moveAll(&framework.Event{Resource: framework.ResourceOf(object.ResourceSlices), ActionType: framework.UpdateOther, OldObject: s.Old, NewObject: s.New})
	}
}
