package extender

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/berth-scheduler/berth/core/machine"
)

// maxScore is the highest score that is believed. Extenders are to stay within
// 10, which kube-scheduler does not enforce and not all do.
const maxScore = 100 * extenderv1.MaxExtenderPriority

// bad is an error about a reply.
func (s *service) bad(verb machine.Verb, err error) error {
	return fmt.Errorf("extender %q: %s: %w", s.Name, verb, err)
}

// nodesOf is the set of nodes that the question is about.
func nodesOf(e machine.CallExtender) map[string]bool {
	nodes := make(map[string]bool, len(e.Nodes))
	for _, n := range e.Nodes {
		nodes[n.Name] = true
	}
	return nodes
}

func unknown(node string) error { return fmt.Errorf("node %q was not asked about", node) }

// passed reads which nodes a filter lets pass: by name where it was asked by
// name and answers so, else those that came back as a whole (kube-scheduler). A reply
// with neither must say of each node why it failed.
func (s *service) passed(e machine.CallExtender, r *filterReply) ([]string, error) {
	nodes, verb := nodesOf(e), e.Verb
	for _, failed := range []extenderv1.FailedNodesMap{r.FailedNodes, r.FailedAndUnresolvableNodes} {
		if err := within(nodes, failed); err != nil {
			return nil, s.bad(verb, err)
		}
	}
	var passed []string
	switch {
	case s.config.NodeCacheCapable && r.NodeNames != nil:
		passed = *r.NodeNames
	case r.Nodes != nil:
		for i := range r.Nodes.Items {
			passed = append(passed, r.Nodes.Items[i].Metadata.Name)
		}
	default:
		for _, n := range e.Nodes {
			_, failed := r.FailedNodes[n.Name]
			_, forGood := r.FailedAndUnresolvableNodes[n.Name]
			if !failed && !forGood {
				return nil, s.bad(verb, fmt.Errorf("the reply has neither nodes nor nodenames, and node %q is not among the failed nodes", n.Name))
			}
		}
	}
	for _, name := range passed {
		if !nodes[name] { // kube-scheduler's words
			return nil, fmt.Errorf("extender %q claims a filtered node %q which is not found in the input node list", s.Name, name)
		}
	}
	return passed, nil
}

// cut shortens the reasons to what a condition can carry of many nodes.
func cut(failed extenderv1.FailedNodesMap) extenderv1.FailedNodesMap {
	for name, reason := range failed {
		if len(reason) > maxReason {
			failed[name] = strings.ToValidUTF8(reason[:maxReason], "") + " ..."
		}
	}
	return failed
}

// maxReason is how many bytes of a reason are kept.
const maxReason = 1024

// within finds a failed node that was not asked about, the first by name.
func within(nodes map[string]bool, failed extenderv1.FailedNodesMap) error {
	var stray []string
	for name := range failed {
		if !nodes[name] {
			stray = append(stray, name)
		}
	}
	if len(stray) == 0 {
		return nil
	}
	return unknown(slices.Min(stray))
}

// scores reads the scores of nodes. A node that is named twice gets both, as in
// kube-scheduler; one that is not named gets none.
func scores(e machine.CallExtender, list extenderv1.HostPriorityList) (map[string]int64, error) {
	nodes := nodesOf(e)
	scores := make(map[string]int64, len(list))
	for _, h := range list {
		if !nodes[h.Host] {
			return nil, unknown(h.Host)
		}
		if h.Score < 0 || h.Score > maxScore || scores[h.Host]+h.Score > maxScore {
			return nil, fmt.Errorf("score %d of node %q is not between 0 and %d", h.Score, h.Host, maxScore)
		}
		scores[h.Host] += h.Score
	}
	return scores, nil
}

// left reads what is left of candidates, sorted by node.
func left(r *extenderv1.ExtenderPreemptionResult) ([]machine.NodeVictims, error) {
	var list []machine.NodeVictims
	for node, victims := range r.NodeNameToMetaVictims {
		if victims == nil {
			return nil, fmt.Errorf("the victims on node %q are null", node)
		}
		if victims.NumPDBViolations < 0 || victims.NumPDBViolations > math.MaxInt32 {
			return nil, fmt.Errorf("%d disruption budgets violated on node %q", victims.NumPDBViolations, node)
		}
		l := machine.NodeVictims{Node: node, Violations: int(victims.NumPDBViolations)}
		for _, p := range victims.Pods {
			if p == nil {
				return nil, errors.New("a victim on node " + node + " is null")
			}
			l.Victims = append(l.Victims, types.UID(p.UID))
		}
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b machine.NodeVictims) int { return cmp.Compare(a.Node, b.Node) })
	return list, nil
}
