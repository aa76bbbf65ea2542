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

// Index lists all PersistentVolumes: those without a claimRef by storage class, the others by
// the claim that the claimRef names.
type Index struct {
	free    map[string]*Volumes                               // volumes without a claimRef, by storage class
	keptFor map[claimName]map[string]*object.PersistentVolume // volumes with a claimRef, by claim, then name
	// revision grows with each change of a volume without a claimRef. It starts at Table.Epoch.
	revision uint64
}

// claimName identifies a PersistentVolumeClaim.
type claimName struct{ namespace, name string }

// index registers the Index, so that every table has one.
var index = table.Follow(func(t *table.Table) table.Follower[*Index] {
	x := &Index{
		free: map[string]*Volumes{}, keptFor: map[claimName]map[string]*object.PersistentVolume{},
		revision: t.Epoch(),
	}
	return table.Follower[*Index]{Index: x, ObjectChanged: x.follow, Check: x.check}
})

// Of returns the table's index of PersistentVolumes.
func Of(t *table.Table) *Index { return index.Of(t) }

// Volumes are the volumes of one storage class that have no claimRef. Those whose node
// affinity requires a label are listed by the values of it that are accepted (Pin).
type Volumes struct {
	byName   map[string]*object.PersistentVolume
	revision uint64              // Index.revision at the last change of one of them
	unpinned volumeList          // volumes without a pin
	pinned   map[Pin]*volumeList // a volume is listed under each of its pins
	many     map[Pin]*volumeList // the lists in pinned with more than Few volumes
	keys     []string            // label keys of the pins, sorted
	keyUses  map[string]int      // number of pinned volumes by label key
}

// Pin is a node label, key and value, by which the volumes that accept it are listed. A
// volume whose node affinity requires one of several values of a label, such as the
// hostname, has a Pin for each. Only pods on nodes with one of these labels can use it.
type Pin struct{ Key, Value string }

// Few is the largest number of volumes for which Pinned returns the list. Longer ones come
// from ManyPinned.
const Few = 8

// Keys returns the label keys by which volumes are pinned, sorted. Read only.
func (f *Volumes) Keys() []string { return f.keys }

// Unpinned returns the volumes without a Pin, the smallest first. It may sort, and must not be
// called concurrently.
func (f *Volumes) Unpinned() []*object.PersistentVolume { return f.unpinned.bySize() }

// Pinned returns the volumes that have the Pin, the smallest first; nil if they are more
// than Few. It may be called concurrently.
func (f *Volumes) Pinned(at Pin) []*object.PersistentVolume {
	if list := f.pinned[at]; list != nil && len(list.volumes) <= Few {
		return list.volumes
	}
	return nil
}

// ManyPinned returns, in no order, the pins that more than Few volumes have, with those
// volumes, the smallest first. It sorts and must not be called concurrently.
func (f *Volumes) ManyPinned() iter.Seq2[Pin, []*object.PersistentVolume] {
	return func(yield func(Pin, []*object.PersistentVolume) bool) {
		for at, list := range f.many { // any order: the callers treat each by itself
			if !yield(at, list.bySize()) {
				return
			}
		}
	}
}

// volumeList lists volumes. Up to Few are always sorted, the smallest first; more are
// sorted when first asked for, and stay so.
type volumeList struct {
	volumes []*object.PersistentVolume
	sorted  bool // the list is sorted, even if it is long
}

// bySize sorts the list if need be and returns the volumes, the smallest first.
func (l *volumeList) bySize() []*object.PersistentVolume {
	if !l.sorted {
		slices.SortFunc(l.volumes, (*object.PersistentVolume).CompareSize)
		l.sorted = true
	}
	return l.volumes
}

// add adds a volume that is not in the list.
func (l *volumeList) add(v *object.PersistentVolume) {
	if !l.sorted && len(l.volumes) >= Few {
		l.volumes = append(l.volumes, v)
		return
	}
	at, _ := slices.BinarySearchFunc(l.volumes, v, (*object.PersistentVolume).CompareSize)
	l.volumes = slices.Insert(l.volumes, at, v)
}

// remove removes a volume that is in the list; it panics for another pointer.
func (l *volumeList) remove(v *object.PersistentVolume) {
	at := slices.Index(l.volumes, v)
	if l.volumes = slices.Delete(l.volumes, at, at+1); len(l.volumes) <= Few {
		l.sorted = false
		slices.SortFunc(l.volumes, (*object.PersistentVolume).CompareSize)
	}
}

// set adds a volume of the class, of a name that is not listed, to the lists. If add is
// false it removes the volume, which must be the pointer that was added.
func (f *Volumes) set(v *object.PersistentVolume, add bool) {
	if add {
		f.byName[v.Name] = v
	} else {
		delete(f.byName, v.Name)
	}
	switch {
	case v.Pin != nil:
		f.countKey(v.Pin.Key, add)
		for _, value := range v.Pin.Values {
			f.setPinned(Pin{v.Pin.Key, value}, v, add)
		}
	case add:
		f.unpinned.add(v)
	default:
		f.unpinned.remove(v)
	}
}

// setPinned adds the volume to the list of the pin. If add is false it removes the volume,
// which must be the pointer that was added.
func (f *Volumes) setPinned(at Pin, v *object.PersistentVolume, add bool) {
	list := f.pinned[at]
	if list == nil {
		list = &volumeList{}
		f.pinned[at] = list
	}
	if add {
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

// countKey adds one to the number of volumes pinned by the label key. If add is false it
// subtracts one. It keeps keys up to date.
func (f *Volumes) countKey(key string, add bool) {
	at, known := slices.BinarySearch(f.keys, key)
	if add {
		if f.keyUses[key]++; !known {
			f.keys = slices.Insert(slices.Clone(f.keys), at, key)
		}
	} else if f.keyUses[key]--; f.keyUses[key] == 0 {
		delete(f.keyUses, key)
		f.keys = slices.Delete(slices.Clone(f.keys), at, at+1)
	}
}

// InClass returns the volumes of the storage class that have no claimRef, never nil. They
// are valid while the Revision of the class stays the same.
func (x *Index) InClass(class string) *Volumes {
	if f := x.free[class]; f != nil {
		return f
	}
	return &Volumes{}
}

// Revision returns a number that changes whenever a volume of the storage class without a
// claimRef is added, changed or removed. It is 0 while there is none.
func (x *Index) Revision(class string) uint64 {
	if f := x.free[class]; f != nil {
		return f.revision
	}
	return 0
}

// KeptFor returns the volumes whose claimRef has this namespace and name, whatever its UID, in
// no order.
func (x *Index) KeptFor(namespace, name string) iter.Seq[*object.PersistentVolume] {
	return maps.Values(x.keptFor[claimName{namespace, name}])
}

// follow updates the index for an object that was added, changed or removed; nil stands for
// none. Only PersistentVolumes matter.
func (x *Index) follow(was, is object.Object) {
	if old, _ := was.(*object.PersistentVolume); old != nil {
		x.set(old, false)
	}
	if now, _ := is.(*object.PersistentVolume); now != nil {
		x.set(now, true)
	}
}

// set adds a volume, of a name that is not listed, to the lists of the index. If add is
// false it removes the volume, which must be the pointer that was added.
func (x *Index) set(v *object.PersistentVolume, add bool) {
	if v.Claim != nil {
		x.keep(v, add)
		return
	}
	f := x.free[v.Class]
	if f == nil {
		f = &Volumes{
			byName: map[string]*object.PersistentVolume{}, pinned: map[Pin]*volumeList{},
			many: map[Pin]*volumeList{}, keyUses: map[string]int{},
		}
		x.free[v.Class] = f
	}
	f.set(v, add)
	if len(f.byName) == 0 {
		delete(x.free, v.Class)
	}
	x.revision++
	f.revision = x.revision
}

// keep adds a volume with a claimRef to those of its claim. If add is false it removes the
// volume of that name.
func (x *Index) keep(v *object.PersistentVolume, add bool) {
	at := claimName{v.Claim.Namespace, v.Claim.Name}
	switch list := x.keptFor[at]; {
	case add && list == nil:
		x.keptFor[at] = map[string]*object.PersistentVolume{v.Name: v}
	case add:
		list[v.Name] = v
	default:
		if delete(list, v.Name); len(list) == 0 {
			delete(x.keptFor, at)
		}
	}
}

// check returns an error for the first difference from the index of a fresh table.
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
	return nil
}

// check returns an error if the volumes or their pins differ from those of fresh, which
// was made anew from the same table.
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
