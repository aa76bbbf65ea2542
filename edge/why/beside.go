package why

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Bounds of the pending pods that another one wants to be near.
const (
	mostBeside = 2000 // pods that are looked at
	mostCircle = 10   // pods that wait for each other
)

// beside looks for the pending pods that the required affinity of a pod is about.
type beside struct {
	*Cluster
	pod *object.Pod
}

// text says of a pod whose affinity no pod on a node meets that a pending one would, and what
// keeps that; "" where none would.
func (b beside) text() string {
	next := b.wanted(b.pod)
	if next == nil {
		return ""
	}
	text := fmt.Sprintf("; %s matches and is pending itself", next.Key())
	if circle := b.circle(); len(circle) > 0 {
		last := len(circle) - 1
		return fmt.Sprintf("%s: %s and %s wait for each other", text, strings.Join(circle[:last], ", "), circle[last])
	}
	d := b.Machine.Assess(next)
	if d.Result == decision.ResultScheduled {
		return text + " (it fits now)"
	}
	why, _, _ := strings.Cut(explain.Message(d), ". ")
	return text + inBrackets("", strings.TrimSuffix(why, "."))
}

// circle returns the names of pods, the pod first, each of which wants to be near the next one,
// and the last near the pod; nil if there are none.
func (b beside) circle() (names []string) {
	for at := b.pod; len(names) < mostCircle; {
		names = append(names, at.Key())
		next := b.wanted(at)
		switch {
		case next == nil || next != b.pod && slices.Contains(names, next.Key()):
			return nil
		case next == b.pod:
			return names
		}
		at = next
	}
	return nil
}

// wanted returns a pending pod that the required affinity of p is about: the first by name, or
// b.pod if it is about that, too. It returns nil if it is about a pod on a node, or about p itself.
func (b beside) wanted(p *object.Pod) *object.Pod {
	if p.Affinity == nil || len(p.Affinity.Affinity) == 0 {
		return nil
	}
	meant := (&facts{cluster: b.Cluster}).about(p.Affinity.Affinity)
	if meant(p) || anyPlaced(b.Machine.Table(), meant) {
		return nil
	}
	var first *v1.Pod
	for _, o := range b.Set.Pods[:min(mostBeside, len(b.Set.Pods))] {
		if o.UID == p.UID || !b.isPending(o) || b.Set.Hidden(o.Namespace) || !meant(&object.Pod{Namespace: o.Namespace, Labels: o.Labels}) {
			continue
		}
		if o.UID == b.pod.UID {
			return b.pod
		}
		if first == nil || o.Namespace+"/"+o.Name < first.Namespace+"/"+first.Name {
			first = o
		}
	}
	if first == nil {
		return nil
	}
	return b.Set.DecodePod(first)
}

// anyPlaced reports whether a pod on a node is meant.
func anyPlaced(t *table.Table, meant func(*object.Pod) bool) bool {
	for _, r := range t.All() {
		if slices.ContainsFunc(t.Pods(r), func(pl *table.Placed) bool { return meant(pl.Pod) }) {
			return true
		}
	}
	return false
}
