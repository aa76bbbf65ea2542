package machine

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/preempt"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/table"
)

// budgets holds the PodDisruptionBudgets, sorted by namespace, then name. Each change
// makes new slices, so that others may keep an old one.
type budgets struct {
	list   []*object.Budget
	strict []*object.Budget // the same with object.Budget.Strict
}

// of returns the budgets that preemption in the profile obeys: those with Budget.Strict set if the
// profile has StrictBudgets.
func (b *budgets) of(p *profile.Profile) []*object.Budget {
	if p.StrictBudgets {
		return b.strict
	}
	return b.list
}

// find returns the budget's index in the lists and true, or the index at which to insert it
// and false.
func (b *budgets) find(namespace, name string) (int, bool) {
	return slices.BinarySearchFunc(b.list, struct{}{}, func(b *object.Budget, _ struct{}) int {
		return cmp.Or(cmp.Compare(b.Namespace, namespace), cmp.Compare(b.Name, name))
	})
}

// set adds the budget, or replaces the one of its name. It returns the old and the new budget
// as copies with Budget.Strict set. was is nil if there was no old one.
func (b *budgets) set(budget *object.Budget) (was, now *object.Budget) {
	at, known := b.find(budget.Namespace, budget.Name)
	strict := *budget
	strict.Strict = true
	b.list, b.strict = slices.Clone(b.list), slices.Clone(b.strict)
	if !known {
		b.list, b.strict = slices.Insert(b.list, at, budget), slices.Insert(b.strict, at, &strict)
		return nil, &strict
	}
	was = b.strict[at]
	b.list[at], b.strict[at] = budget, &strict
	return was, &strict
}

// remove removes the budget and returns its copy with Budget.Strict set; nil if the budget is not
// known.
func (b *budgets) remove(namespace, name string) (was *object.Budget) {
	at, known := b.find(namespace, name)
	if !known {
		return nil
	}
	was = b.strict[at]
	b.list, b.strict = slices.Delete(slices.Clone(b.list), at, at+1), slices.Delete(slices.Clone(b.strict), at, at+1)
	return was
}

// budgetChanged handles a budget that changed from was to now (was nil: it is new; now nil: it is
// gone). It lets pods be tried again that strict budgets keep from preempting, if the change may
// free a victim. The victim must have a lower priority than the pod, unless the pod has an
// ElasticQuota. Without a profile with StrictBudgets it does nothing, as in kube-scheduler.
func (c *cluster) budgetChanged(was, now *object.Budget) {
	isStrict := func(p *profile.Profile) bool { return p.StrictBudgets }
	if was == nil || !slices.ContainsFunc(c.options.Profiles, isStrict) {
		return
	}
	lowest, found := c.lowestFreed(was, now)
	if !found {
		return
	}
	event := "PodDisruptionBudgetDelete"
	if now != nil {
		event = "PodDisruptionBudgetUpdate"
	}
	helps := func(p *object.Pod) bool {
		for name := range c.pods.entry(p.UID).RejectedBy() {
			if name == framework.PreemptionBudgets {
				return lowest < preempt.PriorityOf(c.table, p) || quota.Of(c.table).Queue(p.Namespace) != nil
			}
		}
		return false
	}
	c.queue.MoveInNamespaces(c.now, event, func(string) bool { return true }, helps)
}

// lowestFreed returns the lowest priority of the placed pods that was counts (Budget.Counts) and
// that now leaves freer: now allows more disruptions, does not count the pod any more, or is nil
// (the budget is gone). found is false if there is no such pod.
func (c *cluster) lowestFreed(was, now *object.Budget) (lowest int32, found bool) {
	more := now == nil || now.Allowed > max(was.Allowed, 0)
	c.table.PodsByLabels(was.Namespace, func(same *table.PodsWithLabels) {
		for _, pl := range same.Pods() {
			if !was.Covers(pl.Pod) {
				return
			}
			if priority := preempt.PriorityOf(c.table, pl.Pod); was.Counts(pl.Pod) && (more || !now.Counts(pl.Pod)) && (!found || priority < lowest) {
				lowest, found = priority, true
			}
		}
	})
	return lowest, found
}
