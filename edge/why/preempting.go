package why

import (
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
)

// preempting says whether the victims leave already, and which budgets their eviction exceeds.
func (c *Cluster) preempting(a *Answer, d *decision.Decision) {
	a.next = len(a.Leaving) == 0 && a.facts.api.Status.NominatedNodeName != d.NominatedNode
	a.exceeded = c.exceeded(d)
	for _, b := range a.exceeded {
		a.Against = append(a.Against, b.Namespace+"/"+b.Name)
	}
}

// exceeded returns the budgets that allow fewer disruptions than the victims of the decision that
// they count, by name.
func (c *Cluster) exceeded(d *decision.Decision) (all []*object.Budget) {
	t := c.Machine.Table()
	row, ok := t.Find(d.NominatedNode)
	if !ok {
		return nil
	}
	for _, b := range c.Machine.Budgets() {
		var uses int32
		for _, pl := range t.Pods(row) {
			if b.Counts(pl.Pod) && !pl.Pod.Terminating && slices.Contains(d.Victims, pl.Pod.NamespacedName()) {
				uses++
			}
		}
		if uses > b.Allowed && !c.Set.Hidden(b.Namespace) {
			all = append(all, b)
		}
	}
	return all
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
		budgets = append(budgets, fmt.Sprintf("%s, which allows %s", b.Name, count(int(b.Allowed), "disruption")))
	}
	if len(budgets) > 0 {
		text += fmt.Sprintf(" (against the %s %s)", plural(len(budgets), "budget", "budgets"), list(budgets, shortNames))
	}
	return text + "."
}
