package table

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/object"
)

// Follower is told of each change of a table, after it. It keeps an index of what a few
// readers ask for, so that the table need not. A nil function ignores what it is about.
//
// Undo takes pods off their rows, or puts them back, like any other change. Rebuild drops
// the follower, makes a new one, and tells it of all that there is.
type Follower struct {
	// Came is told of a pod that the row counts, Left of one that it counts no more.
	Came, Left func(*Placed)
	// NodeChanged is told of a node that came, changed or went: nil is for none. Rows are
	// used again. It is also told of each row that is new, with nil for both.
	NodeChanged func(r Row, was, is *object.Node)
	// ObjectChanged is told of an object that came, changed or went, as readers see it: nil
	// is for none.
	ObjectChanged func(was, is object.Object)
	// Check compares the index with that of a table made from the same nodes, pods and
	// objects, with the same rows.
	Check func(fresh *Table) error
}

// Index is how a package finds what its follower keeps of a table.
type Index[T any] struct{ at int }

// follows make what each follower keeps of a table. Packages add theirs when they are
// initialized, and never later.
var follows []func(*Table) (any, Follower)

// Follow makes each table have a follower. Call it to initialize a package variable.
func Follow[T any](follow func(*Table) (T, Follower)) Index[T] {
	follows = append(follows, func(t *Table) (any, Follower) { return follow(t) })
	return Index[T]{len(follows) - 1}
}

// Of returns what the follower keeps of the table.
func (i Index[T]) Of(t *Table) T { return t.followers.kept[i.at].(T) }

// followers are those of one table.
type followers struct {
	kept []any // by Index
	all  []Follower
	// epoch is the first revision of a follower.
	epoch uint64
}

// follow makes the followers, in place of those that there were.
func (t *Table) follow() {
	l := &t.followers
	l.kept, l.all = l.kept[:0], l.all[:0]
	for _, follow := range follows {
		kept, f := follow(t)
		l.kept, l.all = append(l.kept, kept), append(l.all, f)
	}
}

// followAnew makes new followers and tells them of all objects.
func (t *Table) followAnew() {
	t.followers.epoch += 1 << 32
	t.follow()
	for kind := range object.Kinds {
		for _, o := range t.Objects(kind) {
			t.followers.objectChanged(nil, o)
		}
	}
}

// Epoch returns the number from which a follower counts its revisions, so that those of a
// follower that Rebuild made are above those of the one before.
func (t *Table) Epoch() uint64 { return t.followers.epoch }

func (l *followers) came(pl *Placed) {
	for i := range l.all {
		if f := l.all[i].Came; f != nil {
			f(pl)
		}
	}
}

func (l *followers) left(pl *Placed) {
	for i := range l.all {
		if f := l.all[i].Left; f != nil {
			f(pl)
		}
	}
}

func (l *followers) nodeChanged(r Row, was, is *object.Node) {
	for i := range l.all {
		if f := l.all[i].NodeChanged; f != nil {
			f(r, was, is)
		}
	}
}

func (l *followers) objectChanged(was, is object.Object) {
	for i := range l.all {
		if f := l.all[i].ObjectChanged; f != nil {
			f(was, is)
		}
	}
}

// check compares each follower with that of a fresh table.
func (l *followers) check(fresh *Table) error {
	for i := range l.all {
		if err := l.all[i].Check(fresh); err != nil {
			return fmt.Errorf("%T: %w", l.kept[i], err)
		}
	}
	return nil
}

// Touch marks the row as changed, as a follower's answer about it did.
func (t *Table) Touch(r Row) { t.touch(r) }

// RowOf returns the row that stands for the node name, with or without a node.
func (t *Table) RowOf(name string) (Row, bool) {
	r, ok := t.rowOf[name]
	return r, ok
}

// Reach returns the column, made longer if it does not reach the row.
func Reach[T any](column []T, r Row) []T {
	if n := int(r) + 1 - len(column); n > 0 {
		column = append(column, make([]T, n)...)
	}
	return column
}
