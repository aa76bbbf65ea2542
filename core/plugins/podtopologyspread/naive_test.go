package podtopologyspread

import (
	"maps"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// question is a pod and, as the API has them, the constraints to judge it by.
type question struct {
	pod  *object.Pod
	list []v1.TopologySpreadConstraint // the pod's, or the profile's with owner
	// byDefault: the list is the profile's, and owner who is counted.
	byDefault bool
	owner     labels.Selector
	lenient   bool
}

// scene is a cluster as kube-scheduler would see it: nodes, the pods on them
// before any try, and what a try changes.
type scene struct {
	nodes map[table.Row]*object.Node
	pods  map[table.Row][]*object.Pod
	tries []table.PodChange
}

func (q *question) selects(c *v1.TopologySpreadConstraint, l labels.Set) bool {
	if q.byDefault {
		return q.owner.Matches(l)
	}
	if c.LabelSelector == nil {
		return false
	}
	for _, key := range c.MatchLabelKeys {
		if v, ok := q.pod.Labels[key]; ok && (!l.Has(key) || l[key] != v) {
			return false
		}
	}
	s, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	return err == nil && s.Matches(l)
}

// empty: the selector asks for nothing, and kube-scheduler then counts nobody.
func (q *question) empty(c *v1.TopologySpreadConstraint) bool {
	if q.byDefault || c.LabelSelector == nil || len(c.LabelSelector.MatchLabels)+len(c.LabelSelector.MatchExpressions) > 0 {
		return false
	}
	return !slices.ContainsFunc(c.MatchLabelKeys, func(k string) bool { return labels.Set(q.pod.Labels).Has(k) })
}

func (q *question) of(action v1.UnsatisfiableConstraintAction) []*v1.TopologySpreadConstraint {
	var list []*v1.TopologySpreadConstraint
	if q.byDefault && (q.owner == nil || q.owner.Empty()) {
		return nil
	}
	for i := range q.list {
		if q.list[i].WhenUnsatisfiable == action {
			list = append(list, &q.list[i])
		}
	}
	return list
}

func hasAll(n *object.Node, list []*v1.TopologySpreadConstraint) bool {
	return !slices.ContainsFunc(list, func(c *v1.TopologySpreadConstraint) bool {
		_, ok := n.Labels[c.TopologyKey]
		return !ok
	})
}

func (q *question) included(c *v1.TopologySpreadConstraint, n *object.Node) bool {
	if c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == v1.NodeInclusionPolicyHonor {
		if !q.pod.RequiredNodes.Matches(match.Subject{Name: n.Name, Labels: n.Labels}) {
			return false
		}
	}
	if c.NodeTaintsPolicy == nil || *c.NodeTaintsPolicy == v1.NodeInclusionPolicyIgnore {
		return true
	}
	return q.pod.Tolerations.Admits(n.Taints, false)
}

func (q *question) countOn(s scene, c *v1.TopologySpreadConstraint, r table.Row) (n int) {
	for _, p := range s.pods[r] {
		if !q.empty(c) && !p.Terminating && p.Namespace == q.pod.Namespace && q.selects(c, p.Labels) {
			n++
		}
	}
	return n
}

// filter is what the plugin should say of each node.
func (q *question) filter(s scene) map[table.Row]string {
	list := q.of(v1.DoNotSchedule)
	if len(list) == 0 {
		return nil
	}
	counts := make([]map[string]int, len(list))
	for i, c := range list {
		counts[i] = map[string]int{}
		for r, n := range s.nodes {
			if hasAll(n, list) && q.included(c, n) {
				counts[i][n.Labels[c.TopologyKey]] += q.countOn(s, c, r)
			}
		}
		for _, try := range s.tries {
			n := s.nodes[try.Row]
			if n == nil || !hasAll(n, list) || !q.included(c, n) || try.Pod.Namespace != q.pod.Namespace || !q.selects(c, try.Pod.Labels) {
				continue
			}
			if try.Came {
				counts[i][n.Labels[c.TopologyKey]]++
			} else {
				counts[i][n.Labels[c.TopologyKey]]--
			}
		}
	}
	said := map[table.Row]string{}
	for r, n := range s.nodes {
		said[r] = q.judge(n, list, counts)
	}
	return said
}

func (q *question) judge(n *object.Node, list []*v1.TopologySpreadConstraint, counts []map[string]int) string {
	for i, c := range list {
		value, ok := n.Labels[c.TopologyKey]
		if !ok {
			return "UnschedulableAndUnresolvable: node(s) didn't match pod topology spread constraints (missing required label)"
		}
		least, domains := math.MaxInt32, int32(1)
		if c.MinDomains != nil {
			domains = *c.MinDomains
		}
		if len(counts[i]) > 0 {
			least = slices.Min(slices.Collect(maps.Values(counts[i])))
		}
		if len(counts[i]) < int(domains) {
			least = 0
		}
		skew := counts[i][value] - least
		if q.selects(c, q.pod.Labels) {
			skew++
		}
		if skew > int(c.MaxSkew) {
			return "Unschedulable: node(s) didn't match pod topology spread constraints"
		}
	}
	return ""
}

// scored is raw and normalised score of a node, or that it has none.
type scored struct {
	raw, normalized int64
	none            bool
}

// score is what the feasible nodes should score.
func (q *question) score(s scene, feasible []table.Row) map[table.Row]scored {
	list := q.of(v1.ScheduleAnyway)
	if len(list) == 0 {
		return nil
	}
	ignored := func(n *object.Node) bool { return !q.lenient && !hasAll(n, list) }
	counts, weights := make([]map[string]int, len(list)), make([]float64, len(list))
	for i, c := range list {
		counts[i] = map[string]int{}
		size := 0
		for _, r := range feasible {
			if n := s.nodes[r]; !ignored(n) {
				size++
				counts[i][n.Labels[c.TopologyKey]] = 0
			}
		}
		if c.TopologyKey != v1.LabelHostname {
			size = len(counts[i])
		}
		weights[i] = math.Log(float64(size + 2))
		for r, n := range s.nodes {
			value := n.Labels[c.TopologyKey]
			if _, asked := counts[i][value]; asked && !ignored(n) && q.included(c, n) {
				counts[i][value] += q.countOn(s, c, r)
			}
		}
	}
	scores := map[table.Row]scored{}
	least, most := int64(math.MaxInt64), int64(0)
	for _, r := range feasible {
		n := s.nodes[r]
		if ignored(n) {
			scores[r] = scored{none: true}
			continue
		}
		var sum float64
		for i, c := range list {
			value, ok := n.Labels[c.TopologyKey]
			if !ok {
				continue
			}
			pods := counts[i][value]
			if c.TopologyKey == v1.LabelHostname {
				pods = q.countOn(s, c, r)
			}
			sum += float64(pods)*weights[i] + float64(c.MaxSkew-1)
		}
		raw := int64(math.Round(sum))
		scores[r] = scored{raw: raw}
		least, most = min(least, raw), max(most, raw)
	}
	for r, sc := range scores {
		switch {
		case sc.none:
		case most == 0:
			sc.normalized = 100
		default:
			sc.normalized = 100 * (most + least - sc.raw) / most
		}
		scores[r] = sc
	}
	return scores
}
