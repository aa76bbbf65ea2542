package chaos

import (
	"maps"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/loop"
)

// cluster is the nodes and pods as a process was told of them.
type cluster struct {
	nodes    map[string]*object.Node
	pods     map[types.UID]*object.Pod
	evicting map[types.UID]bool // the process has asked for that
	// panicked: a step of the process did. What it was told is told again later, in
	// another order, so that nothing is said of its decisions.
	panicked bool

	budgets map[string]int32 // how many pods may go, by the budget's name
	// assumed are on a node by the process's decision, which nothing has called in
	// question. perhaps is where pods are or were, by decision or by what it was told.
	assumed, perhaps map[types.UID]string
	// nominated are pods to nodes, as the process has last said. hoped is that and
	// what came before.
	nominated, hoped map[types.UID]string

	attempts map[types.UID]attempt
	stirs    int                  // how often something happened that may help a pod which waits
	used     map[types.UID]uint64 // the version of the pod that an effect was last about
	queues   queues
	minimums map[string]int // of groups, by name
}

func newCluster() cluster {
	return cluster{nodes: map[string]*object.Node{}, pods: map[types.UID]*object.Pod{}, evicting: map[types.UID]bool{}, budgets: map[string]int32{},
		assumed: map[types.UID]string{}, perhaps: map[types.UID]string{}, nominated: map[types.UID]string{}, hoped: map[types.UID]string{},
		attempts: map[types.UID]attempt{}, used: map[types.UID]uint64{}, queues: queues{}, minimums: map[string]int{}}
}

// take takes in what an event tells.
func (k *cluster) take(e machine.Event) {
	switch e := e.(type) {
	case nil:
		k.panicked = true
	case machine.NodeSet:
		k.nodes[e.Node.Name] = e.Node
	case machine.NodeGone:
		delete(k.nodes, e.Name)
		maps.DeleteFunc(k.nominated, func(_ types.UID, node string) bool { return node == e.Name })
	case machine.BudgetSet:
		k.budgets[e.Budget.Name] = e.Budget.Allowed
	case machine.BudgetGone:
		delete(k.budgets, e.Name)
	case machine.ObjectSet:
		k.learn(e.Object)
	case machine.ObjectGone:
		k.lose(e)
	case machine.PodSet:
		for uid, p := range k.pods { // any order: one at most has the name
			if uid != e.Pod.UID && p.NamespacedName() == e.Pod.NamespacedName() {
				k.forget(uid)
			}
		}
		k.tell(e.Pod)
	case machine.PodGone:
		k.forget(e.UID)
	case machine.ReadReply:
		switch {
		case e.Err != nil:
		case e.Pod == nil || e.Pod.Terminal:
			k.forget(e.UID)
		default:
			k.tell(e.Pod)
		}
		delete(k.assumed, e.UID)
	case machine.BindReply:
		if e.Result != machine.BindDone {
			delete(k.assumed, e.UID)
		}
	case machine.WriteReply:
		delete(k.assumed, e.UID)
	case machine.ExtenderReply:
		delete(k.assumed, e.UID)
	case machine.EvictReply:
		if e.Err != nil {
			delete(k.evicting, e.Victim)
		}
	case machine.Rewound:
		clear(k.evicting)
	}
}

func (k *cluster) tell(p *object.Pod) {
	k.pods[p.UID] = p
	if p.NodeName != "" {
		k.perhaps[p.UID] = p.NodeName
	}
	if p.NodeName != "" || p.NominatedNode != k.nominated[p.UID] {
		delete(k.nominated, p.UID)
	}
	if p.NominatedNode != "" {
		k.hoped[p.UID] = p.NominatedNode
	}
}

func (k *cluster) forget(uid types.UID) {
	delete(k.pods, uid)
	delete(k.evicting, uid)
	delete(k.assumed, uid)
	delete(k.perhaps, uid)
	delete(k.nominated, uid)
	delete(k.hoped, uid)
}

// placesPod reports whether the decision puts the pod on a node. Others of its group may wait
// in Permit for the last one, in the same step.
func placesPod(d *decision.Decision) bool {
	return d.Result == decision.ResultScheduled || d.Result == decision.ResultWaiting
}

// decide takes in what the process has decided about a pod.
func (k *cluster) decide(d *decision.Decision) {
	delete(k.assumed, d.UID)
	delete(k.nominated, d.UID)
	if placesPod(d) {
		k.assumed[d.UID], k.perhaps[d.UID] = d.Node, d.Node
	}
}

// decides checks what the process asks for by what it was told: a pod that waits goes to
// a node that is there, open, and has the labels that the pod selects; no binding goes
// to a node that is not known; a victim is evicted once; the status of another
// scheduler's pod stays as it is.
func (c *check) decides(proc *process, k *cluster, s loop.Step) {
	k.stir(s.Event)
	k.take(s.Event)
	for _, effect := range s.Effects {
		switch e := effect.(type) {
		case machine.Bind:
			c.uses(proc, k, e.Pod)
			if k.nodes[e.Node] == nil && !k.panicked {
				c.note("%s binds pod %s to node %s, which it does not know", proc.name, e.Pod.Key(), e.Node)
			}
		case machine.PatchStatus:
			if e.Pod.SchedulerName != v1.DefaultSchedulerName {
				c.note("%s patches the status of pod %s of another scheduler", proc.name, e.Pod.Key())
			}
			if e.Nominated != nil {
				k.stirs++ // room is free where the pod was nominated to
			}
			if n := e.Nominated; n != nil && *n != "" {
				k.nominated[e.Pod.UID], k.hoped[e.Pod.UID] = *n, *n
			} else if n != nil {
				delete(k.nominated, e.Pod.UID)
			}
			c.uses(proc, k, e.Pod)
			c.says(proc, k, e)
		case machine.Evict:
			c.uses(proc, k, e.Victim)
			c.uses(proc, k, e.Preemptor)
			if p := k.pods[e.Victim.UID]; !k.panicked && (k.evicting[e.Victim.UID] || p != nil && p.Terminating) {
				c.note("%s evicts pod %s a second time", proc.name, e.Victim.Key())
			}
			if why := c.undercut(k, e.Victim, e.Preemptor); why != "" && !k.panicked && !c.setBack {
				c.note("%s evicts pod %s for pod %s: %s", proc.name, e.Victim.Key(), e.Preemptor.Key(), why)
			}
			k.evicting[e.Victim.UID] = true
		case machine.AttemptDone:
			if !k.panicked && !c.setBack {
				c.tried(proc, k, s.Now, e.Decision)
			}
			if placesPod(e.Decision) && !k.panicked {
				c.chose(proc, k, e.Decision)
			}
			if e.Decision.Result == decision.ResultPreempting && !k.panicked && !c.setBack {
				c.sparing(proc, k, e.Decision)
			}
			k.decide(e.Decision)
		}
	}
	c.placedWhole(proc, k, s)
}

func (c *check) chose(proc *process, k *cluster, d *decision.Decision) {
	n, p := k.nodes[d.Node], k.pods[d.UID]
	switch {
	case n == nil || p == nil:
		c.note("%s chooses node %s for pod %s: it knows the node: %t, the pod: %t", proc.name, d.Node, d.Pod, n != nil, p != nil)
	case n.Unschedulable:
		c.note("%s chooses the cordoned node %s for pod %s", proc.name, d.Node, d.Pod)
	case len(p.Gates) > 0 || p.Terminating || p.NodeName != "" || p.SchedulerName != v1.DefaultSchedulerName:
		c.note("%s chooses a node for pod %s, which does not wait for it", proc.name, d.Pod)
	default:
		c.choseWell(proc, k, d)
	}
}

// choseWell looks that the pod's node is one that it selects, keeps all hard
// constraints, and leaves the room to pods that are nominated to it and no less
// important.
func (c *check) choseWell(proc *process, k *cluster, d *decision.Decision) {
	n, pod := k.nodes[d.Node], c.specs[d.UID]
	if pod == nil || c.setBack {
		return
	}
	if !selected(pod, n.Labels) {
		c.note("%s chooses node %s for pod %s, which selects %v", proc.name, d.Node, d.Pod, pod.Spec.NodeSelector)
	}
	w := c.as(k, pod)
	if why := w.breaks(pod, d.Node); why != "" {
		c.note("%s chooses node %s for pod %s: %s", proc.name, d.Node, d.Pod, why)
	}
	if why := c.overQuota(k, pod); why != "" {
		c.note("%s chooses node %s for pod %s: %s", proc.name, d.Node, d.Pod, why)
	}
	sum := requestsOf(pod)
	for _, l := range w.sure {
		if l.node == d.Node {
			sum = sum.plus(requestsOf(l.pod))
		}
	}
	for uid, node := range k.nominated { // any order: each breach is one
		p := c.specs[uid]
		if p != nil && groupOf(p) != "" && groupOf(p) == groupOf(pod) {
			continue // they are placed one after the other, wherever it is
		}
		_, decided := k.perhaps[uid] // it takes its room, and is nominated while its volumes are bound
		if node == d.Node && uid != d.UID && p != nil && !decided && priority(p) >= priority(pod) &&
			!sum.plus(requestsOf(p)).within(amounts{n.Allocatable.MilliCPU, n.Allocatable.Memory, n.AllowedPods}) {
			c.note("%s places pod %s on node %s, to which pod %s is nominated that does not fit beside it", proc.name, d.Pod, d.Node, p.Name)
		}
	}
}

// uses looks that no effect is about an older state of a pod than one before it.
func (c *check) uses(proc *process, k *cluster, p *object.Pod) {
	version, err := strconv.ParseUint(p.Version, 10, 64)
	if err == nil && version < k.used[p.UID] && !k.panicked && !c.setBack {
		c.note("%s goes by version %d of pod %s after it went by version %d", proc.name, version, p.Key(), k.used[p.UID])
	}
	k.used[p.UID] = version
}
