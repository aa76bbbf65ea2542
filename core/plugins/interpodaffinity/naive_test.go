package interpodaffinity

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// pair is a domain: kube-scheduler counts by these.
type pair struct{ key, value string }

// naive is kube-scheduler's plugin for one pod, in its simplest form: it walks all pods
// of the cluster.
type naive struct {
	t      *table.Table
	pod    *object.Pod
	hard   int64
	ignore bool

	nominated map[string][]*object.Pod // by node, those that count against the pod
	nodeOfPod *object.Node             // the one that the pod itself is nominated to
}

func (n *naive) own() match.PodAffinity {
	if n.pod.Affinity == nil {
		return match.PodAffinity{}
	}
	return *n.pod.Affinity
}

// finds reports whether a term of the pod at hand is about the placed pod, or about itself.
// Only a namespace with labels is there.
func (n *naive) finds(term match.PodTerm, p *object.Pod) bool {
	s, of := term.NamespaceSelector, n.t.Namespaces().Labels(p.Namespace)
	return matches(term, p, of, s != nil && (len(of) > 0 || s.Empty()))
}

// isFound reports whether a term of another pod is about the pod at hand.
func (n *naive) isFound(term match.PodTerm) bool {
	return matches(term, n.pod, n.t.Namespaces().Labels(n.pod.Namespace), term.NamespaceSelector != nil)
}

func matches(term match.PodTerm, p *object.Pod, of map[string]string, selects bool) bool {
	in := slices.Contains(term.Namespaces, p.Namespace) || selects && term.NamespaceSelector.Matches(labels.Set(of))
	return in && term.Selector.Matches(labels.Set(p.Labels))
}

func (n *naive) ofAll(p *object.Pod) bool {
	terms := n.own().Affinity
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(t match.PodTerm) bool { return !n.finds(t, p) })
}

func (n *naive) each(visit func(node *object.Node, p *object.Pod)) {
	for i := range n.t.Rows() {
		if node := n.t.Node(table.Row(i)); node != nil {
			for _, pl := range n.t.Pods(table.Row(i)) {
				visit(node, pl.Pod)
			}
		}
	}
}

func add(m map[pair]int64, node *object.Node, key string, n int64) {
	if value, ok := node.Labels[key]; ok {
		m[pair{key, value}] += n
	}
}

func (n *naive) filterCounts() (existing, affinity, anti map[pair]int64) {
	existing, affinity, anti = map[pair]int64{}, map[pair]int64{}, map[pair]int64{}
	n.each(func(node *object.Node, p *object.Pod) {
		if p.Affinity != nil {
			for _, term := range p.Affinity.AntiAffinity {
				if n.isFound(term) {
					add(existing, node, term.TopologyKey, 1)
				}
			}
		}
		for _, term := range n.own().Affinity {
			if n.ofAll(p) {
				add(affinity, node, term.TopologyKey, 1)
			}
		}
		for _, term := range n.own().AntiAffinity {
			if n.finds(term, p) {
				add(anti, node, term.TopologyKey, 1)
			}
		}
	})
	for name, pods := range n.nominated { // any order: sums
		r, _ := n.t.Find(name)
		for _, p := range pods {
			n.close(n.t.Node(r), p, existing, anti)
		}
	}
	return existing, affinity, anti
}

// close counts a nominated pod in the domains of its node, but for one that the pod is
// nominated to as well, with the same priority.
func (n *naive) close(node *object.Node, p *object.Pod, existing, anti map[pair]int64) {
	count := func(m map[pair]int64, key string) {
		value, here := node.Labels[key]
		if o := n.nodeOfPod; o != nil && p.Priority == n.pod.Priority {
			if own, ok := o.Labels[key]; ok && here && own == value {
				return
			}
		}
		add(m, node, key, 1)
	}
	if p.Affinity != nil {
		for _, term := range p.Affinity.AntiAffinity {
			if n.isFound(term) {
				count(existing, term.TopologyKey)
			}
		}
	}
	for _, term := range n.own().AntiAffinity {
		if n.finds(term, p) {
			count(anti, term.TopologyKey)
		}
	}
}

// skips tells whether the filter has nothing to say.
func (n *naive) skips() bool {
	existing, _, _ := n.filterCounts()
	return len(existing) == 0 && len(n.own().Affinity)+len(n.own().AntiAffinity) == 0
}

func (n *naive) verdicts() map[string]framework.Verdict {
	existing, affinity, anti := n.filterCounts()
	out := map[string]framework.Verdict{}
	for i := range n.t.Rows() {
		node := n.t.Node(table.Row(i))
		if node == nil {
			continue
		}
		found, labelled := true, true
		for _, term := range n.own().Affinity {
			value, ok := node.Labels[term.TopologyKey]
			labelled = labelled && ok
			found = found && affinity[pair{term.TopologyKey, value}] > 0
		}
		first := len(affinity) == 0 && n.ofAll(n.pod)
		v := framework.Fits
		switch {
		case !labelled || !found && !first:
			v = affinityNotMet
		case slices.ContainsFunc(n.own().AntiAffinity, func(t match.PodTerm) bool {
			value, ok := node.Labels[t.TopologyKey]
			return ok && anti[pair{t.TopologyKey, value}] > 0
		}):
			v = antiAffinityNotMet
		default:
			for key, value := range node.Labels { // any order: any will do
				if existing[pair{key, value}] > 0 {
					v = existingAntiAffinityNotMet
				}
			}
		}
		out[node.Name] = v
	}
	return out
}

func (n *naive) scores() map[string]int64 {
	sums, own := map[pair]int64{}, n.own()
	n.each(func(node *object.Node, p *object.Pod) {
		if n.ignore && !own.Prefers {
			return
		}
		for _, term := range own.Preferred {
			if n.finds(term, p) {
				add(sums, node, term.TopologyKey, term.Weight)
			}
		}
		if p.Affinity == nil {
			return
		}
		for _, term := range p.Affinity.Affinity {
			if n.isFound(term) {
				add(sums, node, term.TopologyKey, n.hard)
			}
		}
		for _, term := range p.Affinity.Preferred {
			if n.isFound(term) {
				add(sums, node, term.TopologyKey, term.Weight)
			}
		}
	})
	out := map[string]int64{}
	for i := range n.t.Rows() {
		if node := n.t.Node(table.Row(i)); node != nil {
			out[node.Name] = 0
			for key, value := range node.Labels { // any order: a sum
				out[node.Name] += sums[pair{key, value}]
			}
		}
	}
	return out
}
