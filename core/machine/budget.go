package machine

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// budgets holds the disruption budgets, sorted by namespace, then name. A plan that holds
// the list keeps it: changes make a new list.
type budgets struct{ list []*object.Budget }

func (b *budgets) find(namespace, name string) (int, bool) {
	return slices.BinarySearchFunc(b.list, struct{}{}, func(b *object.Budget, _ struct{}) int {
		return cmp.Or(cmp.Compare(b.Namespace, namespace), cmp.Compare(b.Name, name))
	})
}

// set adds the budget, or replaces an earlier state of it.
func (b *budgets) set(now *object.Budget) {
	at, known := b.find(now.Namespace, now.Name)
	if !known {
		b.list = slices.Insert(slices.Clone(b.list), at, now)
		return
	}
	b.list = slices.Clone(b.list)
	b.list[at] = now
}

// remove removes the budget if there is one.
func (b *budgets) remove(namespace, name string) {
	if at, known := b.find(namespace, name); known {
		b.list = slices.Delete(slices.Clone(b.list), at, at+1)
	}
}
