package table

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/object"
)

// Follower keeps an index (T) that only a few readers of a table need. It is called after each
// change of the table. A nil function ignores the change; Check may not be nil.
//
// Undo removes pods from their rows, or puts them back, like any other change. Rebuild drops
// the follower, makes a new one, and calls it for all rows, nodes, objects and pods.
type Follower[T any] struct {
	// Index is what the follower keeps; Index.Of returns it.
	Index T
	// Came is called with a pod that was placed on its row, Left with one that was removed
	// from it.
	Came, Left func(*Placed)
	// NodeChanged is called when the row's node was added (was is nil), changed, or removed (is
	// is nil), unless the two are EqualForScheduling. The row of a removed node is used again.
	// NodeChanged is also called for each new row, with nil for both.
	NodeChanged func(r Row, was, is *object.Node)
	// ObjectChanged is called when the state of an object that readers see was added (was is
	// nil), changed, or removed (is is nil). Assumed states count.
	ObjectChanged func(was, is object.Object)
	// Check returns an error if the index differs from that of a table made anew from the
	// same nodes, pods and objects, with the same rows.
	Check func(fresh T) error
}

// Index identifies one kind of follower. The package that keeps the index has it as a variable;
// Of returns the index of a table. at is the follower's place in follows.
type Index[T any] struct{ at int }

// follows holds, for each kind of follower, the function that makes one for a table. Follow
// adds to it while package variables are initialized, and never later.
var follows []func(*Table) follower

// follower is a Follower without its type parameter, so that a table can list followers
// with indexes of different types.
type follower struct {
	index         any
	came, left    func(*Placed)
	nodeChanged   func(r Row, was, is *object.Node)
	objectChanged func(was, is object.Object)
	check         func(fresh any) error
}

// Follow registers follow, which is called for each new table, and at each Rebuild, to make a
// follower. It returns the Index by which the follower's index is read. Call it only to
// initialize a package variable.
func Follow[T any](follow func(*Table) Follower[T]) Index[T] {
	follows = append(follows, func(t *Table) follower {
		f := follow(t)
		return follower{f.Index, f.Came, f.Left, f.NodeChanged, f.ObjectChanged, func(fresh any) error { return f.Check(fresh.(T)) }}
	})
	return Index[T]{len(follows) - 1}
}

// Of returns the index that the follower keeps of the table.
func (i Index[T]) Of(t *Table) T { return t.followers.list[i.at].index.(T) }

// followers are the followers of one table, in the order of Follow.
type followers struct {
	list []follower
	// epoch is the number from which revisions of indexes count; each Rebuild raises it.
	epoch uint64
}

// follow makes new followers, with empty indexes, in place of the present ones. The caller
// then calls them for what the table holds.
func (t *Table) follow() {
	t.followers.list = t.followers.list[:0]
	for _, follow := range follows {
		t.followers.list = append(t.followers.list, follow(t))
	}
}

// followAnew raises the epoch, makes new followers and calls them for all rows, nodes and
// objects, but not for pods.
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

// Epoch returns the number at which a new follower starts the revision of its index. It is
// higher after each Rebuild than all revisions before, so that readers see that the index
// changed.
func (t *Table) Epoch() uint64 { return t.followers.epoch }

// came calls every follower for a pod that was placed on its row.
func (l *followers) came(pl *Placed) {
	for i := range l.list {
		if f := l.list[i].came; f != nil {
			f(pl)
		}
	}
}

// left calls every follower for a pod that was removed from its row.
func (l *followers) left(pl *Placed) {
	for i := range l.list {
		if f := l.list[i].left; f != nil {
			f(pl)
		}
	}
}

// nodeChanged calls every follower for a row whose node was added (was is nil), changed,
// or removed (is is nil).
func (l *followers) nodeChanged(r Row, was, is *object.Node) {
	for i := range l.list {
		if f := l.list[i].nodeChanged; f != nil {
			f(r, was, is)
		}
	}
}

// objectChanged calls every follower for an API object that was added (was is nil),
// changed, or removed (is is nil).
func (l *followers) objectChanged(was, is object.Object) {
	for i := range l.list {
		if f := l.list[i].objectChanged; f != nil {
			f(was, is)
		}
	}
}

// check compares each follower's index with that of a fresh table and returns the first
// difference.
func (l *followers) check(fresh *Table) error {
	for i := range l.list {
		if err := l.list[i].check(fresh.followers.list[i].index); err != nil {
			return fmt.Errorf("%T: %w", l.list[i].index, err)
		}
	}
	return nil
}

// RowOf returns the row that has the node name; false if there is none. The node may be
// unknown: then only pods bound to that name are on the row.
func (t *Table) RowOf(name string) (Row, bool) {
	r, ok := t.rows.of[name]
	return r, ok
}

// Reach returns the column, extended with zero values if it is too short to have an element
// for the row.
func Reach[T any](column []T, r Row) []T {
	if n := int(r) + 1 - len(column); n > 0 {
		column = append(column, make([]T, n)...)
	}
	return column
}
