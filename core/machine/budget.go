package machine

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// budgets are the disruption budgets, sorted by namespace, then name. A plan
// that holds the list keeps it: changes make a new one.
type budgets []*object.Budget

func (l budgets) find(namespace, name string) (int, bool) {
	return slices.BinarySearchFunc(l, struct{}{}, func(b *object.Budget, _ struct{}) int {
		return cmp.Or(cmp.Compare(b.Namespace, namespace), cmp.Compare(b.Name, name))
	})
}

func (l budgets) with(b *object.Budget) budgets {
	at, known := l.find(b.Namespace, b.Name)
	if known {
		l = slices.Clone(l)
		l[at] = b
		return l
	}
	return slices.Insert(slices.Clone(l), at, b)
}

func (l budgets) without(namespace, name string) budgets {
	at, known := l.find(namespace, name)
	if !known {
		return l
	}
	return slices.Delete(slices.Clone(l), at, at+1)
}
