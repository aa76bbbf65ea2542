package why

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/match"
)

// spread is a constraint of the pod, with the pods that it is about.
type spread struct {
	*match.SpreadConstraint
	counts map[string]int // by domain
	fewest string         // a domain that has the fewest
	least  int            // that is how many
}

// spreadText says of the constraints that keep the pod off some of the nodes how many
// pods are where. Constraints of the profile's defaults are not the pod's.
func (f *facts) spreadText(b *Blocker, nodes []string) string {
	var parts []string
	spreads := f.spreads()
	for i := range spreads {
		var first *v1.Node
		at := map[string]bool{} // domains of the nodes
		for _, name := range nodes {
			if n := f.node(name); spreads[i].blocks(n) {
				first = cmp.Or(first, n)
				at[n.Labels[spreads[i].TopologyKey]] = true
			}
		}
		if first != nil {
			text := spreads[i].text(first)
			if len(at) > 1 {
				text += spreads[i].othersFull()
			}
			parts = append(parts, text+meantKey(spreads[i].TopologyKey, f.cluster.Set))
		}
	}
	if len(parts) == 0 {
		return strings.Join(b.Reasons, ", ")
	}
	return strings.Join(parts, "; ")
}

// othersFull says how many domains have too many pods beside one that is named.
func (s *spread) othersFull() string {
	n := -1
	for value := range s.counts {
		if s.full(value) {
			n++
		}
	}
	switch {
	case n <= 0:
		return ""
	case n == 1:
		return "; 1 more domain has too many"
	}
	return fmt.Sprintf("; %d more domains have too many", n)
}

// spreadKeys returns the topology keys of the constraints that keep the pod off the node,
// where it has several.
func (f *facts) spreadKeys(node string) (keys []string) {
	spreads := f.spreads()
	if len(spreads) < 2 {
		return nil
	}
	for i := range spreads {
		if spreads[i].blocks(f.node(node)) {
			keys = append(keys, spreads[i].TopologyKey)
		}
	}
	return keys
}

// spreads are the pod's required constraints, counted once.
func (f *facts) spreads() []spread {
	if f.spread != nil || f.pod.Spread == nil {
		return f.spread
	}
	for i := range f.pod.Spread.Hard {
		c := &f.pod.Spread.Hard[i]
		s := spread{SpreadConstraint: c, counts: f.spreadCounts(c), least: math.MaxInt}
		for _, domain := range slices.Sorted(maps.Keys(s.counts)) {
			if s.counts[domain] < s.least {
				s.fewest, s.least = domain, s.counts[domain]
			}
		}
		f.spread = append(f.spread, s)
	}
	return f.spread
}

// blocks reports whether the constraint keeps the pod off the node.
func (s *spread) blocks(n *v1.Node) bool {
	if n == nil {
		return false
	}
	value, has := n.Labels[s.TopologyKey]
	return !has || s.full(value)
}

// full reports whether the domain has so many pods that another would exceed maxSkew.
func (s *spread) full(value string) bool {
	with, least := s.counts[value], s.least
	if s.Self {
		with++
	}
	if s.fewDomains() {
		least = 0
	}
	return with-least > int(s.MaxSkew)
}

// fewDomains reports whether there are fewer domains than minDomains.
func (s *spread) fewDomains() bool { return len(s.counts) < int(s.MinDomains) }

// text returns, in words, why the constraint keeps the pod off n. It must do so: see blocks.
func (s *spread) text(n *v1.Node) string {
	value, has := n.Labels[s.TopologyKey]
	if !has {
		return "nodes have no label " + s.TopologyKey + ", by which pods are to be spread"
	}
	text := fmt.Sprintf("%s has %d", s.fewest, s.least)
	if s.fewDomains() {
		text = fmt.Sprintf("and 0 is the fewest, as minDomains %d is more than the domains there are (%d)", s.MinDomains, len(s.counts))
	}
	return fmt.Sprintf("spread by %s allows maxSkew %d; matching pods: %s has %d, %s", s.TopologyKey, s.MaxSkew, value, s.counts[value], text)
}

// spreadCounts counts the pods that the constraint is about by domain. Nodes that lack
// the key of any constraint do not count.
func (f *facts) spreadCounts(c *match.SpreadConstraint) map[string]int {
	counts := map[string]int{}
	t := f.cluster.Machine.Table()
	for _, r := range t.All() {
		n := t.Node(r)
		if n == nil || slices.ContainsFunc(f.pod.Spread.Hard, func(c match.SpreadConstraint) bool { _, has := n.Labels[c.TopologyKey]; return !has }) ||
			c.HonorAffinity && f.pod.RequiredNodes != nil && !f.pod.RequiredNodes.Matches(n.Subject()) ||
			c.HonorTaints && !f.pod.Tolerations.Admits(n.Taints, false) {
			continue
		}
		value := n.Labels[c.TopologyKey]
		counts[value] += 0
		for _, p := range f.on(n.Name) {
			if p.Namespace == f.pod.Namespace && !p.Terminating && c.Selector.Matches(labels.Set(p.Labels)) {
				counts[value]++
			}
		}
	}
	return counts
}
