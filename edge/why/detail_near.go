package why

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// offeredInstead says of a resource that none of the nodes offers what one of them lists or
// offers in its place; "" where there is nothing near.
func (f *facts) offeredInstead(name v1.ResourceName, nodes []string) string {
	for _, node := range nodes {
		n := f.node(node)
		if n == nil {
			continue
		}
		if meant := fix.MeantResource(name, n.Status.Allocatable); meant != "" {
			q := n.Status.Allocatable[meant]
			return fmt.Sprintf("; %s offers %s %s: was that meant?", node, &q, meant)
		}
	}
	for _, node := range nodes {
		n := f.node(node)
		if n == nil {
			continue
		}
		_, listed := n.Status.Allocatable[name]
		capacity, had := n.Status.Capacity[name]
		switch {
		case !capacity.IsZero():
			return fmt.Sprintf("; %s has %s, none of which can be allocated: its device plugin is down, or they are unhealthy", node, &capacity)
		case listed || had:
			return fmt.Sprintf("; %s lists it with 0: its device plugin is down, or has no device", node)
		}
	}
	return ""
}

// meantLabel says which label of one of the nodes is near to the one that is asked for.
func (f *facts) meantLabel(key, value string, nodes []string) string {
	for _, node := range nodes {
		n := f.node(node)
		if n == nil {
			continue
		}
		if meant, with, ok := fix.MeantLabel(key, value, n.Labels); ok {
			return fmt.Sprintf("; %s has %s=%s: was that meant?", node, meant, with)
		}
	}
	return ""
}

// meantObject names an object that is there under a name near to that of one that is not.
func meantObject(t *table.Table, kind object.Kind, namespace, name string) string {
	if meant := fix.MeantObject(t, kind, namespace, name); meant != "" {
		return "; " + meant + " is: was that meant?"
	}
	return ""
}

// meantKey names a key of nodes' labels that is near to a topology key that no node has.
func meantKey(key string, set *manifest.Set) string {
	if meant := fix.MeantTopologyKey(key, set); meant != "" {
		return "; they have " + meant + ": was that meant?"
	}
	return ""
}

// meantToleration says which toleration of the pod is near to the taint.
func (f *facts) meantToleration(taint *v1.Taint) string {
	if _, _, wrong, ok := fix.MeantToleration(f.api.Spec.Tolerations, taint); ok {
		return " (a toleration has " + wrong + ")"
	}
	return ""
}

// meantPod names a pod that a term of required affinity nearly is about: one in another
// namespace, or one with a similar label.
func (f *facts) meantPod(api *v1.PodAffinityTerm, term *match.PodTerm) string {
	var elsewhere, near *object.Pod
	var label string
	t := f.cluster.Machine.Table()
	for _, r := range t.All() {
		for _, pl := range t.Pods(r) {
			p := pl.Pod
			in := term.MatchesPlaced(p.Namespace, t.Namespaces().Labels(p.Namespace), p.Labels)
			if in {
				return ""
			}
			if term.Selector.Matches(labels.Set(p.Labels)) {
				if (elsewhere == nil || compareKeys(p, elsewhere) < 0) && !f.cluster.Set.Hidden(p.Namespace) {
					elsewhere = p
				}
				continue
			}
			if _, key, value, ok := fix.MeantPodLabel(api.LabelSelector, p.Labels); ok && term.Names(p.Namespace) && (near == nil || compareKeys(p, near) < 0) && !f.cluster.Set.Hidden(p.Namespace) {
				near, label = p, key+"="+value
			}
		}
	}
	switch {
	case elsewhere != nil:
		return fmt.Sprintf("; %s has these labels, and the term looks in %s", elsewhere.Key(), namespaces(term))
	case near != nil:
		return fmt.Sprintf("; %s has %s: was that meant?", near.Key(), label)
	}
	return ""
}

// namespaces are where a term looks for pods, in words.
func namespaces(term *match.PodTerm) string {
	text := terminal.Plural(len(term.Namespaces), "namespace ", "namespaces ") + list(slices.Clone(term.Namespaces), 3)
	switch by := term.NamespaceSelector; {
	case by == nil:
		return text
	case len(term.Namespaces) == 0:
		return "namespaces with " + by.String()
	default:
		return text + " and those with " + by.String()
	}
}
