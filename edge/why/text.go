package why

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// What the short form shows.
const (
	shortGroups = 4
	shortFixes  = 4
	shortNames  = 3
)

// explainedGroups is how many groups of nodes Explain explains: a text may look at each of
// the cluster's pods.
const explainedGroups = 20

// Text writes the answer for people; wide leaves nothing out.
func (a *Answer) Text(out io.Writer, wide bool) error {
	var b strings.Builder
	stalledText(&b, a.Stalled)
	a.observedFirst(&b)
	terminal.Fprintf(&b, "%s\n", a.sentence())
	a.Rollout.text(&b, "")
	holdersText(&b, "", a.Holders)
	a.observedSince(&b)
	if a.Message != "" && (a.Verdict != Failed || a.facts.pod.Terminating) && a.Verdict != Gated && !a.facts.refused {
		terminal.Fprintf(&b, "\nkube-scheduler's words: %s\n", a.Message)
	}
	a.gangSection(&b, wide)
	a.quotaText(&b)
	a.groupText(&b, wide)
	a.leavingText(&b, wide)
	a.heldText(&b, wide)
	if !a.facts.refused {
		a.fixText(&b, wide)
	}
	a.eventText(&b, wide)
	a.scoreText(&b, wide)
	a.queueText(&b, wide)
	a.shadowText(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

// Explain sets the texts of the data: Sentence, and the Text of each pod that is leaving and of
// the blockers of the nearest groups of nodes. Call it when the verdict changes no more.
func (a *Answer) Explain() {
	a.Sentence = a.sentence()
	for i := range a.Groups[:min(len(a.Groups), explainedGroups)] {
		g := &a.Groups[i]
		for k := range g.Blockers {
			g.Blockers[k].Text = a.facts.detail(&g.Blockers[k], g.names)
		}
	}
	for i := range a.Leaving {
		a.Leaving[i].Text = a.Leaving[i].text()
	}
}

// takeFirst says that the pods take the room before the one that the answer is about.
func takeFirst(pods []string) string {
	if len(pods) == 1 {
		return pods[0] + " comes first in the queue and takes the room"
	}
	return list(pods, shortNames) + " come first in the queue and take the room"
}

// stalledText says why nobody schedules, if nobody does.
func stalledText(b *strings.Builder, stalled string) {
	if stalled != "" {
		terminal.Fprintf(b, "%s%s (`berth status` shows more).\n\n", strings.ToUpper(stalled[:1]), stalled[1:])
	}
}

// sentence is the verdict.
func (a *Answer) sentence() string {
	if a.facts.refused {
		return fmt.Sprintf("%s is not made: %s.", a.Pod, a.Message)
	}
	switch a.Verdict {
	case Placed:
		return a.placedText()
	case WouldBePlaced:
		if a.PodGroup != "" {
			return a.fitsByItself()
		}
		if len(a.First) > 0 {
			return fmt.Sprintf("%s waits for its turn: %s has room for it now, but %s.", a.Pod, a.Node, takeFirst(a.First))
		}
		if a.Shadow != nil {
			return fmt.Sprintf("%s fits now: Berth would place it on %s.", a.Pod, a.Node) + a.margin()
		}
		if a.Disagrees() || a.Stalled != "" {
			return fmt.Sprintf("%s would go to %s.", a.Pod, a.Node) + a.margin()
		}
		return fmt.Sprintf("%s fits now: its next attempt places it on %s.", a.Pod, a.Node) + a.margin()
	case Preempting:
		if a.Shadow != nil {
			return fmt.Sprintf("%s does not fit: Berth would have %s leave %s for it.", a.Pod, list(a.Victims, shortNames), a.Node)
		}
		if len(a.First) > 0 {
			return fmt.Sprintf("%s waits for its turn: %s would leave %s for it, but %s.", a.Pod, list(a.Victims, shortNames), a.Node, takeFirst(a.First))
		}
		return a.preemptingText()
	case InProgress:
		return fmt.Sprintf("%s is on its way: what was asked for in the API has to come about first.", a.Pod)
	case Gated:
		return fmt.Sprintf("%s is not tried: %s.", a.Pod, strings.Join(append([]string{strings.TrimSuffix(a.Message, ".")}, a.facts.missingTemplates()...), ". "))
	case Failed:
		if a.facts.pod.Terminating {
			return deletedText(a.facts.api) + "."
		}
		text := fmt.Sprintf("%s is not scheduled: %s", a.Pod, strings.TrimSuffix(a.Message, "."))
		if strings.HasSuffix(text, "?") {
			return text
		}
		return text + "."
	case Waiting:
		if a.NodesTotal == 0 {
			return a.Pod + " waits: there is no node."
		}
		return fmt.Sprintf("%s waits for %s: %s.", a.Pod, a.awaited(), a.nearest()) + a.facts.groupText() + a.firstLeaving()
	}
	if beside := a.beside(); beside != "" {
		return fmt.Sprintf("%s fits nowhere, whoever else goes: it must be beside %s, and with that there is no room: %s.", a.Pod, beside, a.nearest())
	}
	if a.NodesTotal == 1 {
		return fmt.Sprintf("%s does not fit on the only node, however empty it is: %s.", a.Pod, a.nearest())
	}
	return fmt.Sprintf("%s fits on none of %d nodes, however empty they are: %s.", a.Pod, a.NodesTotal, a.nearest())
}

// beside names the pods that the pod's affinity asks for, where it comes nearest and they
// alone take the room that it wants; "" otherwise.
func (a *Answer) beside() string {
	f := a.facts
	if len(a.Groups) == 0 || f.pod.Affinity == nil || len(f.pod.Affinity.Affinity) == 0 {
		return ""
	}
	g := a.nearestGroup()
	if slices.ContainsFunc(g.Blockers, func(b Blocker) bool { return b.Code != decision.Unschedulable.String() }) {
		return ""
	}
	meant := f.about(f.pod.Affinity.Affinity)
	var pods []*object.Pod
	for _, name := range g.names {
		for _, p := range f.on(name) {
			if meant(p) {
				pods = append(pods, p)
			}
		}
	}
	return keys(pods)
}

// nearest says what blocks the pod where it comes nearest.
func (a *Answer) nearest() string {
	if len(a.Groups) == 0 {
		return a.Message
	}
	g := a.nearestGroup()
	var parts []string
	lasting := func(b Blocker) bool { return b.Code != decision.Unschedulable.String() }
	some := a.Verdict == Misconfigured && slices.ContainsFunc(g.Blockers, lasting)
	for i := range g.Blockers {
		if !some || lasting(g.Blockers[i]) { // what others take is not what keeps it off
			parts = append(parts, a.facts.detail(&g.Blockers[i], g.names))
		}
	}
	where := " (on every node)"
	switch {
	case len(g.Blockers) == 1 && g.Blockers[0].Plugin == names.CapacityScheduling: // whatever node
		where = ""
	case g.Nodes < a.NodesTotal:
		where = " (on " + terminal.Count(g.Nodes, "node") + ": " + list(g.names, shortNames) + ")"
	}
	return strings.Join(parts, "; and ") + where
}

// nearestGroup are the nodes where the pod comes nearest: of a pod that waits, those
// where load alone blocks it.
func (a *Answer) nearestGroup() *NodeGroup {
	if a.Verdict == Waiting {
		for i := range a.Groups {
			if !slices.ContainsFunc(a.Groups[i].Blockers, func(b Blocker) bool { return b.Code != decision.Unschedulable.String() }) {
				return &a.Groups[i]
			}
		}
	}
	return &a.Groups[0]
}

// groupText lists the nodes by what blocks the pod there.
func (a *Answer) groupText(b *strings.Builder, wide bool) {
	if len(a.Groups) == 0 {
		return
	}
	shown := a.Groups
	if !wide && len(shown) > shortGroups {
		shown = shown[:shortGroups]
	}
	terminal.Fprintf(b, "\nNODES (%d, %d feasible; the nearest misses first)\n", a.NodesTotal, a.NodesFeasible)
	for i := range shown {
		g := &shown[i]
		names := list(g.names, shortNames)
		if wide {
			names = strings.Join(g.names, ", ")
		}
		terminal.Fprintf(b, "  %s: %s\n", terminal.Count(g.Nodes, "node"), names)
		for k := range g.Blockers {
			terminal.Fprintf(b, "    %s\n", a.facts.detail(&g.Blockers[k], g.names))
			if wide {
				terminal.Fprintf(b, "      %s, %s: %s\n", g.Blockers[k].Plugin, g.Blockers[k].Code, strings.Join(g.Blockers[k].Reasons, ", "))
			}
		}
	}
	if rest := len(a.Groups) - len(shown); rest > 0 {
		nodes := 0
		for _, g := range a.Groups[len(shown):] {
			nodes += g.Nodes
		}
		terminal.Fprintf(b, "  (and %s with more that blocks: -o wide)\n", terminal.Count(nodes, "node"))
	}
}

// fixText lists the fixes, each with what to type.
func (a *Answer) fixText(b *strings.Builder, wide bool) {
	if a.Verdict != Waiting && a.Verdict != Misconfigured && a.Verdict != Gated {
		return
	}
	if len(a.Fixes) == 0 {
		if a.Cut != "" {
			terminal.Fprintf(b, "\nNo change was found that would help: %s.\n", a.Cut)
			return
		}
		if !a.facts.cluster.NoFixes && a.NodesTotal > 0 {
			b.WriteString("\nNo small change that can be tried here would help.\n")
		}
		return
	}
	shown := a.Fixes
	if !wide && len(shown) > shortFixes {
		shown = shown[:shortFixes]
	}
	who := ""
	if a.GroupCause != nil {
		who = " THIS POD ALONE"
	}
	terminal.Fprintf(b, "\nWHAT WOULD HELP%s (any one; each was tried: leftovers first, then the smallest)\n", who)
	for i := range shown {
		f := &shown[i]
		terminal.Fprintf(b, "  %d. %s%s\n", i+1, f.Extended().Summary, thenText(f))
		inText := false
		for _, line := range f.Commands {
			inText = inText && line != "EOF" || strings.HasSuffix(line, "<<'EOF'")
			if inText || line == "EOF" { // the shell wants the end of it at the margin
				terminal.Fprintf(b, "%s\n", line)
			} else {
				terminal.Fprintf(b, "       %s\n", line)
			}
		}
	}
	terminal.More(b, "  ", len(a.Fixes)-len(shown))
	if a.Cut != "" {
		terminal.Fprintf(b, "  Not all was tried: %s.\n", a.Cut)
	}
}

// thenText says which pods come first, and what comes of the fix.
func thenText(f *fix.Fix) string {
	then := "; then it goes to " + f.Then.Node
	if len(f.Then.Evicts) > 0 {
		then = fmt.Sprintf("; then it goes to %s and evicts %s", f.Then.Node, list(f.Then.Evicts, shortNames))
	}
	if len(f.First) == 0 {
		return then
	}
	first := list(f.First, shortNames) + " comes first"
	if len(f.First) > 1 {
		first = list(f.First, shortNames) + " come first"
	}
	if len(f.More) > 0 {
		return fmt.Sprintf(" (%s)%s", first, then)
	}
	return fmt.Sprintf("%s, but %s and may take its place", then, first)
}

// eventText says what the pod waits for.
func (a *Answer) eventText(b *strings.Builder, wide bool) {
	if len(a.Events) == 0 {
		return
	}
	if wide {
		b.WriteString("\nIT IS TRIED AGAIN WHEN\n")
		for _, e := range a.Events {
			terminal.Fprintf(b, "  %s (%s, %s %s)\n", e.Text, e.Plugin, e.Resource, e.Action)
		}
		return
	}
	var texts []string
	for _, e := range a.Events {
		if !slices.Contains(texts, e.Text) && likely(&e, a.facts.pod) {
			texts = append(texts, e.Text)
		}
	}
	if len(texts) > 0 {
		terminal.Fprintf(b, "\nIT IS TRIED AGAIN WHEN\n  %s\n", strings.Join(texts, "; "))
	}
}

// likely leaves out what hardly ever happens, or is of no concern to the pod.
func likely(e *Event, p *object.Pod) bool {
	switch e.Resource {
	case "DeviceClass", "ResourceClaim", "ResourceSlice":
		return e.Plugin == names.DynamicResources && len(p.Claims)+len(p.Extended) > 0
	case "Pod":
		return e.Plugin == names.SchedulingGates || !e.own
	}
	return true
}

// margin says how the choice was made.
func (a *Answer) margin() string {
	if len(a.Scores) == 0 {
		return ""
	}
	at := slices.IndexFunc(a.Scores, func(n Node) bool { return n.Node == a.Node })
	switch {
	case at < 0:
		return fmt.Sprintf(" It would not go there now: %s is the best of %s.", a.Scores[0].Node, terminal.Count(a.NodesFeasible, "feasible node"))
	case a.NodesFeasible == 1:
		return " No other node is feasible."
	case at > 0 && a.Scores[at].Margin > 0:
		return fmt.Sprintf(" Placed now it would go to %s, which scores %d more.", a.Scores[0].Node, a.Scores[at].Margin)
	}
	next := &a.Scores[1]
	if next.Margin == 0 {
		return fmt.Sprintf(" %s scores as much; a seeded draw decides.", next.Node)
	}
	return fmt.Sprintf(" It is the best of %d feasible nodes by %s: %s is next (%s).", a.NodesFeasible, terminal.Count(int(next.Margin), "point"), next.Node, difference(&a.Scores[0], next))
}

// difference is by which plugins one node is better than another.
func difference(best, next *Node) string {
	var parts []string
	for i := range best.Scores {
		if i < len(next.Scores) {
			if d := (best.Scores[i].Score - next.Scores[i].Score) * best.Scores[i].Weight; d != 0 {
				parts = append(parts, fmt.Sprintf("%s %+d", best.Scores[i].Plugin, d))
			}
		}
	}
	return strings.Join(parts, ", ")
}

func (a *Answer) scoreText(b *strings.Builder, wide bool) {
	if len(a.Scores) == 0 {
		return
	}
	terminal.Fprintf(b, "\nTHE BEST NODES (of %d feasible; score = sum of plugin score × weight)\n", a.NodesFeasible)
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	for _, n := range a.Scores {
		var parts []string
		for _, s := range n.Scores {
			if s.Score != 0 || wide {
				parts = append(parts, fmt.Sprintf("%s %d×%d", s.Plugin, s.Score, s.Weight))
			}
		}
		terminal.Fprintf(w, "  %s\t%d\t%s\n", n.Node, n.Score, strings.Join(parts, " + "))
	}
	_ = w.Flush() // to memory
}

// whyEvicted says why the pod goes and not another one of its node.
func (c *Cluster) whyEvicted(p *object.Pod) string {
	t := c.Machine.Table()
	row, ok := t.Find(p.NodeName)
	if !ok {
		return ""
	}
	var spared []string
	lowest := p.Priority
	for _, pl := range t.Pods(row) {
		if pl.Pod.UID != p.UID && !pl.Pod.Terminating {
			spared = append(spared, fmt.Sprintf("%s (%d)", pl.Pod.Key(), pl.Pod.Priority))
			lowest = min(lowest, pl.Pod.Priority)
		}
	}
	slices.Sort(spared)
	text := fmt.Sprintf("Its priority is %d", p.Priority)
	if lowest == p.Priority {
		text += ", the lowest on the node"
	}
	if len(spared) > 0 {
		text += "; reprieved: " + list(spared, shortNames)
	}
	return text + "."
}
