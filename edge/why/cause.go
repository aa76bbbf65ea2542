package why

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// unplaced is the cause of pods that would be placed.
const unplaced = "fitting now, and not placed yet"

// causeKey identifies the cause of an answer: what blocks the pods where they
// come nearest, and the labels of nodes that they ask for.
func causeKey(a *Answer) string {
	switch a.Verdict {
	case Waiting, Misconfigured:
		if len(a.Groups) > 0 {
			spec := &a.facts.api.Spec
			return fmt.Sprintf("%s %t %q %v", a.Verdict, a.outrun, a.withoutName(a.nearestGroup().Blockers), spec.NodeSelector)
		}
	case WouldBePlaced:
		return fmt.Sprintf("%s %t %s", a.Verdict, a.PodGroup != "", a.refused())
	case Preempting:
		return fmt.Sprintf("%s %t", a.Verdict, a.next)
	case InProgress:
		return string(a.Verdict)
	}
	return string(a.Verdict) + " " + a.Message
}

// withoutName returns the blockers with reasons that do not name the pod, as those of quotas do.
func (a *Answer) withoutName(blockers []Blocker) []Blocker {
	blockers = slices.Clone(blockers)
	for i := range blockers {
		if b := &blockers[i]; b.Plugin == names.CapacityScheduling {
			b.Reasons = []string{strings.ReplaceAll(strings.Join(b.Reasons, ", "), a.Pod, "")}
		}
	}
	return blockers
}

// cause is what the answer says, without the pod's name.
func (a *Answer) cause() string {
	switch a.Verdict {
	case WouldBePlaced:
		if refused := a.refused(); refused != "" {
			return "fitting by what is known here, but the cluster said last: " + refused
		}
		if a.PodGroup != "" {
			return "fitting now each by itself, but placed together with their pod groups, which this answer does not try"
		}
		return unplaced
	case Preempting:
		if a.next {
			return "preempting others at their next attempt"
		}
		return "waiting for pods that leave for them"
	case InProgress:
		return "on their way"
	case Waiting:
		switch {
		case len(a.Groups) == 0:
			return "waiting: there is no node"
		case a.outrun:
			return "waiting for room" + a.cordons() + ", which pods that are tried before them take: " + a.nearest()
		}
		return "waiting for " + a.awaited() + ": " + a.nearest()
	case Misconfigured:
		if beside := a.beside(); beside != "" {
			return "having to be beside " + beside + ", where there is no room: " + a.nearest()
		}
		return "fitting nowhere, however empty the nodes are: " + a.nearest()
	case Gated:
		return "not tried: " + a.Message
	}
	return "not scheduled: " + a.Message
}

// awaited says what a pod that waits is short of: room, where that is used up on the nodes where it
// comes nearest, or else a node that fits. It names those that a cordon alone keeps from it.
func (a *Answer) awaited() string {
	text := "a node that fits"
	if len(a.Groups) == 0 {
		return text
	}
	for _, b := range a.nearestGroup().Blockers {
		switch b.Plugin {
		case names.NodeResourcesFit, names.DynamicResources, names.NodeVolumeLimits:
			text = "room"
		case names.CapacityScheduling:
			return "quota"
		}
	}
	return text + a.cordons()
}

// cordons names in brackets the nodes that a cordon alone keeps from the pod, "" if there are none.
func (a *Answer) cordons() string {
	cordoned := a.keptByCordon()
	if len(cordoned) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s %s cordoned)", list(cordoned, shortNames), terminal.Plural(len(cordoned), "is", "are"))
}

// mostCordoned bounds the cordoned nodes that are looked at.
const mostCordoned = 100

// keptByCordon returns the nodes that would take the pod without their cordons, and without taints that
// no other node has: who drains a node may leave one with the cordon.
func (a *Answer) keptByCordon() (cordoned []string) {
	for i := range a.Groups {
		g := &a.Groups[i]
		by := func(plugin string) bool {
			return slices.ContainsFunc(g.Blockers, func(b Blocker) bool { return b.Plugin == plugin })
		}
		if tainted := by(names.TaintToleration); !by(names.NodeUnschedulable) || len(g.Blockers) > 2 || len(g.Blockers) == 2 && !tainted {
			continue
		}
		for _, name := range g.names[:min(mostCordoned, len(g.names))] {
			if n := a.facts.node(name); n != nil && !a.facts.keptElsewhere(n) {
				cordoned = append(cordoned, name)
			}
		}
	}
	slices.Sort(cordoned)
	return cordoned
}

// keptElsewhere reports whether the node has a taint which keeps the pod from schedulable nodes, too.
func (f *facts) keptElsewhere(n *v1.Node) bool {
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if t.Key == v1.TaintNodeUnschedulable || f.pod.Tolerations.Admits(n.Spec.Taints[i:i+1], false) {
			continue
		}
		if slices.ContainsFunc(f.cluster.Set.Nodes, func(o *v1.Node) bool {
			return !o.Spec.Unschedulable && slices.ContainsFunc(o.Spec.Taints, func(of v1.Taint) bool { return of.MatchTaint(t) && of.Value == t.Value })
		}) {
			return true
		}
	}
	return false
}
