package table

import (
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// Layout is which row stands for which node, and what replies to our writes showed
// of objects, which the watch may not have shown yet. Draws depend on rows.
type Layout struct {
	Rows    []string // by row, "" for a free one
	Free    []Row    // in the order in which they are used, the last first
	Replied []object.Object
}

// Layout returns the table's layout; false while an object is assumed to be other
// than the API shows it.
func (t *Table) Layout() (l Layout, ok bool) {
	l.Rows, l.Free = slices.Clone(t.names), slices.Clone(t.free)
	for kind := range object.Kinds {
		for _, o := range t.Objects(kind) {
			switch k := t.objects.kinds[kind].byName[objectName{o.Head().Namespace, o.Head().Name}]; {
			case k.assumed != nil:
				return l, false
			case k.replied != "" && k.replied == o.Head().Version:
				l.Replied = append(l.Replied, o)
			}
		}
	}
	return l, true
}

// LayOut has an empty table use the rows of the layout.
func (t *Table) LayOut(l *Layout) {
	for _, name := range l.Rows {
		if name != "" {
			t.row(name)
		} else {
			t.grow()
		}
	}
	t.free = slices.Clone(l.Free)
}
