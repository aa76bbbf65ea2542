package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/berth-scheduler/berth/edge/why"
)

// NodeBlockers is the answer of blockers: what blocks one pod on each node, as columns by the
// nodes' names. A pod that has a node is looked at as if it had none.
type NodeBlockers struct {
	Head
	Time time.Time `json:"time"`
	Pod  string    `json:"pod"`
	// Node is where the pod is or is being bound, "" for nowhere.
	Node string `json:"node,omitempty"`
	// Message says why no node was looked at, "" if they were.
	Message string   `json:"message,omitempty"`
	Names   []string `json:"names"`
	// Blockers are those of each node in the profile's order of plugins; none where the pod fits.
	Blockers Values[[]why.Blocker] `json:"blockers"`
}

// blockers answers on which nodes a pod does not fit, and why.
func (h *handler) blockers(r *http.Request) (any, error) {
	p := paramsOf(r, "pod")
	name := p.pod("pod")
	if name == "" {
		p.fail("pod", "is needed: NAMESPACE/NAME")
	}
	if p.err != nil {
		return nil, p.err
	}
	of, err := h.pictureOf(r.Context(), podName(name), nil) // who sees one pod alone may not ask this
	if err != nil {
		return nil, err
	}
	if err := of.set.Resolve(); err != nil {
		return nil, err
	}
	cluster := why.Cluster{Machine: of.copied, Set: of.set}
	b := cluster.Blocked(of.pod)
	if b.Node == "" {
		b.Node = of.now.node
	}
	n := newNodeBlockers(b)
	n.Time = h.Now().UTC()
	return n, nil
}

// newNodeBlockers returns what blocks a pod, by the names of nodes.
func newNodeBlockers(b *why.Blocked) *NodeBlockers {
	n := &NodeBlockers{Head: head("NodeBlockers"), Pod: b.Pod, Node: b.Node, Message: b.Message, Names: append([]string{}, b.Feasible...)}
	group := map[string]int{}
	n.Blockers.Values = [][]why.Blocker{}
	for i := range b.Groups {
		n.Blockers.Values = append(n.Blockers.Values, b.Groups[i].Blockers)
		for _, name := range b.Groups[i].Names() {
			group[name] = i
			n.Names = append(n.Names, name)
		}
	}
	slices.Sort(n.Names)
	n.Blockers.Of = make([]int, len(n.Names))
	for i, name := range n.Names {
		at, blocked := group[name]
		if !blocked {
			at = -1
		}
		n.Blockers.Of[i] = at
	}
	return n
}
