package chaos

import (
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
}

func newCluster() cluster {
	return cluster{nodes: map[string]*object.Node{}, pods: map[types.UID]*object.Pod{}, evicting: map[types.UID]bool{}}
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
	case machine.PodSet:
		for uid, p := range k.pods { // any order: one at most has the name
			if uid != e.Pod.UID && p.NamespacedName() == e.Pod.NamespacedName() {
				k.forget(uid)
			}
		}
		k.pods[e.Pod.UID] = e.Pod
	case machine.PodGone:
		k.forget(e.UID)
	case machine.EvictReply:
		if e.Err != nil {
			delete(k.evicting, e.Victim)
		}
	case machine.Rewound:
		clear(k.evicting)
	}
}

func (k *cluster) forget(uid types.UID) {
	delete(k.pods, uid)
	delete(k.evicting, uid)
}

// decides checks what the process asks for by what it was told: a pod that waits goes to
// a node that is there, open, and has the labels that the pod selects; no binding goes
// to a node that is not known; a victim is evicted once; the status of another
// scheduler's pod stays as it is.
func (c *check) decides(proc *process, k *cluster, s loop.Step) {
	k.take(s.Event)
	for _, effect := range s.Effects {
		switch e := effect.(type) {
		case machine.Bind:
			if k.nodes[e.Node] == nil && !k.panicked {
				c.note("%s binds pod %s to node %s, which it does not know", proc.name, e.Pod.Key(), e.Node)
			}
		case machine.PatchStatus:
			if e.Pod.SchedulerName != v1.DefaultSchedulerName {
				c.note("%s patches the status of pod %s of another scheduler", proc.name, e.Pod.Key())
			}
		case machine.Evict:
			if p := k.pods[e.Victim.UID]; !k.panicked && (k.evicting[e.Victim.UID] || p != nil && p.Terminating) {
				c.note("%s evicts pod %s a second time", proc.name, e.Victim.Key())
			}
			k.evicting[e.Victim.UID] = true
		case machine.AttemptDone:
			if e.Decision.Result == decision.ResultScheduled && !k.panicked {
				c.chose(proc, k, e.Decision)
			}
		}
	}
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
		for key, value := range c.selectors[d.UID] { // any order: one is reported
			if n.Labels[key] != value {
				c.note("%s chooses node %s for pod %s, which selects %s=%s", proc.name, d.Node, d.Pod, key, value)
				return
			}
		}
	}
}
