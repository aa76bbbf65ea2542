package chaos

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// whereabouts are nodes, by name with their labels, and the pods on them: as the API
// server has them, or as a process knows them.
type whereabouts struct {
	nodes map[string]map[string]string
	// sure are on their nodes. perhaps are those and others that may be.
	sure, perhaps []located
}

// located is a pod on a node.
type located struct {
	pod     *v1.Pod
	node    string
	leaving bool
}

// breaks says which hard constraint of the pod, or of another one, the node would
// break; "" if none for sure.
func (w *whereabouts) breaks(pod *v1.Pod, node string) string {
	return cmp.Or(w.portTaken(pod, node), w.keptAway(pod, node), w.lonely(pod, node), w.uneven(pod, node))
}

func portsOf(p *v1.Pod) (ports []int32) {
	for i := range p.Spec.Containers {
		for _, port := range p.Spec.Containers[i].Ports {
			ports = append(ports, port.HostPort)
		}
	}
	return ports
}

func (w *whereabouts) portTaken(pod *v1.Pod, node string) string {
	for _, port := range portsOf(pod) {
		for _, other := range w.sure {
			if other.node == node && slices.Contains(portsOf(other.pod), port) {
				return fmt.Sprintf("pod %s has port %d there", other.pod.Name, port)
			}
		}
	}
	return ""
}

// together tells whether both nodes are in one domain of the key.
func (w *whereabouts) together(key, a, b string) bool {
	in, known := w.nodes[a][key]
	and, also := w.nodes[b][key]
	return known && also && in == and
}

func (w *whereabouts) keptAway(pod *v1.Pod, node string) string {
	for _, other := range w.sure {
		for _, one := range []struct{ of, from *v1.Pod }{{pod, other.pod}, {other.pod, pod}} {
			for _, term := range awayTerms(one.of) {
				if matches(term.LabelSelector, one.from) && w.together(term.TopologyKey, node, other.node) {
					return fmt.Sprintf("pod %s is in the %s, and is to be away", other.pod.Name, term.TopologyKey)
				}
			}
		}
	}
	return ""
}

// lonely says which pods are not near that are to be. The first of a group needs none.
func (w *whereabouts) lonely(pod *v1.Pod, node string) string {
	for _, term := range nearTerms(pod) {
		if _, has := w.nodes[node][term.TopologyKey]; !has {
			return "it has no label " + term.TopologyKey
		}
		near := func(l located) bool {
			return matches(term.LabelSelector, l.pod) && w.together(term.TopologyKey, node, l.node)
		}
		anywhere := func(l located) bool {
			return matches(term.LabelSelector, l.pod) && w.together(term.TopologyKey, l.node, l.node)
		}
		first := matches(term.LabelSelector, pod) && !slices.ContainsFunc(w.sure, anywhere)
		if !first && !slices.ContainsFunc(w.perhaps, near) {
			return fmt.Sprintf("no pod that is to be near is in the %s", term.TopologyKey)
		}
	}
	return ""
}

func (w *whereabouts) uneven(pod *v1.Pod, node string) string {
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		domain, has := w.nodes[node][c.TopologyKey]
		if !has {
			return "it has no label " + c.TopologyKey
		}
		atLeast, atMost := map[string]int{}, map[string]int{}
		for name, of := range w.nodes { // any order: sums
			if in, has := of[c.TopologyKey]; has && labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(of)) {
				counted := func(l located) bool { return l.node == name && !l.leaving && matches(c.LabelSelector, l.pod) }
				atLeast[in] += count(w.sure, counted)
				atMost[in] += count(w.perhaps, counted)
			}
		}
		fewest := atMost[domain]
		for _, n := range atMost { // any order: the least
			fewest = min(fewest, n)
		}
		here := atLeast[domain]
		if matches(c.LabelSelector, pod) {
			here++
		}
		if here-fewest > int(c.MaxSkew) {
			return fmt.Sprintf("%d such pods would be in the %s, and %d in another", here, c.TopologyKey, fewest)
		}
	}
	return ""
}

func count[T any](of []T, which func(T) bool) (n int) {
	for _, one := range of {
		if which(one) {
			n++
		}
	}
	return n
}

func awayTerms(p *v1.Pod) []v1.PodAffinityTerm {
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

func nearTerms(p *v1.Pod) []v1.PodAffinityTerm {
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
		return a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// matches tells whether the selector, which a story wrote, is about the pod.
func matches(s *metav1.LabelSelector, p *v1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(p.Labels))
}

func constrained(p *v1.Pod) bool {
	return len(portsOf(p))+len(awayTerms(p))+len(nearTerms(p))+len(p.Spec.TopologySpreadConstraints) > 0
}

// around is where pods are as the API server has them, except for those without which
// it may count.
func around(nodes []*v1.Node, pods []*v1.Pod, without func(*v1.Pod) bool) *whereabouts {
	w := &whereabouts{nodes: map[string]map[string]string{}}
	for _, n := range nodes {
		w.nodes[n.Name] = n.Labels
	}
	for _, p := range pods {
		if p.Spec.NodeName != "" && (without == nil || !without(p)) {
			w.sure = append(w.sure, located{p, p.Spec.NodeName, p.DeletionTimestamp != nil})
		}
	}
	w.perhaps = w.sure
	return w
}

// as is where pods are as the process knows it, when it decides on the pod.
func (c *check) as(k *cluster, deciding *v1.Pod) *whereabouts {
	w := &whereabouts{nodes: map[string]map[string]string{}}
	for name, n := range k.nodes { // any order: a set
		w.nodes[name] = n.Labels
	}
	for uid, node := range k.perhaps { // any order: a set
		spec, told := c.specs[uid], k.pods[uid]
		if spec == nil || uid == deciding.UID {
			continue
		}
		at := located{spec, node, told != nil && told.Terminating}
		w.perhaps = append(w.perhaps, at)
		if k.assumed[uid] == node || told != nil && told.NodeName == node {
			w.sure = append(w.sure, at)
		}
	}
	return w
}
