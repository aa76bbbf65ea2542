package why

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
)

// mostExamples bounds the examples of a group.
const mostExamples = 5

// groupsOf groups the infeasible nodes, which are sorted by name, by their
// blockers: the fewest blockers first, then the most nodes, then by name.
func groupsOf(nodes []decision.Node) []Group {
	at := map[string]int{}
	groups := []Group{}
	for i := range nodes {
		n := &nodes[i]
		if n.Feasible {
			continue
		}
		blockers := blockersOf(n.Blockers)
		key := fmt.Sprintf("%q", blockers)
		g, known := at[key]
		if !known {
			g = len(groups)
			at[key] = g
			groups = append(groups, Group{Blockers: blockers})
		}
		groups[g].Nodes++
		groups[g].names = append(groups[g].names, n.Name)
	}
	for i := range groups {
		groups[i].Examples = groups[i].names[:min(mostExamples, len(groups[i].names))]
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(len(a.Blockers), len(b.Blockers)), cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Examples[0], b.Examples[0]))
	})
	return groups
}

func blockersOf(list []decision.Blocker) []Blocker {
	blockers := []Blocker{}
	for _, b := range list {
		blockers = append(blockers, Blocker{b.Plugin, b.Code.String(), append([]string{}, slices.Sorted(slices.Values(b.Reasons))...)})
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
