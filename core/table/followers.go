package table

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/object"
)

// Follower keeps an index of what a few readers ask of a table, so that the table need not.
// It is told of each change of the table, after it. A nil function ignores the change.
//
// Undo takes pods off their rows, or puts them back, like any other change. Rebuild drops
// the follower, makes a new one, and tells it of all that there is.
type Follower[T any] struct {
	// Index is what it keeps.
	Index T
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
	Check func(fresh T) error
}

// Index finds the index of one kind that a follower keeps of a table.
type Index[T any] struct{ at int }

// follows make the followers of a table. Packages add theirs when they are initialized, and
// never later.
var follows []func(*Table) follower

// follower is a Follower of any index.
type follower struct {
	index         any
	came, left    func(*Placed)
	nodeChanged   func(r Row, was, is *object.Node)
	objectChanged func(was, is object.Object)
	check         func(fresh any) error
}

// Follow makes each table have a follower. Call it to initialize a package variable.
func Follow[T any](follow func(*Table) Follower[T]) Index[T] {
	follows = append(follows, func(t *Table) follower {
		f := follow(t)
		return follower{f.Index, f.Came, f.Left, f.NodeChanged, f.ObjectChanged, func(fresh any) error { return f.Check(fresh.(T)) }}
	})
	return Index[T]{len(follows) - 1}
}

// Of returns the table's index.
func (i Index[T]) Of(t *Table) T { return t.followers.list[i.at].index.(T) }

// followers are those of one table.
type followers struct {
	list []follower
	// epoch is the first revision of an index.
	epoch uint64
}

// follow makes the followers, in place of those that there were.
func (t *Table) follow() {
	t.followers.list = t.followers.list[:0]
	for _, follow := range follows {
		t.followers.list = append(t.followers.list, follow(t))
	}
}

// followAnew makes new followers and tells them of all rows, nodes and objects.
func (t *Table) followAnew() {
	t.followers.epoch += 1 << 32
	t.follow()
	for r := range t.nodes {
		t.followers.nodeChanged(Row(r), nil, nil)
	}
	for r, n := range t.nodes {
		t.followers.nodeChanged(Row(r), nil, n)
	}
	for kind := range object.Kinds {
		for _, o := range t.Objects().List(kind) {
			t.followers.objectChanged(nil, o)
		}
	}
}

// Epoch returns the number from which a follower counts the revisions of its index, so that
// those after a Rebuild are above those before.
func (t *Table) Epoch() uint64 { return t.followers.epoch }

func (l *followers) came(pl *Placed) {
	for i := range l.list {
		if f := l.list[i].came; f != nil {
			f(pl)
		}
	}
}

func (l *followers) left(pl *Placed) {
	for i := range l.list {
		if f := l.list[i].left; f != nil {
			f(pl)
		}
	}
}

func (l *followers) nodeChanged(r Row, was, is *object.Node) {
	for i := range l.list {
		if f := l.list[i].nodeChanged; f != nil {
			f(r, was, is)
		}
	}
}

func (l *followers) objectChanged(was, is object.Object) {
	for i := range l.list {
		if f := l.list[i].objectChanged; f != nil {
			f(was, is)
		}
	}
}

// check compares each follower with that of a fresh table.
func (l *followers) check(fresh *Table) error {
	for i := range l.list {
		if err := l.list[i].check(fresh.followers.list[i].index); err != nil {
			return fmt.Errorf("%T: %w", l.list[i].index, err)
		}
	}
	return nil
}

// RowOf returns the row that stands for the node name, with or without a node.
func (t *Table) RowOf(name string) (Row, bool) {
	r, ok := t.rows.of[name]
	return r, ok
}

// Reach returns the column, made longer if it does not reach the row.
func Reach[T any](column []T, r Row) []T {
	if n := int(r) + 1 - len(column); n > 0 {
		column = append(column, make([]T, n)...)
	}
	return column
}
