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
	l := Layout{Rows: slices.Clone(t.rows.names), Free: slices.Clone(t.rows.free)}
	l.Replied, l.Assumed = t.objects.unconfirmed()
	return l
}

// unconfirmed returns the states that the watch has not shown, sorted: those of replies,
// and those that are assumed.
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
	t.rows.free = slices.Clone(l.Free)
}

// Reassume restores an assumption of the layout.
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
