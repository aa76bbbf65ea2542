package table

import (
	"cmp"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/berth-scheduler/berth/core/object"
)

// Objects holds the API objects that only some plugins read (claims, volumes, slices, ...),
// by kind. Each may have an assumed state, which readers see until the API shows what the
// scheduler wrote. It belongs to a table, whose followers are told of changes.
type Objects struct {
	table *Table
	kinds [object.Kinds]kindOfObjects
}

// Objects returns the table's API objects.
func (t *Table) Objects() *Objects { return &t.objects }

// kindOfObjects holds the objects of one kind.
type kindOfObjects struct {
	byName   map[objectName]*objectState
	revision uint64          // grows whenever an object of the kind changes
	sorted   []object.Object // result of List; nil: to be made
	// byIndex lists objects that are object.Indexed by their IndexKey.
	byIndex map[string]map[objectName]*objectState
}

// objectName identifies an object of a kind.
type objectName struct{ namespace, name string }

// objectState is an object as the API shows it, and as it is assumed to be until writes of
// the scheduler are shown.
type objectState struct {
	shown, assumed object.Object // nil for none; one of them is not nil
	// assumedWritten is set if the assumed state was written; the next state that the API
	// shows includes it.
	assumedWritten bool
	// replied is the resource version in the last reply to a write, "" for none. The watch may
	// still show older ones.
	replied string
	// made is set if the scheduler is creating the object. It has no UID yet.
	made bool
}

// now returns the state that readers see: the assumed one, else the one shown.
func (k *objectState) now() object.Object {
	if k.assumed != nil {
		return k.assumed
	}
	return k.shown
}

// either returns the state that the API shows, else the assumed one of an object that is
// being created.
func (k *objectState) either() object.Object {
	if k.shown != nil {
		return k.shown
	}
	return k.assumed
}

// ends reports whether the assumption ends when the API shows the state shown: it includes what
// is assumed, it has another UID (unless the object was being created), or it is the first
// after the write. It is false if nothing is assumed.
func (k *objectState) ends(shown object.Object) bool {
	if k.assumed == nil {
		return false
	}
	a, now := k.assumed.Head(), shown.Head()
	if c, ok := k.assumed.(confirmed); ok && c.ConfirmedBy(shown) {
		return true
	}
	return a.UID != now.UID && !k.made || k.assumedWritten && a.Version != now.Version
}

// confirmed is implemented by objects that can compare themselves, as assumed, with a shown
// state.
type confirmed interface {
	// ConfirmedBy reports whether the shown state includes what is assumed.
	ConfirmedBy(shown object.Object) bool
}

// Set adds the object or replaces the state that the API shows of it. An assumption ends if o
// includes it, is the first state after its write, or has another UID. Set returns the state
// shown before, nil for none. It panics under a checkpoint.
func (s *Objects) Set(o object.Object) (before object.Object) {
	s.table.noCheckpoint("Objects.Set")
	m := o.Head()
	kind := &s.kinds[m.Kind]
	at := objectName{m.Namespace, m.Name}
	k := kind.byName[at]
	if k == nil {
		if kind.byName == nil {
			kind.byName = map[objectName]*objectState{}
		}
		k = &objectState{}
		kind.byName[at] = k
	}
	was := k.now()
	before, k.shown = k.shown, o
	kind.removeFromIndex(at, before)
	kind.addToIndex(at, k)
	if k.ends(o) {
		k.assumed, k.assumedWritten, k.made = nil, false, false
	}
	s.changed(kind, was, k.now())
	return before
}

// Overtakes reports whether o, from the reply to a write, is a later version of the object than
// the watch has shown. It is false if the API does not show an object with the name and UID.
func (s *Objects) Overtakes(o object.Object) bool {
	k := s.known(o.Head())
	return k != nil && later(o.Head().Version, k.shown.Head().Version)
}

// Overtaken reports whether o, from the watch, is no later than the reply to a write that
// the table has, so that it is to be ignored.
func (s *Objects) Overtaken(o object.Object) bool {
	k := s.known(o.Head())
	return k != nil && k.replied != "" && !later(o.Head().Version, k.replied)
}

// Replied records that the state o, which was Set, came from the reply to a write. States that
// the watch shows are Overtaken then unless they are later.
func (s *Objects) Replied(o object.Object) {
	if k := s.known(o.Head()); k != nil {
		k.replied = o.Head().Version
	}
}

// ForgetReplies forgets which states came from replies. Every state that the watch shows
// then counts again, as after a new list.
func (s *Objects) ForgetReplies() {
	for i := range s.kinds {
		for _, k := range s.kinds[i].byName { // any order: each by itself
			k.replied = ""
		}
	}
}

// known returns the state of the object with the name and UID of m; nil if the API does not
// show it.
func (s *Objects) known(m *object.Meta) *objectState {
	if k := s.kinds[m.Kind].byName[objectName{m.Namespace, m.Name}]; k != nil && k.shown != nil && k.shown.Head().UID == m.UID {
		return k
	}
	return nil
}

// later reports whether resource version a is later than b. Versions that are not numbers
// have no order.
func later(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// Remove removes the object with its assumption, and returns the state that the API showed
// last, nil for none. It panics under a checkpoint.
func (s *Objects) Remove(kind object.Kind, namespace, name string) (before object.Object) {
	s.table.noCheckpoint("Objects.Remove")
	list := &s.kinds[kind]
	at := objectName{namespace, name}
	k := list.byName[at]
	if k == nil {
		return nil
	}
	delete(list.byName, at)
	list.removeFromIndex(at, k.either())
	s.changed(list, k.now(), nil)
	return k.shown
}

// Assume makes readers see the state o of the object until Restore or Remove, or until the API
// shows what was written (see Written). o has the resource version that it was made from. It
// does nothing if the API shows no object with the name and UID.
func (s *Objects) Assume(o object.Object) {
	m := o.Head()
	kind := &s.kinds[m.Kind]
	if k := kind.byName[objectName{m.Namespace, m.Name}]; k != nil && k.shown != nil && k.shown.Head().UID == m.UID {
		was := k.now()
		k.assumed, k.assumedWritten = o, false
		s.changed(kind, was, o)
	}
}

// AssumeMade makes readers see an object that does not exist yet and that the scheduler is
// about to create. It has no UID. The assumption ends with Restore, or when the API shows a
// state that includes what is assumed. It does nothing if there is an object of that name.
func (s *Objects) AssumeMade(o object.Object) {
	m := o.Head()
	kind := &s.kinds[m.Kind]
	at := objectName{m.Namespace, m.Name}
	if kind.byName[at] != nil {
		return
	}
	if kind.byName == nil {
		kind.byName = map[objectName]*objectState{}
	}
	k := &objectState{assumed: o, made: true}
	kind.byName[at] = k
	kind.addToIndex(at, k)
	s.changed(kind, nil, o)
}

// Restore drops the assumed state of the object, if it has one; readers see what the API shows.
// An object that was only being created is removed.
func (s *Objects) Restore(m *object.Meta) {
	kind := &s.kinds[m.Kind]
	at := objectName{m.Namespace, m.Name}
	k := kind.byName[at]
	if k == nil || k.assumed == nil {
		return
	}
	was := k.assumed
	if k.assumed, k.assumedWritten, k.made = nil, false, false; k.shown == nil {
		delete(kind.byName, at)
		kind.removeFromIndex(at, was)
	}
	s.changed(kind, was, k.shown)
}

// Written records that the assumed state was written to the API. The assumption ends with the
// next state that the API shows, or now if one was shown since Assume. It does nothing for an
// object that the API does not show.
func (s *Objects) Written(m *object.Meta) {
	kind := &s.kinds[m.Kind]
	k := kind.byName[objectName{m.Namespace, m.Name}]
	switch {
	case k == nil || k.assumed == nil || k.shown == nil:
	case k.shown.Head().Version != k.assumed.Head().Version:
		s.Restore(m)
	default:
		k.assumedWritten = true
	}
}

// Named returns the object as readers see it, assumed state included; nil if there is none.
func (s *Objects) Named(kind object.Kind, namespace, name string) object.Object {
	if k := s.kinds[kind].byName[objectName{namespace, name}]; k != nil {
		return k.now()
	}
	return nil
}

// Shown returns the object as the API shows it, without what is assumed; nil if the API
// shows none.
func (s *Objects) Shown(kind object.Kind, namespace, name string) object.Object {
	if k := s.kinds[kind].byName[objectName{namespace, name}]; k != nil {
		return k.shown
	}
	return nil
}

// List returns the objects of a kind as readers see them, sorted by namespace, then name.
// It is valid until the next change. Read only.
func (s *Objects) List(kind object.Kind) []object.Object {
	list := &s.kinds[kind]
	if list.sorted == nil && len(list.byName) > 0 {
		list.sorted = make([]object.Object, 0, len(list.byName))
		for _, k := range list.byName { // any order: sorted below
			list.sorted = append(list.sorted, k.now())
		}
		slices.SortFunc(list.sorted, func(a, b object.Object) int {
			return cmp.Or(cmp.Compare(a.Head().Namespace, b.Head().Namespace), cmp.Compare(a.Head().Name, b.Head().Name))
		})
	}
	return list.sorted
}

// ByIndex returns the objects of a kind whose IndexKey is key, as readers see them, in no
// order.
func (s *Objects) ByIndex(kind object.Kind, key string) iter.Seq[object.Object] {
	return func(yield func(object.Object) bool) {
		for _, k := range s.kinds[kind].byIndex[key] { // any order: promised none
			if !yield(k.now()) {
				return
			}
		}
	}
}

// Revision returns a number that grows whenever an object of one of the kinds is set, removed,
// assumed or restored. A plugin whose answers depend on them appends it in its Sign.
func (s *Objects) Revision(kinds ...object.Kind) uint64 {
	var sum uint64
	for _, kind := range kinds {
		sum += s.kinds[kind].revision // each only grows, so the sum does
	}
	return sum
}

// addToIndex lists the object by its IndexKey, if its kind has one.
func (k *kindOfObjects) addToIndex(at objectName, o *objectState) {
	indexed, ok := o.either().(object.Indexed)
	if !ok {
		return
	}
	key := indexed.IndexKey()
	if k.byIndex == nil {
		k.byIndex = map[string]map[objectName]*objectState{}
	}
	if k.byIndex[key] == nil {
		k.byIndex[key] = map[objectName]*objectState{}
	}
	k.byIndex[key][at] = o
}

// removeFromIndex removes the object from the list for o's IndexKey, if its kind has one. o
// may be nil.
func (k *kindOfObjects) removeFromIndex(at objectName, o object.Object) {
	if indexed, ok := o.(object.Indexed); ok {
		key := indexed.IndexKey()
		if delete(k.byIndex[key], at); len(k.byIndex[key]) == 0 {
			delete(k.byIndex, key)
		}
	}
}

// changed counts a change of an object of the kind and calls the followers. was and is are
// the states that readers see; nil stands for none.
func (s *Objects) changed(kind *kindOfObjects, was, is object.Object) {
	kind.revision++
	kind.sorted = nil
	s.table.followers.objectChanged(was, is)
}

// Lookup returns the object as readers see it, assumed state included; nil if there is
// none. T must be the type of the kind's objects.
func Lookup[T object.Object](t *Table, kind object.Kind, namespace, name string) (found T) {
	found, _ = t.objects.Named(kind, namespace, name).(T)
	return found
}
