// Package freevolumes keeps the PersistentVolumes that claims may get: those that are free,
// and those that are kept for one claim.
package freevolumes

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Index lists the volumes by what decides who may get them.
type Index struct {
	table   *table.Table
	free    map[string]*Volumes // by storage class
	keptFor map[claimName]map[string]*object.PersistentVolume
	// revision is the number of the last change of a free one.
	revision uint64
	columns  map[string]*Column // by label
}

type claimName struct{ namespace, name string }

var index = table.Follow(func(t *table.Table) table.Follower[*Index] {
	x := &Index{
		table: t, free: map[string]*Volumes{}, keptFor: map[claimName]map[string]*object.PersistentVolume{},
		revision: t.Epoch(), columns: map[string]*Column{},
	}
	return table.Follower[*Index]{Index: x, NodeChanged: x.setLabels, ObjectChanged: x.follow, Check: x.check}
})

// Of returns the table's index.
func Of(t *table.Table) *Index { return index.Of(t) }

// Volumes are the volumes of a storage class that are kept for no claim, by the
// labels that pin them to nodes.
type Volumes struct {
	byName   map[string]*object.PersistentVolume
	revision uint64
	unpinned volumeList
	pinned   map[Pin]*volumeList
	many     map[Pin]*volumeList // those with more than Few
	keys     []string            // of the pins, sorted
	keyUses  map[string]int
	numbered map[string]*numberedPins // by label
}

// Pin is a label of the nodes that a volume is pinned to.
type Pin struct{ Key, Value string }

// Few is the most that Pinned returns of one pin in passing.
const Few = 8

// Keys returns the labels that pin volumes, sorted.
func (f *Volumes) Keys() []string { return f.keys }

// Unpinned returns the volumes that no label pins, the smallest first.
func (f *Volumes) Unpinned() []*object.PersistentVolume { return f.unpinned.bySize() }

// Pinned returns the volumes that the label pins, the smallest first, where they are few.
// It may be called concurrently.
func (f *Volumes) Pinned(at Pin) []*object.PersistentVolume {
	if list := f.pinned[at]; list != nil && len(list.volumes) <= Few {
		return list.volumes
	}
	return nil
}

// ManyPinned yields the pins with more volumes than that, and these, the smallest
// first. The pins come in no order.
func (f *Volumes) ManyPinned() iter.Seq2[Pin, []*object.PersistentVolume] {
	return func(yield func(Pin, []*object.PersistentVolume) bool) {
		for at, list := range f.many { // any order: the callers treat each by itself
			if !yield(at, list.bySize()) {
				return
			}
		}
	}
}

// volumeList lists volumes, the smallest first. A list of many is sorted when it is
// first asked for, and stays so.
type volumeList struct {
	volumes []*object.PersistentVolume
	sorted  bool
}

func (l *volumeList) bySize() []*object.PersistentVolume {
	if !l.sorted {
		slices.SortFunc(l.volumes, (*object.PersistentVolume).CompareSize)
		l.sorted = true
	}
	return l.volumes
}

func (l *volumeList) add(v *object.PersistentVolume) {
	if !l.sorted && len(l.volumes) >= Few {
		l.volumes = append(l.volumes, v)
		return
	}
	at, _ := slices.BinarySearchFunc(l.volumes, v, (*object.PersistentVolume).CompareSize)
	l.volumes = slices.Insert(l.volumes, at, v)
}

func (l *volumeList) remove(v *object.PersistentVolume) {
	at := slices.Index(l.volumes, v)
	if l.volumes = slices.Delete(l.volumes, at, at+1); len(l.volumes) <= Few {
		l.sorted = false
		slices.SortFunc(l.volumes, (*object.PersistentVolume).CompareSize)
	}
}

// set lists the volume, or takes it off.
func (f *Volumes) set(v *object.PersistentVolume, listed bool) {
	if listed {
		f.byName[v.Name] = v
	} else {
		delete(f.byName, v.Name)
	}
	switch {
	case v.Pin != nil:
		f.countKey(v.Pin.Key, listed)
		for _, value := range v.Pin.Values {
			f.setPinned(Pin{v.Pin.Key, value}, v, listed)
		}
	case listed:
		f.unpinned.add(v)
	default:
		f.unpinned.remove(v)
	}
}

func (f *Volumes) setPinned(at Pin, v *object.PersistentVolume, listed bool) {
	list := f.pinned[at]
	if list == nil {
		list = &volumeList{}
		f.pinned[at] = list
	}
	if listed {
		list.add(v)
	} else {
		list.remove(v)
	}
	if len(list.volumes) > Few {
		f.many[at] = list
	} else {
		delete(f.many, at)
	}
	if len(list.volumes) == 0 {
		delete(f.pinned, at)
	}
}

// countKey counts a volume more that the label pins, or one less.
func (f *Volumes) countKey(key string, more bool) {
	at, known := slices.BinarySearch(f.keys, key)
	if more {
		if f.keyUses[key]++; !known {
			f.keys = slices.Insert(slices.Clone(f.keys), at, key)
		}
	} else if f.keyUses[key]--; f.keyUses[key] == 0 {
		delete(f.keyUses, key)
		f.keys = slices.Delete(slices.Clone(f.keys), at, at+1)
	}
}

// InClass returns the volumes of the storage class that are kept for no claim. They are
// valid while the Revision of the class stands.
func (x *Index) InClass(class string) *Volumes {
	if f := x.free[class]; f != nil {
		return f
	}
	return &Volumes{}
}

// Revision changes whenever a free volume of the storage class comes, changes or goes. It
// is 0 while there is none.
func (x *Index) Revision(class string) uint64 {
	if f := x.free[class]; f != nil {
		return f.revision
	}
	return 0
}

// KeptFor yields the volumes that are kept for a claim of this name, in no order.
func (x *Index) KeptFor(namespace, name string) iter.Seq[*object.PersistentVolume] {
	return maps.Values(x.keptFor[claimName{namespace, name}])
}

// follow updates the index for an object that changed; nil for none.
func (x *Index) follow(was, is object.Object) {
	if old, _ := was.(*object.PersistentVolume); old != nil {
		x.set(old, false)
	}
	if now, _ := is.(*object.PersistentVolume); now != nil {
		x.set(now, true)
	}
}

// set adds the volume to those that claims may get, or removes it if listed is false.
func (x *Index) set(v *object.PersistentVolume, listed bool) {
	if v.Claim != nil {
		x.keep(v, listed)
		return
	}
	f := x.free[v.Class]
	if f == nil {
		f = &Volumes{
			byName: map[string]*object.PersistentVolume{}, pinned: map[Pin]*volumeList{},
			many: map[Pin]*volumeList{}, keyUses: map[string]int{}, numbered: map[string]*numberedPins{},
		}
		x.free[v.Class] = f
	}
	f.set(v, listed)
	x.numberPins(f, v, listed)
	if len(f.byName) == 0 {
		delete(x.free, v.Class)
	}
	x.revision++
	f.revision = x.revision
}

// keep adds the volume to those that are kept for its claim, or removes it.
func (x *Index) keep(v *object.PersistentVolume, listed bool) {
	at := claimName{v.Claim.Namespace, v.Claim.Name}
	switch list := x.keptFor[at]; {
	case listed && list == nil:
		x.keptFor[at] = map[string]*object.PersistentVolume{v.Name: v}
	case listed:
		list[v.Name] = v
	default:
		if delete(list, v.Name); len(list) == 0 {
			delete(x.keptFor, at)
		}
	}
}

// check compares the volumes with those of a fresh table.
func (x *Index) check(fresh *Index) error {
	if !maps.EqualFunc(x.keptFor, fresh.keptFor, maps.Equal) {
		return fmt.Errorf("volumes kept for %d claims, rebuilt for %d", len(x.keptFor), len(fresh.keptFor))
	}
	if len(x.free) != len(fresh.free) {
		return fmt.Errorf("free volumes of %d classes, rebuilt of %d", len(x.free), len(fresh.free))
	}
	for class, f := range x.free { // any order: an error is an error
		if err := f.check(fresh.InClass(class)); err != nil {
			return fmt.Errorf("free volumes of class %q: %w", class, err)
		}
	}
	return x.checkColumns()
}

// check compares the volumes and what pins them with those of a fresh table.
func (f *Volumes) check(fresh *Volumes) error {
	if !maps.Equal(f.byName, fresh.byName) || !slices.Equal(f.Unpinned(), fresh.Unpinned()) || !slices.Equal(f.keys, fresh.keys) || len(f.many) != len(fresh.many) || len(f.pinned) != len(fresh.pinned) {
		return fmt.Errorf("%d, %d unpinned, pins %v by %v, rebuilt %d, %d, %v by %v", len(f.byName), len(f.unpinned.volumes), len(f.pinned), f.keys,
			len(fresh.byName), len(fresh.unpinned.volumes), len(fresh.pinned), fresh.keys)
	}
	for at, list := range fresh.pinned { // any order: an error is an error
		if kept := f.pinned[at]; kept == nil || !slices.Equal(kept.bySize(), list.bySize()) || (f.many[at] == kept) != (fresh.many[at] == list) {
			return fmt.Errorf("label %s=%s pins %v, rebuilt %d volumes", at.Key, at.Value, kept, len(list.volumes))
		}
	}
	return nil
}
