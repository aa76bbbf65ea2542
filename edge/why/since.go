package why

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// Held says since when something keeps the pod, and what or who put it there.
type Held struct {
	// What it is, in a sentence without its end.
	What  string     `json:"what"`
	Since *time.Time `json:"since"`
	// By is the name of the client or controller that wrote it, "" where that is not known.
	By string `json:"by,omitempty"`
}

// mostHeld bounds the list of what keeps a pod.
const mostHeld = 10

// held lists since when the pod is held where nothing else keeps it for good: cordons, taints, conditions
// of nodes, and its own gates and nomination.
//
// What is known neither of the time nor of the writer is left out.
func (a *Answer) held() []Held {
	unknown := func(h Held) bool { return h.Since == nil && h.By == "" }
	held := slices.DeleteFunc(a.heldByNodes(), unknown)
	return held[:min(mostHeld, len(held))]
}

// nominated is the field of a pod's status with the node that it is nominated to.
const nominated = "nominatedNodeName"

// heldByNodes lists what holds the pod, whatever is known of it.
func (a *Answer) heldByNodes() (all []Held) {
	p := a.facts.api
	if len(p.Spec.SchedulingGates) > 0 {
		all = append(all, Held{What: "gated since it was made", Since: pointer(p.CreationTimestamp.UTC()), By: firstManager(p.ManagedFields)})
	}
	if node := p.Status.NominatedNodeName; node != "" {
		at, by := writer(p.ManagedFields, nominated)
		all = append(all, Held{"nominated to " + node, pointer(at), by})
	}
	for i := range a.Groups {
		g := &a.Groups[i]
		if slices.ContainsFunc(g.Blockers, outlasts) || !slices.ContainsFunc(g.Blockers, ofNodes) {
			continue
		}
		for _, name := range g.names {
			if len(all) >= mostHeld || i >= shortGroups {
				return all
			}
			if n := a.facts.wholeNode(name); n != nil {
				all = append(all, heldBy(n, a.facts.pod, g)...)
			}
		}
	}
	return all
}

// wholeNode returns the node with its conditions, and with who wrote what, as far as that can
// be read.
func (f *facts) wholeNode(name string) *v1.Node {
	if look := f.cluster.LookNode; look != nil {
		if n := look(name); n != nil {
			return n
		}
	}
	return f.node(name)
}

// outlasts reports whether the blocker stays when cordons and taints go, and pods.
func outlasts(b Blocker) bool {
	return b.Code != decision.Unschedulable.String() && !ofNodes(b)
}

// ofNodes reports whether the blocker is a cordon or a taint.
func ofNodes(b Blocker) bool {
	return b.Plugin == names.NodeUnschedulable || b.Plugin == names.TaintToleration
}

// heldBy lists what of the node keeps the pod away, since when.
func heldBy(n *v1.Node, p *object.Pod, g *NodeGroup) (all []Held) {
	blocks := func(plugin string) bool {
		return slices.ContainsFunc(g.Blockers, func(b Blocker) bool { return b.Plugin == plugin })
	}
	if blocks(names.NodeUnschedulable) {
		h := Held{What: "cordon of " + n.Name}
		at, by := writer(n.ManagedFields, "unschedulable")
		h.Since, h.By = pointer(at), by
		for i := range n.Spec.Taints {
			if t := &n.Spec.Taints[i]; h.Since == nil && t.Key == v1.TaintNodeUnschedulable && t.TimeAdded != nil {
				h.Since = pointer(t.TimeAdded.UTC())
			}
		}
		all = append(all, h)
	}
	if !blocks(names.TaintToleration) {
		return all
	}
	at, by := writer(n.ManagedFields, "taints")
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if t.Key == v1.TaintNodeUnschedulable || p.Tolerations.Admits(n.Spec.Taints[i:i+1], false) {
			continue
		}
		h := Held{"taint " + t.ToString() + " of " + n.Name, pointer(at), by}
		if t.TimeAdded != nil {
			h.Since = pointer(t.TimeAdded.UTC())
		}
		all = append(all, h)
	}
	for i := range n.Status.Conditions {
		s := &n.Status.Conditions[i]
		if bad := (s.Type == v1.NodeReady) != (s.Status == v1.ConditionTrue); bad && !s.LastTransitionTime.IsZero() {
			what := fmt.Sprintf("%s is %s=%s", n.Name, s.Type, s.Status)
			if s.Reason != "" {
				what += " (" + bounded(strings.TrimSuffix(s.Reason+": "+s.Message, ": ")) + ")"
			}
			all = append(all, Held{what, pointer(s.LastTransitionTime.UTC()), ""})
		}
	}
	return all
}

// writer returns when the field was written last and by whom, as the managed fields have it.
func writer(fields []metav1.ManagedFieldsEntry, field string) (at time.Time, by string) {
	for i := range fields {
		f := &fields[i]
		if f.FieldsV1 == nil || f.Time == nil || !bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(`"f:`+field+`"`)) {
			continue
		}
		if f.Time.After(at) {
			at, by = f.Time.UTC(), f.Manager
		}
	}
	return at, by
}

// KeepWriters returns of a pod's managed fields what answers read.
func KeepWriters(fields []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	kept := slices.Clone(fields)
	for i := range kept {
		if f := kept[i].FieldsV1; f != nil && !bytes.Contains(f.GetRawBytes(), []byte(`"f:`+nominated+`"`)) {
			kept[i].FieldsV1 = nil
		}
	}
	return kept
}

// firstManager returns who made the object.
func firstManager(fields []metav1.ManagedFieldsEntry) string {
	var first *metav1.ManagedFieldsEntry
	for i := range fields {
		if f := &fields[i]; f.Time != nil && f.Subresource == "" && (first == nil || f.Time.Before(first.Time)) {
			first = f
		}
	}
	if first == nil {
		return ""
	}
	return first.Manager
}

// heldText says since when the pod is held.
func (a *Answer) heldText(b *strings.Builder, wide bool) {
	if len(a.Held) == 0 {
		return
	}
	b.WriteString("\nSINCE WHEN\n")
	shown := a.Held
	if !wide {
		shown = shown[:min(shortNames, len(shown))]
	}
	for _, h := range shown {
		terminal.Fprintf(b, "  %s\n", h.text())
	}
	terminal.More(b, "  ", len(a.Held)-len(shown))
}

// text says what holds the pod, since when and by whom.
func (h *Held) text() string {
	text := h.What + sinceText(h.Since)
	if h.By != "" {
		text += ", by " + h.By
	}
	return text
}
