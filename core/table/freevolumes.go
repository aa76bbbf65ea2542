package table

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// volumesForClaims are the PersistentVolumes that claims may get: those that are free,
// and those that are kept for one claim.
type volumesForClaims struct {
	free    map[string]*FreeVolumes // by storage class
	keptFor map[objectName]map[string]*object.PersistentVolume
	// revision is the number of the last change of a free one.
	revision uint64
	columns  map[string]*PinColumn // by label
}

// FreeVolumes are the volumes of a storage class that are kept for no claim, by the
// labels that pin them to nodes.
type FreeVolumes struct {
	byName   map[string]*object.PersistentVolume
	revision uint64
	unpinned volumeList
	pinned   map[VolumePin]*volumeList
	many     map[VolumePin]*volumeList // those with more than FewVolumes
	keys     []string                  // of the pins, sorted
	keyUses  map[string]int
	numbered map[string]*numberedPins // by label
}

// VolumePin is a label of the nodes that a volume is pinned to.
type VolumePin struct{ Key, Value string }

// FewVolumes is the most that Pinned returns of one pin in passing.
const FewVolumes = 8

// Keys returns the labels that pin volumes, sorted.
func (f *FreeVolumes) Keys() []string { return f.keys }

// Unpinned returns the volumes that no label pins, the smallest first.
func (f *FreeVolumes) Unpinned() []*object.PersistentVolume { return f.unpinned.bySize() }

// Pinned returns the volumes that the label pins, the smallest first, where they are few.
// It may be called concurrently.
func (f *FreeVolumes) Pinned(at VolumePin) []*object.PersistentVolume {
	if list := f.pinned[at]; list != nil && len(list.volumes) <= FewVolumes {
		return list.volumes
	}
	return nil
}

// ManyPinned yields the pins with more volumes than that, and these, the smallest
// first. The pins come in no order.
func (f *FreeVolumes) ManyPinned() iter.Seq2[VolumePin, []*object.PersistentVolume] {
	return func(yield func(VolumePin, []*object.PersistentVolume) bool) {
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
	if !l.sorted && len(l.volumes) >= FewVolumes {
		l.volumes = append(l.volumes, v)
		return
	}
	at, _ := slices.BinarySearchFunc(l.volumes, v, (*object.PersistentVolume).CompareSize)
	l.volumes = slices.Insert(l.volumes, at, v)
}

func (l *volumeList) remove(v *object.PersistentVolume) {
	at := slices.Index(l.volumes, v)
	if l.volumes = slices.Delete(l.volumes, at, at+1); len(l.volumes) <= FewVolumes {
		l.sorted = false
		slices.SortFunc(l.volumes, (*object.PersistentVolume).CompareSize)
	}
}

// set lists the volume, or takes it off.
func (f *FreeVolumes) set(v *object.PersistentVolume, listed bool) {
	if listed {
		f.byName[v.Name] = v
	} else {
		delete(f.byName, v.Name)
	}
	switch {
	case v.Pin != nil:
		f.countKey(v.Pin.Key, listed)
		for _, value := range v.Pin.Values {
			f.setPinned(VolumePin{v.Pin.Key, value}, v, listed)
		}
	case listed:
		f.unpinned.add(v)
	default:
		f.unpinned.remove(v)
	}
}

func (f *FreeVolumes) setPinned(at VolumePin, v *object.PersistentVolume, listed bool) {
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
	if len(list.volumes) > FewVolumes {
		f.many[at] = list
	} else {
		delete(f.many, at)
	}
	if len(list.volumes) == 0 {
		delete(f.pinned, at)
	}
}

// countKey counts a volume more that the label pins, or one less.
func (f *FreeVolumes) countKey(key string, more bool) {
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

func newVolumesForClaims() volumesForClaims {
	return volumesForClaims{free: map[string]*FreeVolumes{}, keptFor: map[objectName]map[string]*object.PersistentVolume{}, columns: map[string]*PinColumn{}}
}

// FreeVolumes returns the volumes of the storage class that are kept for no claim. They are
// valid while FreeVolumeRevision stands.
func (t *Table) FreeVolumes(class string) *FreeVolumes {
	if f := t.volumesForClaims.free[class]; f != nil {
		return f
	}
	return &FreeVolumes{}
}

// FreeVolumeRevision changes whenever a free volume of the storage class comes,
// changes or goes. It is 0 while there is none.
func (t *Table) FreeVolumeRevision(class string) uint64 {
	if f := t.volumesForClaims.free[class]; f != nil {
		return f.revision
	}
	return 0
}

// VolumesKept yields the volumes that are kept for a claim of this name, in no order.
func (t *Table) VolumesKept(namespace, name string) iter.Seq[*object.PersistentVolume] {
	return maps.Values(t.volumesForClaims.keptFor[objectName{namespace, name}])
}

// followForClaims updates the volumes that claims may get for a volume that changed from
// was to is; nil for none.
func (t *Table) followForClaims(was, is *object.PersistentVolume) {
	if was != nil {
		t.setForClaims(was, false)
	}
	if is != nil {
		t.setForClaims(is, true)
	}
}

// setForClaims adds the volume to those that claims may get, or removes it if listed is
// false.
func (t *Table) setForClaims(v *object.PersistentVolume, listed bool) {
	c := &t.volumesForClaims
	if r := v.Claim; r != nil {
		at := objectName{r.Namespace, r.Name}
		switch list := c.keptFor[at]; {
		case listed && list == nil:
			c.keptFor[at] = map[string]*object.PersistentVolume{v.Name: v}
		case listed:
			list[v.Name] = v
		default:
			if delete(list, v.Name); len(list) == 0 {
				delete(c.keptFor, at)
			}
		}
		return
	}
	f := c.free[v.Class]
	if f == nil {
		f = &FreeVolumes{
			byName: map[string]*object.PersistentVolume{}, pinned: map[VolumePin]*volumeList{},
			many: map[VolumePin]*volumeList{}, keyUses: map[string]int{}, numbered: map[string]*numberedPins{},
		}
		c.free[v.Class] = f
	}
	c.revision++
	f.set(v, listed)
	t.numberPins(f, v, listed)
	if len(f.byName) == 0 {
		delete(c.free, v.Class)
	}
	f.revision = c.revision
}

// checkVolumesForClaims compares the volumes that claims may get with all there are.
func (t *Table) checkVolumesForClaims() error {
	listed := 0
	for _, o := range t.Objects().List(object.PersistentVolumes) {
		v, of := o.(*object.PersistentVolume), map[string]*object.PersistentVolume(nil)
		if v.Claim != nil {
			of = t.volumesForClaims.keptFor[objectName{v.Claim.Namespace, v.Claim.Name}]
		} else if f := t.volumesForClaims.free[v.Class]; f != nil {
			of = f.byName
		}
		if of[v.Name] != v {
			return fmt.Errorf("table: volume %s is not among those that claims may get", v.Name)
		}
	}
	for class, f := range t.volumesForClaims.free { // any order: a sum, and an error is an error
		listed += len(f.byName)
		if err := f.check(); err != nil {
			return fmt.Errorf("table: free volumes of class %q: %w", class, err)
		}
	}
	for _, list := range t.volumesForClaims.keptFor { // any order: a sum
		listed += len(list)
	}
	if n := len(t.Objects().List(object.PersistentVolumes)); listed != n {
		return fmt.Errorf("table: claims may get %d volumes of %d", listed, n)
	}
	return t.checkPinColumns()
}

// check compares what pins the volumes with a look at each of them.
func (f *FreeVolumes) check() error {
	fresh := FreeVolumes{
		byName: map[string]*object.PersistentVolume{}, pinned: map[VolumePin]*volumeList{},
		many: map[VolumePin]*volumeList{}, keyUses: map[string]int{},
	}
	for _, v := range f.byName { // any order: they are sorted
		fresh.set(v, true)
	}
	if !slices.Equal(f.Unpinned(), fresh.Unpinned()) || !slices.Equal(f.keys, fresh.keys) || len(f.many) != len(fresh.many) || len(f.pinned) != len(fresh.pinned) {
		return fmt.Errorf("%d unpinned, pins %v by %v, recounted %d, %v by %v", len(f.unpinned.volumes), len(f.pinned), f.keys,
			len(fresh.unpinned.volumes), len(fresh.pinned), fresh.keys)
	}
	for at, list := range fresh.pinned { // any order: an error is an error
		if kept := f.pinned[at]; kept == nil || !slices.Equal(kept.bySize(), list.bySize()) || (f.many[at] == kept) != (fresh.many[at] == list) {
			return fmt.Errorf("label %s=%s pins %v, recounted %d volumes", at.Key, at.Value, kept, len(list.volumes))
		}
	}
	return nil
}
