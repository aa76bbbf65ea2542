package why

import (
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// setNext records whether anybody was asked to leave for the pod, and which budgets the eviction
// of the victims exceeds.
func (a *Answer) setNext(c *Cluster, d *decision.Decision) {
	a.next = len(a.Leaving) == 0 && a.facts.api.Status.NominatedNodeName != d.NominatedNode
	t := c.Machine.Table()
	row, ok := t.Find(d.NominatedNode)
	if !ok {
		return
	}
	for _, b := range c.Machine.Budgets() {
		var uses int32
		for _, pl := range t.Pods(row) {
			if b.Counts(pl.Pod) && !pl.Pod.Terminating && slices.Contains(d.Victims, pl.Pod.NamespacedName()) {
				uses++
			}
		}
		if uses > b.Allowed && !c.Set.Hidden(b.Namespace) {
			a.Against, a.exceeded = append(a.Against, b.Namespace+"/"+b.Name), append(a.exceeded, b)
		}
	}
}

// preemptingText says who leaves for the pod, or will be asked to.
func (a *Answer) preemptingText() string {
	victims := list(a.Victims, shortNames)
	if !a.next {
		text := fmt.Sprintf("%s waits for %s to leave %s.", a.Pod, victims, a.Node)
		if len(a.Leaving) > 0 {
			text += fmt.Sprintf(" %s is %s.", a.Leaving[0].Pod, a.Leaving[0].brief())
		}
		return text
	}
	text := fmt.Sprintf("%s preempts %s on %s at its next attempt", a.Pod, victims, a.Node)
	var budgets []string
	for _, b := range a.exceeded {
		budgets = append(budgets, fmt.Sprintf("%s, which allows %s", b.Name, terminal.Count(int(b.Allowed), "disruption")))
	}
	if len(budgets) > 0 {
		text += fmt.Sprintf(" (against the %s %s)", terminal.Plural(len(budgets), "budget", "budgets"), list(budgets, shortNames))
	}
	return text + "."
}
