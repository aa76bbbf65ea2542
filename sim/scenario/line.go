package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// line puts a directive together, word by word.
type line struct{ strings.Builder }

func (l *line) word(format string, args ...any) {
	w := fmt.Sprintf(format, args...)
	if l.Len() > 0 {
		_ = l.WriteByte(' ')
	}
	if w == "" || strings.Contains(w, " ") {
		w = `"` + w + `"`
	}
	_, _ = l.WriteString(w)
}

func (l *line) entries(prefix string, set map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		l.word("%s:%s=%s", prefix, key, set[key])
	}
}

// amounts writes the resources in order of name, those of usual only where
// they differ from it.
func (l *line) amounts(list, usual v1.ResourceList) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		if u, ok := usual[name]; !ok || u.Cmp(q) != 0 {
			l.word("%s=%s", name, q.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(usual)) {
		if _, ok := list[name]; !ok {
			l.word("-%s", name)
		}
	}
}

// nodeLine writes what attributes can say of a node.
func nodeLine(n *v1.Node) string {
	var l line
	l.word("node")
	l.word("%s", n.Name)
	l.amounts(n.Status.Allocatable, newNode("").Status.Allocatable)
	l.entries("label", n.Labels)
	l.entries("annotation", n.Annotations)
	for _, c := range n.Status.Conditions {
		l.word("condition:%s=%s", c.Type, c.Status)
	}
	for _, t := range n.Spec.Taints {
		l.word("taint=%s:%s", keyValue(t.Key, t.Value), t.Effect)
	}
	if n.Spec.Unschedulable {
		l.word("unschedulable")
	}
	for _, image := range n.Status.Images {
		l.word("image=%s@%d", strings.Join(image.Names, ","), image.SizeBytes)
	}
	return l.String()
}

// podLine writes what attributes can say of a pod.
func podLine(p *v1.Pod) string {
	var l line
	l.word("pod")
	l.word("%s", strings.TrimPrefix(p.Namespace+"/"+p.Name, v1.NamespaceDefault+"/"))
	for _, c := range p.Spec.Containers {
		l.amounts(c.Resources.Requests, nil)
		for _, port := range c.Ports {
			l.word("port=%s", portWord(port))
		}
		if c.Image != "" {
			l.word("image=%s", c.Image)
		}
	}
	l.entries("label", p.Labels)
	l.placement(&p.Spec)
	if p.Spec.Priority != nil && *p.Spec.Priority != 0 {
		l.word("priority=%d", *p.Spec.Priority)
	}
	if policy := p.Spec.PreemptionPolicy; policy != nil && *policy == v1.PreemptNever {
		l.word("never-preempts")
	}
	for _, g := range p.Spec.SchedulingGates {
		l.word("gate=%s", g.Name)
	}
	for _, kv := range []struct{ key, value string }{
		{"bound", p.Spec.NodeName}, {"nominated", p.Status.NominatedNodeName}, {"scheduler", p.Spec.SchedulerName},
	} {
		if kv.value != "" && kv.value != v1.DefaultSchedulerName {
			l.word("%s=%s", kv.key, kv.value)
		}
	}
	if p.Status.StartTime != nil {
		l.word("started=%s", p.Status.StartTime.UTC().Format(time.RFC3339))
	}
	if p.DeletionTimestamp != nil {
		l.word("terminating")
	}
	return l.String()
}

// placement is what the pod says of nodes.
func (l *line) placement(s *v1.PodSpec) {
	l.entries("selector", s.NodeSelector)
	if s.Affinity != nil && s.Affinity.NodeAffinity != nil {
		na := s.Affinity.NodeAffinity
		if r := na.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
			for _, term := range r.NodeSelectorTerms {
				l.word("require=%s", selectorText(term))
			}
		}
		for _, term := range na.PreferredDuringSchedulingIgnoredDuringExecution {
			l.word("prefer=%d %s", term.Weight, selectorText(term.Preference))
		}
	}
	for _, t := range s.Tolerations {
		word := t.Key
		if t.Operator != v1.TolerationOpExists {
			word += "=" + t.Value
		}
		if t.Effect != "" {
			word += ":" + string(t.Effect)
		}
		l.word("toleration=%s", word)
	}
}

// selectorText is selectorTerm's inverse.
func selectorText(term v1.NodeSelectorTerm) string {
	var parts []string
	for _, m := range slices.Concat(term.MatchFields, term.MatchExpressions) {
		values := strings.Join(m.Values, ",")
		switch m.Operator {
		case v1.NodeSelectorOpIn:
			parts = append(parts, fmt.Sprintf("%s in (%s)", m.Key, values))
		case v1.NodeSelectorOpNotIn:
			parts = append(parts, fmt.Sprintf("%s notin (%s)", m.Key, values))
		case v1.NodeSelectorOpExists:
			parts = append(parts, m.Key)
		case v1.NodeSelectorOpDoesNotExist:
			parts = append(parts, "!"+m.Key)
		case v1.NodeSelectorOpGt:
			parts = append(parts, m.Key+">"+values)
		case v1.NodeSelectorOpLt:
			parts = append(parts, m.Key+"<"+values)
		}
	}
	return strings.Join(parts, ",")
}

func portWord(p v1.ContainerPort) string {
	word := fmt.Sprint(p.HostPort)
	if p.HostIP != "" {
		word = p.HostIP + ":" + word
	}
	return word + "/" + string(cmp.Or(p.Protocol, v1.ProtocolTCP))
}

func keyValue(key, value string) string {
	if value == "" {
		return key
	}
	return key + "=" + value
}
