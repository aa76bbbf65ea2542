package fix

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/workload"
)

const (
	requiredNodes = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"
	requiredPods  = "/spec/affinity/%s/requiredDuringSchedulingIgnoredDuringExecution"
)

// unlabelled returns the keys of the pod's node selector whose values the node does not have,
// in order: at most one more than a fix may drop. It returns nil for an unknown node.
func (s *search) unlabelled(node string) (keys []string) {
	n := s.nodes[node]
	if n == nil {
		return nil
	}
	for _, key := range s.selectorKeys {
		if value, ok := n.Labels[key]; !ok || value != s.spec.NodeSelector[key] {
			if keys = append(keys, key); len(keys) > mostEdits {
				break
			}
		}
	}
	return keys
}

// loosenNodes drops from the node selector and the required node affinity what keeps
// the pod off the row's node.
func (s *search) loosenNodes(row table.Row) (ways [][]edit) {
	if correct := s.correctSelector(row); correct != nil {
		ways = s.withNodeTerm(correct, row)
	}
	return append(ways, s.withNodeTerm(s.loosenSelector(row), row)...)
}

// withNodeTerm joins edits of the node selector with those that loosen the required node
// affinity.
func (s *search) withNodeTerm(selector []edit, row table.Row) (ways [][]edit) {
	required := s.requiredNodes()
	if required == nil || s.lifts(selector, row, names.NodeAffinity) {
		return [][]edit{selector}
	}
	for i := range required.NodeSelectorTerms[:min(mostEdits, len(required.NodeSelectorTerms))] {
		if len(ways) == mostCombos {
			break
		}
		if way := s.loosenNodeTerm(&required.NodeSelectorTerms[i], i, row); way != nil && s.lifts(join(selector, way), row, names.NodeAffinity) {
			ways = append(ways, join(selector, way))
		}
	}
	return append(ways, join(selector, []edit{dropped("the required node affinity", requiredNodes)}))
}

// loosenSelector drops what the row's node lacks from the node selector, or all of it
// where that is too much for a fix.
func (s *search) loosenSelector(row table.Row) (edits []edit) {
	lacking := s.unlabelled(s.table.Name(row))
	if len(lacking) > mostEdits {
		return []edit{dropped("the node selector", "/spec/nodeSelector")}
	}
	for _, key := range lacking {
		edits = append(edits, unselect(key, s.spec.NodeSelector[key]))
	}
	return edits
}

// unselect drops a label from the node selector.
func unselect(key, value string) edit {
	return dropped(fmt.Sprintf("%s=%s from the node selector", key, value), "/spec/nodeSelector/"+escape(key))
}

// dropped removes what the pod demands at a path.
func dropped(what, path string) edit {
	return edit{kind: loosenTerm, say: "drop " + what, ops: []Op{{Op: "remove", Path: path}}}
}

func (s *search) requiredNodes() *v1.NodeSelector {
	if a := s.spec.Affinity; a != nil && a.NodeAffinity != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// loosenNodeTerm has a term hold on the node: it gets the node's value, or loses an
// expression. A term without any holds nowhere.
func (s *search) loosenNodeTerm(term *v1.NodeSelectorTerm, place int, row table.Row) (way []edit) {
	gone := 0
	n := s.nodes[s.table.Name(row)]
	if n == nil || !s.spend((len(term.MatchExpressions)+len(term.MatchFields))/5) {
		return nil
	}
	path := at("%s/nodeSelectorTerms/%d", requiredNodes, place)
	for i, e := range term.MatchExpressions {
		value, has := n.Labels[e.Key]
		meant := correctExpression(&e, at("%s/matchExpressions/%d", path, i), n)
		switch {
		case holds(e, n):
		case meant.ops != nil:
			way = append(way, meant)
		case e.Operator == v1.NodeSelectorOpIn && has:
			way = append(way, edit{kind: loosenTerm, say: fmt.Sprintf("let the required node affinity take %s=%s, too", e.Key, value),
				ops: []Op{{Op: "add", Path: at("%s/matchExpressions/%d/values/-", path, i), Value: value}}})
		default:
			gone++
			way = append(way, dropped(expression(e)+" from the required node affinity", at("%s/matchExpressions/%d", path, i)))
		}
		if len(way) > mostEdits {
			return nil
		}
	}
	for i, e := range term.MatchFields {
		if e.Key == "metadata.name" && e.Operator == v1.NodeSelectorOpIn && !slices.Contains(e.Values, n.Name) {
			gone++
			way = append(way, dropped(expression(e)+" from the required node affinity", at("%s/matchFields/%d", path, i)))
		}
	}
	if gone == len(term.MatchExpressions)+len(term.MatchFields) {
		return nil
	}
	return way
}

func holds(e v1.NodeSelectorRequirement, n *v1.Node) bool {
	selector, err := nodeaffinity.NewNodeSelector(&v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{e}}}})
	return err == nil && selector.Match(n)
}

func expression(e v1.NodeSelectorRequirement) string {
	text := e.Key + " " + string(e.Operator)
	if len(e.Values) > 0 {
		text += " [" + short(strings.Join(e.Values, " ")) + "]"
	}
	return text
}

// describes reports whether the label says what a node is for. It is changed where nothing
// else helps.
func describes(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io")
}

// label gives the row's node the labels that the pod, or its volumes, ask for.
func (s *search) label(row table.Row, plugin string) (ways [][]edit) {
	n := s.nodes[s.table.Name(row)]
	if n == nil {
		return nil
	}
	for _, want := range s.wantedLabels(plugin, n) {
		var way []edit
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if workload.OwnLabel(key) || describes(key) && !s.anyLabel || !admitted(key, want[key]) {
				way = nil
				break
			}
			if e, changes := s.relabelled(row, n, key, want[key]); changes {
				way = append(way, e)
			}
		}
		if len(way) > 0 && len(way) <= mostEdits && s.lifts(way, row, plugin) {
			ways = append(ways, way)
		}
	}
	return ways
}

// admitted reports whether the API server takes the label. It refuses gen=-1, which a selector
// with Lt may call for, and a node's name of more than 63 characters as a zone.
func admitted(key string, value *string) bool {
	return value == nil || len(content.IsLabelKey(key)) == 0 && len(content.IsLabelValue(*value)) == 0
}

// relabelled gives the row's node the label, or takes it away where value is nil. changes
// is false where that is so already.
func (s *search) relabelled(row table.Row, n *v1.Node, key string, value *string) (e edit, changes bool) {
	old, has := n.Labels[key]
	switch {
	case value == nil && has:
		e = s.nodeEdit(row, fmt.Sprintf("remove the label %s from node %s", key, n.Name), Op{Op: "remove", Path: "/metadata/labels/" + escape(key)})
	case value != nil && (!has || old != *value):
		e = s.nodeEdit(row, fmt.Sprintf("label node %s with %s=%s", n.Name, key, *value), Op{Op: "add", Path: "/metadata/labels/" + escape(key), Value: *value})
	default:
		return e, false
	}
	if describes(key) || ofHardware(key) {
		e.stage = lastResort
	}
	return e, true
}

// ofHardware reports whether the label names devices of a node.
func ofHardware(key string) bool {
	domain, name, _ := strings.Cut(strings.ToLower(key), "/")
	for _, vendor := range []string{"nvidia.com", "amd.com", "intel.com", "habana.ai"} {
		if domain == vendor || strings.HasSuffix(domain, "."+vendor) {
			return true
		}
	}
	return strings.Contains(domain, "gpu") || strings.Contains(name, "gpu") || strings.Contains(name, "accelerator")
}

// wantedLabels are sets of labels that would suit the plugin; nil is none.
func (s *search) wantedLabels(plugin string, n *v1.Node) (sets []map[string]*string) {
	switch plugin {
	case names.NodeAffinity:
		return s.selectedLabels(n)
	case names.PodTopologySpread:
		set := map[string]*string{}
		for i := range s.spec.TopologySpreadConstraints {
			if key := s.spec.TopologySpreadConstraints[i].TopologyKey; key != v1.LabelHostname {
				if _, has := n.Labels[key]; !has {
					set[key] = new(n.Name)
				}
			}
		}
		return []map[string]*string{set}
	case names.VolumeBinding, names.VolumeZone:
		return s.volumeLabels(n)
	case names.InterPodAffinity:
		return s.outOfDomains(n)
	}
	return nil
}

// outOfDomains take the node out of the topology domains in which pods that run keep
// the pod away: of one, or of all.
func (s *search) outOfDomains(n *v1.Node) (sets []map[string]*string) {
	if !s.anyLabel {
		return nil
	}
	all := map[string]*string{}
	for _, row := range s.table.All() {
		if !s.spend(1 + len(s.table.Pods(row))/10) {
			return nil
		}
		for _, pl := range s.table.Pods(row) {
			if pl.Pod.Affinity == nil {
				continue
			}
			for i := range pl.Pod.Affinity.AntiAffinity {
				term := &pl.Pod.Affinity.AntiAffinity[i]
				if _, has := n.Labels[term.TopologyKey]; has && term.TopologyKey != v1.LabelHostname && term.MayMatch(s.pod.Namespace, s.pod.Labels) {
					all[term.TopologyKey] = nil
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if sets = append(sets, map[string]*string{key: nil}); len(sets) == mostCombos {
			break
		}
	}
	return append(sets, all)
}

// selectedLabels are those of the node selector, with those of one term of the
// required affinity.
func (s *search) selectedLabels(n *v1.Node) (sets []map[string]*string) {
	base := map[string]*string{}
	for key, value := range s.spec.NodeSelector {
		base[key] = &value
	}
	required := s.requiredNodes()
	if required == nil {
		return []map[string]*string{base}
	}
	for _, term := range required.NodeSelectorTerms[:min(mostCombos, len(required.NodeSelectorTerms))] {
		if !s.spend((len(base) + len(term.MatchExpressions)) / 5) {
			break
		}
		set := maps.Clone(base)
		for _, e := range term.MatchExpressions {
			if !holds(e, n) {
				set[e.Key] = wanted(e)
			}
		}
		sets = append(sets, set)
	}
	return sets
}

// wanted is a value with which the expression holds; nil: without the label.
func wanted(e v1.NodeSelectorRequirement) *string {
	value := ""
	switch e.Operator {
	case v1.NodeSelectorOpIn:
		value = slices.Min(append(e.Values[:0:0], e.Values...))
	case v1.NodeSelectorOpGt, v1.NodeSelectorOpLt:
		bound, err := strconv.ParseInt(strings.Join(e.Values, ""), 10, 64)
		if err != nil {
			return nil
		}
		if e.Operator == v1.NodeSelectorOpGt {
			bound++
		} else {
			bound--
		}
		value = strconv.FormatInt(bound, 10)
	case v1.NodeSelectorOpNotIn, v1.NodeSelectorOpDoesNotExist:
		return nil
	}
	return &value
}

// loosenPods drops terms of required pod affinity and anti-affinity.
func (s *search) loosenPods(row table.Row) [][]edit {
	near, away := s.podTerms()
	return s.someOf(join(near, away), row, names.InterPodAffinity)
}

// podTerms drop the terms of required pod affinity, and of anti-affinity.
func (s *search) podTerms() (near, away []edit) {
	a := s.spec.Affinity
	if a != nil && a.PodAffinity != nil {
		near = dropTerms("podAffinity", "pod affinity", a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if a != nil && a.PodAntiAffinity != nil {
		away = dropTerms("podAntiAffinity", "pod anti-affinity", a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	return near, away
}

// dropTerms drops each of the terms, or all at once where that is too much for a fix.
func dropTerms(field, words string, terms []v1.PodAffinityTerm) (edits []edit) {
	if len(terms) > mostEdits {
		return []edit{dropped("the required "+words, at(requiredPods, field))}
	}
	for i := range terms {
		edits = append(edits, dropped(fmt.Sprintf("the required %s to %s by %s", words, podTerm(&terms[i]), terms[i].TopologyKey), at(requiredPods+"/%d", field, i)))
	}
	return edits
}

// someOf are the single edits that lift the plugin's blocker on the row, or else all
// together. There are none where the edits are too many for a fix.
func (s *search) someOf(edits []edit, row table.Row, plugin string) (ways [][]edit) {
	if len(edits) > mostEdits {
		return nil
	}
	for i := range edits {
		if s.lifts(edits[i:i+1], row, plugin) {
			ways = append(ways, edits[i:i+1:i+1])
		}
	}
	if len(ways) == 0 && len(edits) > 1 && s.lifts(edits, row, plugin) {
		ways = append(ways, edits)
	}
	return ways
}

func podTerm(t *v1.PodAffinityTerm) string {
	if t.LabelSelector == nil {
		return "no pods"
	}
	return short(selectorText(t.LabelSelector))
}
