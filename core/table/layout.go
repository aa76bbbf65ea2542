package table

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// Layout is what a table cannot be restored without, besides its nodes, pods and objects: the
// row of each node, since random choices depend on rows, and the states of objects that the
// watch has not shown.
type Layout struct {
	Rows []string // node name by row, "" for a free one
	Free []Row    // free rows; the last is used first
	// Replied holds objects as replies to writes showed them, which the watch may not
	// have shown yet.
	Replied []object.Object
	// Assumed holds the objects that are assumed to be in another state than the API shows.
	Assumed []Assumed
}

// Assumed is the state in which an object is assumed to be.
type Assumed struct {
	Object  object.Object `json:"-"`
	Written bool          `json:",omitempty"` // it was written; the next state that the API shows includes it
	Made    bool          `json:",omitempty"` // the scheduler is creating the object, which has no UID yet
}

// Layout returns the table's layout, for a snapshot.
func (t *Table) Layout() Layout {
	l := Layout{Rows: slices.Clone(t.rows.names), Free: slices.Clone(t.rows.free)}
	l.Replied, l.Assumed = t.objects.unconfirmed()
	return l
}

// unconfirmed returns, for a Layout, the states of objects that the watch has not shown:
// those from replies to writes, and the assumed ones. Both are sorted by kind, namespace and
// name.
func (s *Objects) unconfirmed() (replied []object.Object, assumed []Assumed) {
	for kind := range s.kinds {
		for _, k := range s.kinds[kind].byName { // any order: sorted below
			if k.shown != nil && k.replied != "" && k.replied == k.shown.Head().Version {
				replied = append(replied, k.shown)
			}
			if k.assumed != nil {
				assumed = append(assumed, Assumed{k.assumed, k.assumedWritten, k.made})
			}
		}
	}
	slices.SortFunc(replied, compareObjects)
	slices.SortFunc(assumed, func(a, b Assumed) int { return compareObjects(a.Object, b.Object) })
	return replied, assumed
}

// compareObjects compares by kind, then namespace, then name.
func compareObjects(a, b object.Object) int {
	x, y := a.Head(), b.Head()
	return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
}

// LayOut gives an empty table the rows of the layout, so that a restored table has each
// node on the same row as before. It does not restore objects.
func (t *Table) LayOut(l *Layout) {
	for _, name := range l.Rows {
		if name != "" {
			t.row(name)
		} else {
			t.grow()
		}
	}
	t.rows.free = slices.Clone(l.Free)
}

// Reassume restores an assumption of a layout. It does nothing if the object is gone,
// unless the scheduler was creating it.
func (s *Objects) Reassume(a *Assumed) {
	m := a.Object.Head()
	if a.Made {
		s.AssumeMade(a.Object)
	}
	k := s.kinds[m.Kind].byName[objectName{m.Namespace, m.Name}]
	if k == nil {
		return // it is gone
	}
	was := k.now()
	k.assumed, k.assumedWritten, k.made = a.Object, a.Written, a.Made
	s.changed(&s.kinds[m.Kind], was, a.Object)
}
