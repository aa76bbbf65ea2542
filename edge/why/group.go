package why

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/plugins/names"
)

// mostExamples bounds the examples of a group.
const mostExamples = 5

// groupsOf groups the infeasible nodes, which are sorted by name, by their blockers. Nodes
// that the pod itself does not choose come last; then the fewest blockers come first, then the
// most nodes, then by name.
func (f *facts) groupsOf(nodes []decision.Node) []NodeGroup {
	at, seen := map[string]int{}, map[string]int{} // by the blockers, and as they came
	groups := []NodeGroup{}
	var key []byte
	for i := range nodes {
		n := &nodes[i]
		if n.Feasible {
			continue
		}
		key = f.appendKey(key[:0], n)
		g, known := seen[string(key)]
		if !known {
			blockers := blockersOf(n.Blockers)
			for k := range blockers {
				blockers[k].TopologyKeys = f.topologyKeys(blockers[k].Plugin, n.Name)
			}
			same := fmt.Sprintf("%q", blockers)
			if g, known = at[same]; !known {
				g = len(groups)
				at[same] = g
				groups = append(groups, NodeGroup{Blockers: blockers})
			}
			seen[string(key)] = g
		}
		groups[g].Nodes++
		groups[g].names = append(groups[g].names, n.Name)
	}
	for i := range groups {
		groups[i].Examples = groups[i].names[:min(mostExamples, len(groups[i].names))]
	}
	slices.SortFunc(groups, func(a, b NodeGroup) int {
		return cmp.Or(cmp.Compare(a.unchosen(), b.unchosen()), cmp.Compare(len(a.Blockers), len(b.Blockers)), cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Examples[0], b.Examples[0]))
	})
	return groups
}

// unchosen returns 1 if the pod's own node selector or affinity excludes the nodes, else 0.
func (g *NodeGroup) unchosen() int {
	if slices.ContainsFunc(g.Blockers, func(b Blocker) bool { return b.Plugin == names.NodeAffinity || b.Plugin == names.NodeName }) {
		return 1
	}
	return 0
}

// topologyKeys returns the keys of the pod's spread constraints or terms of anti-affinity
// that block the node for the plugin, where the pod has several of them.
func (f *facts) topologyKeys(plugin, node string) []string {
	switch plugin {
	case names.PodTopologySpread:
		return f.spreadKeys(node)
	case names.InterPodAffinity:
		return f.antiAffinityKeys(node)
	}
	return nil
}

// appendKey appends the node's blockers and their topology keys: other bytes for others.
func (f *facts) appendKey(b []byte, n *decision.Node) []byte {
	list := n.Blockers
	number := func(n int) { b = append(strconv.AppendInt(b, int64(n), 10), ' ') }
	text := func(s string) { number(len(s)); b = append(b, s...) }
	for i := range list {
		text(list[i].Plugin)
		number(int(list[i].Code))
		number(len(list[i].Reasons))
		for _, reason := range list[i].Reasons {
			text(reason)
		}
		for _, key := range f.topologyKeys(list[i].Plugin, n.Name) {
			text(key)
		}
	}
	return b
}

func blockersOf(list []decision.Blocker) []Blocker {
	blockers := []Blocker{}
	for _, b := range list {
		blockers = append(blockers, Blocker{
			Plugin: b.Plugin, Code: b.Code.String(), Reasons: append([]string{}, slices.Sorted(slices.Values(b.Reasons))...),
			insufficient: slices.Sorted(slices.Values(b.Insufficient)),
		})
	}
	return blockers
}

// mostScores bounds the nodes whose scores are told.
const mostScores = 5

// scoresOf are the best feasible nodes. The chosen one is among them, and comes
// first of its equals.
func scoresOf(nodes []decision.Node, chosen string) []Node {
	feasible := []decision.Node{}
	for _, n := range nodes {
		if n.Feasible {
			feasible = append(feasible, n)
		}
	}
	slices.SortStableFunc(feasible, func(a, b decision.Node) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(other(a.Name, chosen), other(b.Name, chosen)))
	})
	if at := slices.IndexFunc(feasible, func(n decision.Node) bool { return n.Name == chosen }); at >= mostScores {
		feasible[mostScores-1] = feasible[at]
	}
	best := []Node{}
	for _, n := range feasible[:min(mostScores, len(feasible))] {
		out := Node{Node: n.Name, Score: n.Total, Margin: feasible[0].Total - n.Total, Scores: []Score{}}
		for _, s := range n.Scores {
			out.Scores = append(out.Scores, Score(s))
		}
		best = append(best, out)
	}
	return best
}

func other(name, chosen string) int {
	if name == chosen {
		return 0
	}
	return 1
}
