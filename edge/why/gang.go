package why

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/turn"
)

// gangText says in brackets how many pods of the group are wanted at once, how many have a node and
// how many wait. fitting are those that were placed for the answer alone.
func (c *Cluster) gangText(name types.NamespacedName, fitting, waiting int) string {
	t := c.Machine.Table()
	text, placed := "", t.Groups().Named(name).Scheduled()-fitting
	if g := table.PodGroup(t, name); g != nil && g.Gang {
		text = fmt.Sprintf("minCount %d, ", g.MinCount)
		if all := placed + waiting; int(g.MinCount) < all {
			text = fmt.Sprintf("minCount %d of %s, so %d count as complete; ", g.MinCount, terminal.Count(all, "pod"), g.MinCount)
		}
	}
	return fmt.Sprintf(" (%s%d placed, %d wait)", text, placed, waiting)
}

// groupCause returns what the pod waits for when its pod group is placed together. It tries all
// pending pods of the cluster in the scheduler's order, so it is expensive. It returns nil if the
// pod has no group, the scheduler places no groups together, NoFixes or Unread is set, or the time
// is up before the pod was tried.
func (a *Answer) groupCause(ctx context.Context) *Cause {
	c := a.facts.cluster
	if c.NoFixes || c.Unread || a.PodGroup == "" || !c.Machine.PlacesGroups() {
		return nil
	}
	l, err := c.All(ctx, Scope{Workload: &Workload{podGroup, a.facts.api.Namespace, qualifiedGroup(a.PodGroup)}})
	if err != nil {
		return nil
	}
	for i := range l.Causes {
		if slices.ContainsFunc(l.Causes[i].pods, func(p turn.Pod) bool { return p.API.UID == a.facts.api.UID }) {
			return &l.Causes[i]
		}
	}
	return nil
}

// WaitsForGroup reports whether the pod fits, and too few others of its group do.
func (a *Answer) WaitsForGroup() bool {
	return a.Verdict == WouldBePlaced && a.GroupCause != nil && a.GroupCause.Verdict != WouldBePlaced
}

// fitsByItself is the verdict of a pod of a group that has a feasible node.
func (a *Answer) fitsByItself() string {
	switch {
	case a.WaitsForGroup():
		return fmt.Sprintf("%s waits: %s. By itself it fits now on %s.", a.Pod, a.GroupCause.Sentence, a.Node)
	case a.GroupCause != nil:
		return fmt.Sprintf("%s fits now, with the others of its pod group %s: %s that wait find a place.%s", a.Pod, a.PodGroup, terminal.Count(a.GroupCause.Pods, "pod"), a.margin())
	}
	return fmt.Sprintf("%s by itself fits now on %s.%s The pods of its group %s are placed together, which this answer does not try: \"berth simulate\" does, with the scheduler's --feature-gates.", a.Pod, a.Node, a.margin(), a.PodGroup)
}

// gangSection says what keeps the group of the pod from being placed, and what would help it.
func (a *Answer) gangSection(b *strings.Builder, wide bool) {
	c := a.GroupCause
	if c == nil || c.Verdict == WouldBePlaced {
		return
	}
	b.WriteString("\nITS POD GROUP, each pod tried in the scheduler's order\n")
	if !a.WaitsForGroup() { // else the first line says it
		terminal.Fprintf(b, "  %s\n", c.Sentence)
	}
	c.restText(b, wide)
}

// groupText says how it stands with the group of a pod that waits, "" where groups do not count.
func (f *facts) groupText() string {
	m := f.cluster.Machine
	if f.pod.PodGroup() == "" || !m.PlacesGroups() {
		return ""
	}
	waiting := 0
	for _, p := range m.Pods() {
		if p.PodGroup() != "" && p.GroupKey() == f.pod.GroupKey() && m.Table().Pod(p.UID) == nil {
			waiting++
		}
	}
	return fmt.Sprintf(" Its pod group %s is placed together%s.", f.pod.GroupKey(), f.cluster.gangText(f.pod.GroupKey(), 0, waiting))
}
