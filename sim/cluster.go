package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// Cluster is the state of nodes and pods that an API server would keep. Every
// change is also an event for whoever watches. A Cluster has one owner and is
// not safe for concurrent use.
type Cluster struct {
	nodes map[string]*object.Node
	pods  map[string]*object.Pod // by namespace/name
	ended map[string]*object.Pod // likewise, those that have succeeded or failed
	// objects are those that only some plugins read, by kind and key.
	objects        map[string]object.Object
	selectorOwners map[string]bool // Services and controllers, by kind, namespace and name
	// owned are claims that stand for a pod's extended resources, by the pod's
	// UID: they go with it.
	owned  map[types.UID][]*object.ResourceClaim
	events []machine.Event
	// started is when the pod that started last did so.
	started time.Time
}

// NewCluster returns an empty cluster in which nothing started before the
// given time.
func NewCluster(start time.Time) *Cluster {
	return &Cluster{nodes: map[string]*object.Node{}, pods: map[string]*object.Pod{}, ended: map[string]*object.Pod{}, objects: map[string]object.Object{}, selectorOwners: map[string]bool{}, owned: map[types.UID][]*object.ResourceClaim{}, started: start}
}

// Watch returns the events since the last call, in order.
func (c *Cluster) Watch() []machine.Event {
	events := c.events
	c.events = nil
	return events
}

// Tell tells of something of which the cluster keeps nothing.
func (c *Cluster) Tell(e machine.Event) { c.tell(e) }

func (c *Cluster) tell(e machine.Event) { c.events = append(c.events, e) }

// Node returns the node, nil where there is none.
func (c *Cluster) Node(name string) *object.Node { return c.nodes[name] }

// Nodes returns all nodes by name.
func (c *Cluster) Nodes() []*object.Node {
	return slices.SortedFunc(maps.Values(c.nodes), func(a, b *object.Node) int { return cmp.Compare(a.Name, b.Name) })
}

// SetNode creates or replaces the node.
func (c *Cluster) SetNode(n *object.Node) {
	c.nodes[n.Name] = n
	c.tell(machine.NodeSet{Node: n})
}

// DeleteNode deletes the node; its pods stay, as in a real cluster before
// garbage collection.
func (c *Cluster) DeleteNode(name string) error {
	if c.nodes[name] == nil {
		return fmt.Errorf("node %s: does not exist", name)
	}
	delete(c.nodes, name)
	c.tell(machine.NodeGone{Name: name})
	return nil
}

// SetNamespace creates the namespace or gives it other labels.
func (c *Cluster) SetNamespace(n *object.Namespace) { c.tell(machine.NamespaceSet{Namespace: n}) }

// SetBudget creates or replaces the disruption budget.
func (c *Cluster) SetBudget(b *object.Budget) { c.tell(machine.BudgetSet{Budget: b}) }

// SetSelectorOwner creates or replaces the Service or controller.
func (c *Cluster) SetSelectorOwner(f *object.SelectorOwner) {
	c.selectorOwners[fmt.Sprintf("%v %s/%s", f.Kind, f.Namespace, f.Name)] = true
	c.tell(machine.SelectorOwnerSet{Owner: f})
}

// DeleteSelectorOwner deletes the Service or controller. It is an error if that does not exist.
func (c *Cluster) DeleteSelectorOwner(kind object.SelectorOwnerKind, namespace, name string) error {
	key := fmt.Sprintf("%v %s/%s", kind, namespace, name)
	if !c.selectorOwners[key] {
		return fmt.Errorf("%s: does not exist", key)
	}
	delete(c.selectorOwners, key)
	c.tell(machine.SelectorOwnerGone{Kind: kind, Namespace: namespace, Name: name})
	return nil
}

// SetObject creates or replaces the object.
func (c *Cluster) SetObject(o object.Object) {
	m := o.Head()
	c.objects[m.Kind.String()+" "+m.Key()] = o
	if claim, ok := o.(*object.ResourceClaim); ok && claim.IndexKey() != "" {
		c.owned[types.UID(claim.IndexKey())] = append(c.owned[types.UID(claim.IndexKey())], claim)
	}
	c.tell(machine.ObjectSet{Object: o})
}

// DeleteObject deletes the object, if it is there.
func (c *Cluster) DeleteObject(kind object.Kind, namespace, name string) {
	m := object.Meta{Kind: kind, Namespace: namespace, Name: name}
	delete(c.objects, kind.String()+" "+m.Key())
	c.tell(machine.ObjectGone{Kind: kind, Namespace: namespace, Name: name})
}

// Object returns the object, nil where there is none.
func (c *Cluster) Object(kind object.Kind, namespace, name string) object.Object {
	m := object.Meta{Kind: kind, Namespace: namespace, Name: name}
	return c.objects[kind.String()+" "+m.Key()]
}

// Objects returns the objects that only some plugins read, by kind and key.
func (c *Cluster) Objects() []object.Object {
	var all []object.Object
	for _, key := range slices.Sorted(maps.Keys(c.objects)) {
		all = append(all, c.objects[key])
	}
	return all
}

// Pod returns the pod by namespace/name, nil where there is none.
func (c *Cluster) Pod(key string) *object.Pod { return c.pods[key] }

// Read returns the pod by namespace/name as a read shows it: one that has succeeded or failed,
// too.
func (c *Cluster) Read(key string) *object.Pod { return cmp.Or(c.pods[key], c.ended[key]) }

// Pods returns all pods by namespace and name.
func (c *Cluster) Pods() []*object.Pod {
	return slices.SortedFunc(maps.Values(c.pods), func(a, b *object.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// SetPod creates or replaces the pod. A pod in a terminal phase is gone for
// the scheduler, whose watch leaves such pods out.
func (c *Cluster) SetPod(p *object.Pod) {
	if p.Terminal {
		c.remove(p)
		c.ended[p.Key()] = p
		return
	}
	delete(c.ended, p.Key())
	if p.NodeName != "" && p.Started.After(c.started) {
		c.started = p.Started
	}
	c.pods[p.Key()] = p
	c.tell(machine.PodSet{Pod: p})
}

// Hold creates the pod, and tells nobody of it: no scheduler tries it.
func (c *Cluster) Hold(p *object.Pod) { c.pods[p.Key()] = p }

// DeletePod deletes the pod at once.
func (c *Cluster) DeletePod(key string) error {
	p := c.pods[key]
	if p == nil && c.ended[key] == nil {
		return fmt.Errorf("pod %s: does not exist", key)
	}
	delete(c.ended, key)
	if p != nil {
		c.remove(p)
	}
	return nil
}

func (c *Cluster) remove(p *object.Pod) {
	delete(c.pods, p.Key())
	c.tell(machine.PodGone{UID: p.UID, Namespace: p.Namespace, Name: p.Name})
	for _, claim := range c.owned[p.UID] {
		c.DeleteObject(claim.Kind, claim.Namespace, claim.Name)
	}
	delete(c.owned, p.UID)
}

// Bind binds the pod to the node. The pod starts one second after the last pod
// that started. Like the API server, Bind refuses a pod that is gone, has
// another UID or is bound already.
func (c *Cluster) Bind(key string, uid types.UID, node string) error {
	p, err := c.pending(key, uid)
	if err != nil {
		return err
	}
	bound := *p
	bound.NodeName, bound.NominatedNode = node, ""
	bound.Scheduled = object.Condition{Status: v1.ConditionTrue}
	bound.Started = c.started.Add(time.Second)
	if p.API != nil {
		api := *p.API
		api.Spec.NodeName = node
		bound.API = withStatus(&api, &bound)
	}
	c.SetPod(&bound)
	return nil
}

// Patch changes the status of a pending pod; nil leaves the field as it is.
// It returns whether the nomination changed.
func (c *Cluster) Patch(key string, uid types.UID, condition *object.Condition, nominated *string) (bool, error) {
	p, err := c.pending(key, uid)
	if err != nil {
		return false, err
	}
	patched := *p
	if condition != nil {
		patched.Scheduled = *condition
	}
	if nominated != nil {
		patched.NominatedNode = *nominated
	}
	if p.API != nil {
		patched.API = withStatus(p.API, &patched)
	}
	c.SetPod(&patched)
	return patched.NominatedNode != p.NominatedNode, nil
}

// withStatus returns the API object with what the scheduler wrote into the pod's status.
func withStatus(api *v1.Pod, p *object.Pod) *v1.Pod {
	now := *api
	now.Status.NominatedNodeName = p.NominatedNode
	now.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: p.Scheduled.Status, Reason: p.Scheduled.Reason, Message: p.Scheduled.Message}}
	return &now
}

// PatchGroup gives the pod group the condition PodGroupInitiallyScheduled, unless it is gone.
func (c *Cluster) PatchGroup(g *object.PodGroup, condition object.GroupCondition) {
	now, _ := c.Object(object.PodGroups, g.Namespace, g.Name).(*object.PodGroup)
	if now == nil || now.UID != g.UID {
		return
	}
	patched := *now
	patched.Scheduled = condition
	c.SetObject(&patched)
}

// PatchPhase gives the PodGroup of scheduler-plugins its status, unless it is gone.
func (c *Cluster) PatchPhase(g *object.PodGroup, status object.GroupStatus) {
	now, _ := c.Object(object.CoschedulingGroups, g.Namespace, g.Name).(*object.PodGroup)
	if now == nil || now.UID != g.UID {
		return
	}
	patched := *now
	patched.Status = status
	c.SetObject(&patched)
}

// PatchQuota gives the ElasticQuota its status, unless it is gone.
func (c *Cluster) PatchQuota(q *object.ElasticQuota, used object.Amounts) {
	now, _ := c.Object(object.ElasticQuotas, q.Namespace, q.Name).(*object.ElasticQuota)
	if now == nil || now.UID != q.UID {
		return
	}
	patched := *now
	patched.Used = used
	c.SetObject(&patched)
}

func (c *Cluster) pending(key string, uid types.UID) (*object.Pod, error) {
	p := c.pods[key]
	switch {
	case p == nil:
		return nil, fmt.Errorf("pod %s: does not exist", key)
	case p.UID != uid:
		return nil, fmt.Errorf("pod %s: has UID %s, not %s", key, p.UID, uid)
	case p.NodeName != "":
		return nil, fmt.Errorf("pod %s: is bound to node %s", key, p.NodeName)
	}
	return p, nil
}
