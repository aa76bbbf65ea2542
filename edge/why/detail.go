package why

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

const insufficient = "Insufficient "

// detail says what a blocker means on some nodes, with numbers and names.
func (f *facts) detail(b *Blocker, nodes []string) string {
	switch b.Plugin {
	case names.NodeResourcesFit:
		return f.shortText(b, nodes)
	case names.TaintToleration:
		return f.taintText(nodes)
	case names.NodeUnschedulable:
		return "cordoned (spec.unschedulable)"
	case names.NodeAffinity:
		return f.affinityText(nodes)
	case names.NodePorts:
		return f.portText(nodes)
	case names.InterPodAffinity:
		return f.podAffinityText(b, nodes[0])
	case names.PodTopologySpread:
		return f.spreadText(b, nodes[0])
	case names.VolumeBinding, names.VolumeZone, names.VolumeRestrictions, names.NodeVolumeLimits:
		return strings.Join(b.Reasons, ", ") + f.claimText()
	case names.DynamicResources:
		return strings.Join(b.Reasons, ", ") + f.deviceText()
	}
	return b.Plugin + ": " + strings.Join(b.Reasons, ", ")
}

// shortText names the freest of the nodes for each resource that is short.
func (f *facts) shortText(b *Blocker, nodes []string) string {
	var parts []string
	t := f.cluster.Machine.Table()
	for _, reason := range b.Reasons {
		name, is := strings.CutPrefix(reason, insufficient)
		if !is {
			if row, ok := t.Find(nodes[0]); ok {
				reason = fmt.Sprintf("%s runs %d of %d pods", nodes[0], t.PodCount()[row], t.AllowedPods()[row])
			}
			parts = append(parts, reason)
			continue
		}
		parts = append(parts, f.shortOf(v1.ResourceName(name), nodes))
	}
	return strings.Join(parts, "; ")
}

func (f *facts) shortOf(name v1.ResourceName, nodes []string) string {
	wants := f.pod.Demand.Requests.Of(name)
	best, free, whole := f.freest(name, nodes)
	switch {
	case whole == 0:
		return fmt.Sprintf("it requests %s, and no node here offers any", amount(name, wants))
	case wants > f.largest(name, nodes):
		return fmt.Sprintf("it requests %s, more than any node here has (the largest has %s)", amount(name, wants), quantity(name, f.largest(name, nodes)))
	case len(nodes) == 1:
		return fmt.Sprintf("it requests %s; %s has %s of %s free", amount(name, wants), best, quantity(name, free), quantity(name, whole))
	}
	return fmt.Sprintf("it requests %s; the freest of them, %s, has %s of %s free", amount(name, wants), best, quantity(name, free), quantity(name, whole))
}

// freest is the node with the most room, its room and its size.
func (f *facts) freest(name v1.ResourceName, nodes []string) (best string, free, whole int64) {
	t := f.cluster.Machine.Table()
	column, ok := t.Column(name)
	if !ok {
		return "", 0, 0
	}
	for _, n := range nodes {
		if row, ok := t.Find(n); ok {
			room, size := t.Allocatable(column)[row]-t.Used(column)[row], t.Allocatable(column)[row]
			if best == "" || room > free || room == free && size > whole {
				best, free, whole = n, room, size
			}
		}
	}
	return best, max(0, free), whole
}

// largest is the most that a node offers, used or not.
func (f *facts) largest(name v1.ResourceName, nodes []string) (most int64) {
	t := f.cluster.Machine.Table()
	if column, ok := t.Column(name); ok {
		for _, n := range nodes {
			if row, ok := t.Find(n); ok {
				most = max(most, t.Allocatable(column)[row])
			}
		}
	}
	return most
}

func quantity(name v1.ResourceName, n int64) string {
	switch {
	case name == v1.ResourceCPU:
		return resource.NewMilliQuantity(n, resource.DecimalSI).String()
	case name == v1.ResourceMemory || name == v1.ResourceEphemeralStorage || strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix):
		return binary(n)
	}
	return resource.NewQuantity(n, resource.DecimalSI).String()
}

// binary is an amount of bytes as people read it: rounded, where it is odd.
func binary(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 40, "Ti"}, {1 << 30, "Gi"}, {1 << 20, "Mi"}, {1 << 10, "Ki"}} {
		if n >= u.size && n%u.size == 0 {
			return fmt.Sprintf("%d%s", n/u.size, u.name)
		}
		if n >= 10*u.size {
			return fmt.Sprintf("%.1f%s", float64(n)/float64(u.size), u.name)
		}
	}
	return fmt.Sprint(n)
}

// amount is a quantity with its unit.
func amount(name v1.ResourceName, n int64) string {
	switch {
	case name == v1.ResourceCPU && n == 1000:
		return "1 CPU"
	case name == v1.ResourceCPU:
		return quantity(name, n) + " CPUs"
	}
	return quantity(name, n) + " " + string(name)
}

// taintText counts the nodes by the taints that the pod does not tolerate.
func (f *facts) taintText(nodes []string) string {
	return f.counted(nodes, "taint ", func(n *v1.Node) []string {
		var taints []string
		for i := range n.Spec.Taints {
			if !f.pod.Tolerations.Admits(n.Spec.Taints[i:i+1], false) {
				taints = append(taints, n.Spec.Taints[i].ToString())
			}
		}
		return taints
	}) + " is not tolerated"
}

// counted lists what nodes have, the most frequent first.
func (f *facts) counted(nodes []string, what string, of func(*v1.Node) []string) string {
	counts := map[string]int{}
	for _, name := range nodes {
		if n := f.node(name); n != nil {
			for _, x := range of(n) {
				counts[x]++
			}
		}
	}
	sorted := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, x := range sorted {
		if sorted[i] = what + x; counts[x] < len(nodes) {
			sorted[i] += fmt.Sprintf(" (%d)", counts[x])
		}
	}
	return list(sorted, 4)
}

func (f *facts) node(name string) *v1.Node {
	if f.nodes == nil {
		f.nodes = map[string]*v1.Node{}
		for _, n := range f.cluster.Set.Nodes {
			f.nodes[n.Name] = n
		}
	}
	return f.nodes[name]
}

// affinityText says which labels are asked for, and what the nodes have instead.
func (f *facts) affinityText(nodes []string) string {
	var parts []string
	spec := &f.api.Spec
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		if text := f.labelText(key, nodes, func(v string, has bool) bool { return has && v == spec.NodeSelector[key] }); text != "" {
			parts = append(parts, fmt.Sprintf("the node selector wants %s=%s, %s", key, spec.NodeSelector[key], text))
		}
	}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		var terms []string
		for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			terms = append(terms, termText(t))
		}
		text := "the required node affinity wants " + strings.Join(terms, ", or ")
		if len(terms) == 1 && len(parts) == 0 {
			for _, e := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions {
				text += ", " + f.labelText(e.Key, nodes, func(string, bool) bool { return false })
			}
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "the profile's own node affinity does not match"
	}
	return strings.Join(parts, "; ")
}

// labelText says which values nodes have for the label that are not right.
func (f *facts) labelText(key string, nodes []string, right func(string, bool) bool) string {
	has, missing := map[string]int{}, 0
	for _, name := range nodes {
		if n := f.node(name); n != nil {
			v, ok := n.Labels[key]
			switch {
			case right(v, ok):
			case ok:
				has[v]++
			default:
				missing++
			}
		}
	}
	values := slices.SortedFunc(maps.Keys(has), func(a, b string) int { return cmp.Or(cmp.Compare(has[b], has[a]), cmp.Compare(a, b)) })
	if len(values) > 3 {
		values = append(values[:3:3], "...")
	}
	switch {
	case len(values) > 0 && missing > 0:
		return fmt.Sprintf("nodes have %s=%s, or no such label (%d)", key, strings.Join(values, " "), missing)
	case len(values) > 0:
		return fmt.Sprintf("nodes have %s=%s", key, strings.Join(values, " "))
	case missing > 0:
		return "nodes have no label " + key
	}
	return ""
}

func termText(t v1.NodeSelectorTerm) string {
	var parts []string
	for _, e := range slices.Concat(t.MatchExpressions, t.MatchFields) {
		text := e.Key + " " + string(e.Operator)
		if len(e.Values) > 0 {
			text += " [" + strings.Join(e.Values, " ") + "]"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " and ")
}

// portText names who has the ports.
func (f *facts) portText(nodes []string) string {
	t := f.cluster.Machine.Table()
	holders := map[string]bool{}
	for _, name := range nodes {
		row, ok := t.Find(name)
		if !ok {
			continue
		}
		for _, pl := range t.Pods(row) {
			for _, hp := range pl.Pod.HostPorts {
				if slices.ContainsFunc(f.pod.HostPorts, func(w object.HostPort) bool { return w.Port == hp.Port && w.Protocol == hp.Protocol }) {
					holders[fmt.Sprintf("host port %d/%s is taken by %s", hp.Port, hp.Protocol, pl.Pod.Key())] = true
				}
			}
		}
	}
	return list(slices.Sorted(maps.Keys(holders)), 2)
}

// podAffinityText names the term, and a pod that it is about.
func (f *facts) podAffinityText(b *Blocker, node string) string {
	var parts []string
	t := f.cluster.Machine.Table()
	for _, reason := range b.Reasons {
		switch {
		case strings.Contains(reason, "existing pods"):
			if pl, term := f.keeper(node); pl != nil {
				reason = fmt.Sprintf("pod %s on %s keeps pods like this one away (its anti-affinity by %s)", pl.Key(), t.Name(t.Pod(pl.UID).Row), term)
			}
		case strings.Contains(reason, "anti-affinity"):
			for _, term := range podTerms(f.api, true) {
				text := fmt.Sprintf("its anti-affinity forbids %s in the same %s", selectorText(term.LabelSelector), term.TopologyKey)
				if who := f.matching(&term, node); who != "" {
					text += ", and " + who + " is there"
				}
				parts = append(parts, text)
			}
			continue
		default:
			for _, term := range podTerms(f.api, false) {
				parts = append(parts, fmt.Sprintf("its affinity wants a pod with %s in the same %s", selectorText(term.LabelSelector), term.TopologyKey))
			}
			continue
		}
		parts = append(parts, reason)
	}
	return strings.Join(parts, "; ")
}

func podTerms(p *v1.Pod, anti bool) []v1.PodAffinityTerm {
	switch a := p.Spec.Affinity; {
	case a == nil:
	case anti && a.PodAntiAffinity != nil:
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	case !anti && a.PodAffinity != nil:
		return a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// selectorText is what a selector asks for, as kubectl writes it.
func selectorText(l *metav1.LabelSelector) string {
	text := metav1.FormatLabelSelector(l)
	if text == "<none>" {
		return "any labels"
	}
	return text
}

// matching is a pod in the node's domain that a term of the pod is about.
func (f *facts) matching(term *v1.PodAffinityTerm, node string) string {
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	if err != nil {
		return ""
	}
	return f.inDomain(term.TopologyKey, node, func(p *object.Pod) bool {
		in := p.Namespace == f.pod.Namespace
		if len(term.Namespaces) > 0 || term.NamespaceSelector != nil {
			in = term.NamespaceSelector != nil || slices.Contains(term.Namespaces, p.Namespace)
		}
		return in && selector.Matches(labels.Set(p.Labels))
	})
}

// inDomain is the first pod, by name, of the node's domain that is meant.
func (f *facts) inDomain(key, node string, is func(*object.Pod) bool) (first string) {
	t := f.cluster.Machine.Table()
	at := f.node(node)
	if at == nil {
		return ""
	}
	for _, r := range t.All() {
		n := t.Node(r)
		if n == nil || n.Labels[key] != at.Labels[key] {
			continue
		}
		for _, pl := range t.Pods(r) {
			if is(pl.Pod) && (first == "" || pl.Pod.Key() < first) {
				first = pl.Pod.Key()
			}
		}
	}
	return first
}

// keeper is a pod whose own anti-affinity keeps the pod off the node.
func (f *facts) keeper(node string) (keeper *object.Pod, topology string) {
	t := f.cluster.Machine.Table()
	at := f.node(node)
	for _, r := range t.All() {
		n := t.Node(r)
		if n == nil || at == nil {
			continue
		}
		for _, pl := range t.Pods(r) {
			if pl.Pod.Affinity == nil || keeper != nil && compareKeys(keeper, pl.Pod) <= 0 {
				continue
			}
			for i := range pl.Pod.Affinity.AntiAffinity {
				term := &pl.Pod.Affinity.AntiAffinity[i]
				value, has := n.Labels[term.TopologyKey]
				if has && at.Labels[term.TopologyKey] == value && term.Matches(f.pod.Namespace, t.NamespaceLabels(f.pod.Namespace), f.pod.Labels) {
					keeper, topology = pl.Pod, term.TopologyKey
				}
			}
		}
	}
	return keeper, topology
}

// spreadText says how many pods are where.
func (f *facts) spreadText(b *Blocker, node string) string {
	var parts []string
	for _, c := range f.api.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != v1.DoNotSchedule {
			continue
		}
		n := f.node(node)
		value, has := "", false
		if n != nil {
			value, has = n.Labels[c.TopologyKey]
		}
		if !has {
			parts = append(parts, "nodes have no label "+c.TopologyKey+", by which pods are to be spread")
			continue
		}
		counts := f.spreadCounts(&c)
		fewest := value
		for _, v := range slices.Sorted(maps.Keys(counts)) {
			if counts[v] < counts[fewest] {
				fewest = v
			}
		}
		parts = append(parts, fmt.Sprintf("spread by %s allows maxSkew %d; matching pods: %s has %d, %s has %d", c.TopologyKey, c.MaxSkew, value, counts[value], fewest, counts[fewest]))
	}
	if len(parts) == 0 {
		return strings.Join(b.Reasons, ", ")
	}
	return strings.Join(parts, "; ")
}

// spreadCounts counts the pods that the constraint is about by domain.
func (f *facts) spreadCounts(c *v1.TopologySpreadConstraint) map[string]int {
	counts := map[string]int{}
	selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	if err != nil {
		return counts
	}
	t := f.cluster.Machine.Table()
	for _, r := range t.All() {
		n := t.Node(r)
		if n == nil {
			continue
		}
		value, has := n.Labels[c.TopologyKey]
		if !has || f.pod.RequiredNodes != nil && !f.pod.RequiredNodes.Matches(n.Subject()) {
			continue
		}
		counts[value] += 0
		for _, pl := range t.Pods(r) {
			if pl.Pod.Namespace == f.pod.Namespace && !pl.Pod.Terminating && selector.Matches(labels.Set(pl.Pod.Labels)) {
				counts[value]++
			}
		}
	}
	return counts
}

// claimText names the pod's claims and their volumes.
func (f *facts) claimText() string {
	var parts []string
	t := f.cluster.Machine.Table()
	for i := range f.pod.Volumes {
		v := &f.pod.Volumes[i]
		if !v.Claimed {
			continue
		}
		c := table.Lookup[*object.PersistentVolumeClaim](t, object.PersistentVolumeClaims, f.pod.Namespace, v.Claim)
		switch {
		case c == nil:
			parts = append(parts, "claim "+v.Claim+" is not there")
		case c.VolumeName == "":
			parts = append(parts, fmt.Sprintf("claim %s of class %q is not bound", v.Claim, c.Class))
		default:
			parts = append(parts, f.volumeText(v.Claim, c.VolumeName))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func (f *facts) volumeText(claim, name string) string {
	v := table.Lookup[*object.PersistentVolume](f.cluster.Machine.Table(), object.PersistentVolumes, "", name)
	switch {
	case v == nil:
		return fmt.Sprintf("claim %s is bound to volume %s, which is not there", claim, name)
	case v.Pin != nil:
		return fmt.Sprintf("claim %s is bound to volume %s, on nodes with %s in [%s]", claim, name, v.Pin.Key, strings.Join(v.Pin.Values, " "))
	case v.Labels[v1.LabelTopologyZone] != "":
		return fmt.Sprintf("claim %s is bound to volume %s in zone %s", claim, name, v.Labels[v1.LabelTopologyZone])
	}
	return fmt.Sprintf("claim %s is bound to volume %s", claim, name)
}

func (f *facts) deviceText() string {
	var parts []string
	for i := range f.pod.Claims {
		if name := f.pod.Claims[i].Claim; name != "" {
			parts = append(parts, "claim "+name)
		}
	}
	for i := range f.pod.Extended {
		parts = append(parts, fmt.Sprintf("%d %s", f.pod.Extended[i].Count, f.pod.Extended[i].Resource))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
