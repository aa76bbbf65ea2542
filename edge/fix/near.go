package fix

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/spelling"
)

// successors are the labels that took the place of others.
var successors = map[string]string{
	"beta.kubernetes.io/os":            v1.LabelOSStable,
	"beta.kubernetes.io/arch":          v1.LabelArchStable,
	"beta.kubernetes.io/instance-type": v1.LabelInstanceTypeStable,
	v1.LabelFailureDomainBetaZone:      v1.LabelTopologyZone,
	v1.LabelFailureDomainBetaRegion:    v1.LabelTopologyRegion,
	"node-role.kubernetes.io/master":   "node-role.kubernetes.io/control-plane",
}

// MeantLabel returns the label, of those given, that somebody may mean who asks for key
// and value: that of a new name, of the same key, or of the same value under a similar key or
// one of another domain. ok is false if
// there is none, or if the very label is there.
func MeantLabel(key, value string, labels map[string]string) (meantKey, meantValue string, ok bool) {
	has, found := labels[key]
	successor := successors[key]
	switch {
	case found && has == value:
		return "", "", false
	case successor != "" && labels[successor] == value:
		if _, found := labels[successor]; found {
			return successor, value, true
		}
	case found && spelling.Near(value, has):
		return key, has, true
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if k != key && labels[k] == value && similarKey(key, k) {
			return k, value, true
		}
	}
	return "", "", false
}

// MeantResource returns the resource, of those that a node offers, that somebody may mean
// who requests one that it does not offer; "" if there is none.
func MeantResource(name v1.ResourceName, offered v1.ResourceList) v1.ResourceName {
	if q := offered[name]; !q.IsZero() {
		return ""
	}
	for _, other := range slices.Sorted(maps.Keys(offered)) {
		if q := offered[other]; other != name && !q.IsZero() && sameResource(string(name), string(other)) {
			return other
		}
	}
	return ""
}

// sameResource reports whether one name may stand for the other: by a slip of the pen, as
// huge pages of another size, or as another form of the same GPUs.
func sameResource(a, b string) bool {
	const gpu, mig = "nvidia.com/gpu", "nvidia.com/mig-"
	isGPU := func(name string) bool { return name == gpu || name == gpu+".shared" || strings.HasPrefix(name, mig) }
	return isGPU(a) && isGPU(b) || strings.HasPrefix(a, v1.ResourceHugePagesPrefix) && strings.HasPrefix(b, v1.ResourceHugePagesPrefix) ||
		strings.Contains(a, "/") && spelling.Near(a, b)
}

// nearMisses are the names of the node, in a text, by which it nearly has what the pod
// asks for.
func (s *search) nearMisses(node string) (text string) {
	n := s.nodes[node]
	if n == nil {
		return ""
	}
	for _, q := range s.pod.Demand.Requests.Scalars {
		if meant := MeantResource(q.Name, n.Status.Allocatable); meant != "" {
			text += string(meant) + " "
		}
	}
	for _, key := range s.unlabelled(node) {
		if meant, value, ok := MeantLabel(key, s.spec.NodeSelector[key], n.Labels); ok {
			text += meant + "=" + value + " "
		}
	}
	return text
}

// rename changes the pod's requests to what the row's node offers under a similar name. It lowers
// what is short for another reason.
func (s *search) rename(b decision.Blocker, row table.Row) [][]edit {
	n := s.nodes[s.table.Name(row)]
	if n == nil || len(b.Insufficient) > mostEdits {
		return nil
	}
	meant := map[v1.ResourceName]v1.ResourceName{}
	var lowered []edit
	for _, name := range b.Insufficient {
		if other := MeantResource(name, n.Status.Allocatable); other != "" {
			meant[name] = other
		} else {
			lowered = append(lowered, s.lowerOne(name, row)...)
		}
	}
	if len(meant) == 0 {
		return nil
	}
	edits := renamedIn("containers", "container", s.spec.Containers, meant)
	edits = append(edits, renamedIn("initContainers", "init container", s.spec.InitContainers, meant)...)
	if edits = append(edits, lowered...); len(edits) > mostEdits || !s.lifts(edits, row, names.NodeResourcesFit) {
		return nil
	}
	return [][]edit{edits}
}

// renamedIn has each of the containers request other resources: as much of them, in whole
// units.
func renamedIn(field, what string, containers []v1.Container, meant map[v1.ResourceName]v1.ResourceName) (edits []edit) {
	for i := range containers {
		written := containers[i].Resources.DeepCopy()
		var say []string
		for _, name := range slices.Sorted(maps.Keys(meant)) {
			to := meant[name]
			for _, list := range []v1.ResourceList{written.Limits, written.Requests} {
				q, has := list[name]
				if _, taken := list[to]; !has || taken {
					continue
				}
				unit := (&request{name: to}).unit()
				delete(list, name)
				list[to] = *resource.Quantity(to, (units(name, q)+unit-1)/unit*unit)
				if text := fmt.Sprintf("%s in place of %s", to, name); !slices.Contains(say, text) {
					say = append(say, text)
				}
			}
		}
		if len(say) > 0 {
			edits = append(edits, edit{kind: correctName, say: fmt.Sprintf("request %s for %s %q", strings.Join(say, ", and "), what, containers[i].Name),
				ops: []Op{{Op: "replace", Path: at("/spec/%s/%d/resources", field, i), Value: written}}})
		}
	}
	return edits
}

// correctSelector changes the node selector to labels that the row's node has under a similar name
// or with a similar value, and drops what else the node lacks. It returns nil if nothing is
// similar.
func (s *search) correctSelector(row table.Row) []edit {
	n := s.nodes[s.table.Name(row)]
	lacking := s.unlabelled(s.table.Name(row))
	if n == nil || len(lacking) > mostEdits {
		return nil
	}
	selector := maps.Clone(s.spec.NodeSelector)
	var say []string
	var rest []edit
	for _, key := range lacking {
		value := s.spec.NodeSelector[key]
		meant, with, ok := MeantLabel(key, value, n.Labels)
		if _, taken := s.spec.NodeSelector[meant]; !ok || taken && meant != key {
			rest = append(rest, unselect(key, value))
			continue
		}
		delete(selector, key)
		selector[meant] = with
		say = append(say, fmt.Sprintf("select %s=%s in place of %s=%s", meant, with, key, value))
	}
	if len(say) == 0 {
		return nil
	}
	e := edit{kind: correctName, say: strings.Join(say, ", "), ops: []Op{{Op: "replace", Path: "/spec/nodeSelector", Value: selector}}}
	return append([]edit{e}, rest...)
}

// correctExpression changes an expression of the required node affinity to the label that the node
// has under a similar name or with a similar value. The edit is empty if nothing is similar.
func correctExpression(e *v1.NodeSelectorRequirement, where string, n *v1.Node) edit {
	if e.Operator != v1.NodeSelectorOpIn {
		return edit{}
	}
	for i, value := range e.Values[:min(mostEdits, len(e.Values))] {
		meant, with, ok := MeantLabel(e.Key, value, n.Labels)
		if !ok {
			continue
		}
		c := edit{kind: correctName, say: fmt.Sprintf("have the required node affinity want %s=%s in place of %s=%s", meant, with, e.Key, value)}
		if meant != e.Key {
			c.ops = []Op{{Op: "replace", Path: where + "/key", Value: meant}}
		} else {
			c.ops = []Op{{Op: "replace", Path: at("%s/values/%d", where, i), Value: with}}
		}
		return c
	}
	return edit{}
}

// MeantToleration returns the place of the toleration, of those given, that somebody may
// mean for the taint, the toleration as it would have to be, and what is wrong with it, in
// words. ok is false if there is none.
func MeantToleration(tolerations []v1.Toleration, taint *v1.Taint) (place int, right v1.Toleration, wrong string, ok bool) {
	for i := range tolerations[:min(mostEdits, len(tolerations))] {
		t := tolerations[i]
		var faults []string
		if t.Key != taint.Key && (t.Key == "" || !spelling.Near(t.Key, taint.Key)) {
			continue
		}
		if t.Key != taint.Key {
			faults, t.Key = append(faults, "key "+t.Key), taint.Key
		}
		if t.Effect != "" && t.Effect != taint.Effect {
			faults, t.Effect = append(faults, "effect "+string(t.Effect)), taint.Effect
		}
		if t.Operator != v1.TolerationOpExists && t.Value != taint.Value {
			if t.Value != "" && taint.Value != "" && !spelling.Near(t.Value, taint.Value) {
				continue // another team's
			}
			faults, t.Value = append(faults, fmt.Sprintf("value %q", t.Value)), taint.Value
		}
		if len(faults) == 1 && t.ToleratesTaint(klog.Logger{}, taint, false) {
			return i, t, faults[0], true
		}
	}
	return 0, right, "", false
}

// corrected has the pod's toleration at a place tolerate the taint.
func (s *search) corrected(place int, right *v1.Toleration, wrong string, taint *v1.Taint) edit {
	e := edit{kind: correctName, say: fmt.Sprintf("correct the toleration with %s: tolerate the taint %s", wrong, taintText(taint))}
	set := func(field, was, is string) {
		if was != is {
			e.ops = append(e.ops, Op{Op: "add", Path: at("/spec/tolerations/%d/%s", place, field), Value: is})
		}
	}
	was := &s.spec.Tolerations[place]
	set("key", was.Key, right.Key)
	set("value", was.Value, right.Value)
	set("effect", string(was.Effect), string(right.Effect))
	return e
}
