package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// naive decides by asking every rule about every node, one by one, and keeps
// nothing. It follows kube-scheduler's cycle to the letter.
type naive struct {
	table *table.Table
	rules []*rule
	pod   *object.Pod

	rejected   *decision.Status
	filters    []*rule // those that PreFilter did not skip
	narrowed   []string
	narrowedBy []string
}

func (n *naive) preFilter() {
	skipped := map[*rule]bool{}
	for _, ru := range n.rules {
		if ru.prepare == nil {
			continue
		}
		out := ru.prepare(n.pod)
		skipped[ru] = out.Skip
		if s := out.Status; s != nil {
			s.Plugin = ru.name
			if s.Code == decision.Error {
				s = &decision.Status{Code: s.Code, Plugin: ru.name, Err: fmt.Errorf("running PreFilter plugin %q: %w", ru.name, s.Err)}
			}
			if n.rejected = s; s.Code != decision.Unschedulable {
				n.narrowedBy = nil
				return
			}
		}
		if out.NodeNames == nil {
			continue
		}
		if n.narrowedBy == nil {
			n.narrowed = out.NodeNames
		} else {
			n.narrowed = slices.DeleteFunc(slices.Clone(n.narrowed), func(node string) bool { return !slices.Contains(out.NodeNames, node) })
		}
		if n.narrowedBy = append(n.narrowedBy, ru.name); len(n.narrowed) == 0 {
			n.rejected = &decision.Status{Code: decision.UnschedulableAndUnresolvable, Plugin: ru.name, Reasons: []string{noNodesLeft(n.narrowedBy)}}
			return
		}
	}
	for _, ru := range n.rules {
		if (ru.reject != nil || ru.rejectZone != nil) && !skipped[ru] {
			n.filters = append(n.filters, ru)
		}
	}
}

func (n *naive) run(at site) []decision.Blocker {
	var all []decision.Blocker
	for _, ru := range n.filters {
		if v := n.verdict(ru, at); v != 0 {
			b := ru.explain(v)
			b.Plugin = ru.name
			all = append(all, b)
		}
	}
	return all
}

// verdict of a rule on a node, which may have more pods than the table says.
func (n *naive) verdict(ru *rule, at site) framework.Verdict {
	if ru.rejectZone == nil {
		return ru.reject(n.pod, at)
	}
	sites := sitesOf(n.table)
	for i := range sites {
		if sites[i].node == at.node {
			sites[i] = at
		}
	}
	return ru.rejectZone(n.pod, at.node.Labels["zone"], census(n.pod, sites))
}

// blockers of a node: first with the nominated pods there that count, then
// without.
func (n *naive) blockers(at site, nominated podsByNode) []decision.Blocker {
	if n.narrowedBy != nil && !slices.Contains(n.narrowed, at.node.Name) {
		return []decision.Blocker{{Plugin: n.narrowedBy[0], Code: decision.UnschedulableAndUnresolvable, Reasons: []string{leftOutReason(n.narrowedBy)}}}
	}
	with := site{node: at.node, pods: slices.Clone(at.pods)}
	for _, q := range nominated[at.node.Name] {
		if q.UID != n.pod.UID && q.Priority >= n.pod.Priority {
			with.pods = append(with.pods, q)
		}
	}
	if blockers := n.run(with); len(with.pods) > len(at.pods) && len(blockers) > 0 {
		return blockers
	}
	return n.run(at)
}

// scores fills in the feasible nodes' scores; an error, where one is out of
// range.
func (n *naive) scores(nodes []decision.Node, sites map[string]site) *decision.Status {
	for _, ru := range n.rules {
		if ru.score == nil && ru.scoreZone == nil {
			continue
		}
		if ru.preScore != nil {
			out := ru.preScore(n.pod)
			if out.Status != nil {
				return &decision.Status{Code: decision.Error, Plugin: ru.name, Err: fmt.Errorf("running PreScore plugin %q: %w", ru.name, out.Status.Err)}
			}
			if out.Skip {
				continue
			}
		}
		raw := n.raw(ru, nodes, sites)
		scored := slices.DeleteFunc(slices.Clone(raw), func(score int64) bool { return score == framework.NoScore })
		for i := range nodes {
			score := raw[i]
			switch {
			case score == framework.NoScore:
				score = 0
			case ru.normalize != nil:
				score = ru.normalize(score, slices.Min(scored), slices.Max(scored))
			}
			nodes[i].Total += ru.weight * score
			nodes[i].Scores = append(nodes[i].Scores, decision.Score{Plugin: ru.name, Score: score, Weight: ru.weight})
		}
	}
	for k := range nodes[0].Scores {
		for _, node := range nodes {
			if s := node.Scores[k]; s.Score < 0 || s.Score > 100 {
				return invalidScore(s.Plugin, s.Score)
			}
		}
	}
	return nil
}

// raw scores of the feasible nodes.
func (n *naive) raw(ru *rule, nodes []decision.Node, sites map[string]site) (raw []int64) {
	feasible := map[string]int{}
	for _, node := range nodes {
		feasible[sites[node.Name].node.Labels["zone"]]++
	}
	pods := census(n.pod, sitesOf(n.table))
	for _, node := range nodes {
		at := sites[node.Name]
		if ru.scoreZone != nil {
			raw = append(raw, ru.scoreZone(n.pod, at.node.Labels["zone"], pods, feasible))
		} else {
			raw = append(raw, ru.score(n.pod, at))
		}
	}
	return raw
}

// decide returns the answer that Decide has to give. Its nodes hold the first
// blocker alone, and no scores where nothing is scored.
func (n *naive) decide(nominated podsByNode) answer {
	a := answer{codes: map[string]decision.Code{}}
	n.preFilter()
	tallies, by := map[string]int{}, map[string]bool{}
	for _, plugin := range n.narrowedBy {
		by[plugin] = true
	}
	sites := map[string]site{}
	var feasible []decision.Node
	for r := range table.Row(n.table.Rows()) {
		at := siteOf(n.table, r)
		if at.node == nil {
			continue
		}
		name := at.node.Name
		sites[name] = at
		var blockers []decision.Blocker
		if s := n.rejected; s != nil {
			blockers = []decision.Blocker{{Plugin: s.Plugin, Code: s.Code, Reasons: s.Reasons}}
		} else {
			blockers = n.blockers(at, nominated)
		}
		if a.codes[name] = decision.Success; len(blockers) == 0 {
			feasible = append(feasible, decision.Node{Name: name, Feasible: true})
			continue
		}
		a.codes[name] = blockers[0].Code
		tallies[fmt.Sprint(blockers[0])]++
		by[blockers[0].Plugin] = true
		a.nodes = append(a.nodes, decision.Node{Name: name, Blockers: blockers})
	}
	if n.rejected != nil {
		a.rejected = words(n.rejected)
		by[n.rejected.Plugin] = true
		if n.table.Live() == 0 {
			tallies[fmt.Sprint(decision.Blocker{Plugin: n.rejected.Plugin, Code: n.rejected.Code, Reasons: n.rejected.Reasons})] = 0
		}
	}
	var lines []string
	for blocker, nodes := range tallies {
		lines = append(lines, fmt.Sprintf("%d %s", nodes, blocker))
	}
	slices.Sort(lines)
	a.tallies = strings.Join(lines, "; ")
	a.by = strings.Join(slices.Sorted(maps.Keys(by)), " ")
	n.choose(&a, feasible, sites)
	a.nodes = append(a.nodes, feasible...)
	slices.SortFunc(a.nodes, byNodeName)
	return a
}

func (n *naive) choose(a *answer, feasible []decision.Node, sites map[string]site) {
	a.feasible = len(feasible)
	for _, node := range feasible {
		if node.Name == n.pod.NominatedNode {
			a.node, a.feasible = node.Name, 1
			return
		}
	}
	if len(feasible) == 0 {
		return
	}
	if len(feasible) == 1 {
		a.node = feasible[0].Name
		return
	}
	if s := n.scores(feasible, sites); s != nil {
		a.rejected = words(s)
		return
	}
	a.score = feasible[0].Total
	for _, node := range feasible {
		if node.Total > a.score {
			a.score, a.best = node.Total, nil
		}
		if node.Total == a.score {
			a.best = append(a.best, node.Name)
		}
	}
	a.ties = len(a.best)
}
