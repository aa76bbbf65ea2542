package why

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
)

// Blocked says what blocks a pod on each node. A pod that has a node is looked at as if it had none.
type Blocked struct {
	Pod string
	// Node is where the pod is, "" for nowhere.
	Node string
	// Message says why no node was looked at, "" if they were.
	Message string
	// Feasible are the names of the nodes that nothing blocks. Groups are as in an Answer.
	Feasible []string
	Groups   []NodeGroup
}

// Names are those of all nodes of the group, sorted.
func (g *NodeGroup) Names() []string { return g.names }

// Blocked answers for a pod of the cluster.
func (c *Cluster) Blocked(api *v1.Pod) *Blocked {
	p := c.Set.DecodePod(api)
	b := &Blocked{Pod: p.Key(), Node: p.NodeName}
	f := &facts{api: api, pod: p, cluster: c}
	switch {
	case p.Terminal:
		b.Message = ended(api)
	case p.NodeName != "":
		f.decision = assessElsewhere(c, api)
	default:
		f.decision = c.Machine.Assess(p)
		if !p.Terminating && c.Machine.Profile(p.SchedulerName) == nil {
			b.Message = c.noProfile(p.SchedulerName)
		}
	}
	if d := f.decision; d != nil && b.Message == "" {
		if d.Result == decision.ResultError {
			b.Message = explain.Message(d)
		}
		b.Groups = f.groupsOf(d.Nodes)
		for i := range d.Nodes {
			if d.Nodes[i].Feasible {
				b.Feasible = append(b.Feasible, d.Nodes[i].Name)
			}
		}
	}
	return b
}

// ended says that the pod has ended, and why.
func ended(api *v1.Pod) string {
	return "the pod has ended: its phase is " + string(api.Status.Phase) + inBrackets(api.Status.Reason, api.Status.Message)
}

// assessElsewhere returns how the nodes would do if the pod, which has one, had none.
func assessElsewhere(c *Cluster, api *v1.Pod) *decision.Decision {
	unbound := api.DeepCopy()
	unbound.Spec.NodeName, unbound.DeletionTimestamp, unbound.Status.NominatedNodeName = "", nil, ""
	t := c.Machine.Table()
	pl := t.Pod(api.UID)
	t.RemovePod(api.UID)
	d := c.Machine.Assess(c.Set.DecodePod(unbound))
	if pl != nil {
		t.AddPod(pl.Pod, api.Spec.NodeName)
	}
	return d
}
