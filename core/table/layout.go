package table

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// Layout holds the row of each node, and the states of objects that the watch has not
// shown. A restored table needs it, since draws depend on rows.
type Layout struct {
	Rows []string // by row, "" for a free one
	Free []Row    // in the order in which they are used, the last first
	// Replied holds objects as replies to writes showed them, which the watch may not
	// have shown yet.
	Replied []object.Object
	Assumed []Assumed
}

// Assumed is an object as it is assumed to be.
type Assumed struct {
	Object  object.Object `json:"-"`
	Written bool          `json:",omitempty"` // the next state that the API shows holds it
	Made    bool          `json:",omitempty"` // the scheduler makes the object, which has no UID yet
}

// Layout returns the table's layout.
func (t *Table) Layout() Layout {
	l := Layout{Rows: slices.Clone(t.names), Free: slices.Clone(t.free)}
	for kind := range t.objects.kinds {
		for _, k := range t.objects.kinds[kind].byName { // any order: sorted below
			if k.shown != nil && k.replied != "" && k.replied == k.shown.Head().Version {
				l.Replied = append(l.Replied, k.shown)
			}
			if k.assumed != nil {
				l.Assumed = append(l.Assumed, Assumed{k.assumed, k.assumedWritten, k.made})
			}
		}
	}
	slices.SortFunc(l.Replied, compareObjects)
	slices.SortFunc(l.Assumed, func(a, b Assumed) int { return compareObjects(a.Object, b.Object) })
	return l
}

func compareObjects(a, b object.Object) int {
	x, y := a.Head(), b.Head()
	return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
}

// LayOut makes an empty table use the rows of the layout.
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

// Reassume restores an assumption of the layout.
func (t *Table) Reassume(a *Assumed) {
	m := a.Object.Head()
	if a.Made {
		t.AssumeMade(a.Object)
	}
	k := t.objects.kinds[m.Kind].byName[objectName{m.Namespace, m.Name}]
	if k == nil {
		return // it is gone
	}
	was := k.now()
	k.assumed, k.assumedWritten, k.made = a.Object, a.Written, a.Made
	t.objects.kinds[m.Kind].changed()
	t.objectChanged(was, a.Object)
}
