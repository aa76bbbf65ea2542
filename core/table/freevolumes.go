package table

import (
	"fmt"
	"iter"
	"maps"

	"github.com/berth-scheduler/berth/core/object"
)

// volumeChoices are the PersistentVolumes that claims may get: those that are free,
// and those that are kept for one claim.
type volumeChoices struct {
	free    map[string]*freeVolumes // by storage class
	keptFor map[objectName]map[string]*object.PersistentVolume
	// revision is the number of the last change of a free one.
	revision uint64
}

// freeVolumes are those of a storage class.
type freeVolumes struct {
	byName   map[string]*object.PersistentVolume
	revision uint64
}

func newVolumeChoices() volumeChoices {
	return volumeChoices{free: map[string]*freeVolumes{}, keptFor: map[objectName]map[string]*object.PersistentVolume{}}
}

// FreeVolumes yields the volumes of the storage class that are kept for no claim, in
// no order.
func (t *Table) FreeVolumes(class string) iter.Seq[*object.PersistentVolume] {
	if f := t.volumeChoices.free[class]; f != nil {
		return maps.Values(f.byName)
	}
	return func(func(*object.PersistentVolume) bool) {}
}

// FreeVolumeRevision changes whenever a free volume of the storage class comes,
// changes or goes. It is 0 while there is none.
func (t *Table) FreeVolumeRevision(class string) uint64 {
	if f := t.volumeChoices.free[class]; f != nil {
		return f.revision
	}
	return 0
}

// VolumesKept yields the volumes that are kept for a claim of this name, in no order.
func (t *Table) VolumesKept(namespace, name string) iter.Seq[*object.PersistentVolume] {
	return maps.Values(t.volumeChoices.keptFor[objectName{namespace, name}])
}

// follow takes in that a volume became another one; nil for none.
func (c *volumeChoices) follow(was, is *object.PersistentVolume) {
	if was != nil {
		c.set(was, false)
	}
	if is != nil {
		c.set(is, true)
	}
}

// set lists the volume, or takes it off.
func (c *volumeChoices) set(v *object.PersistentVolume, listed bool) {
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
		f = &freeVolumes{byName: map[string]*object.PersistentVolume{}}
		c.free[v.Class] = f
	}
	if c.revision++; listed {
		f.byName[v.Name] = v
	} else if delete(f.byName, v.Name); len(f.byName) == 0 {
		delete(c.free, v.Class)
	}
	f.revision = c.revision
}

// checkVolumeChoices compares the volumes that claims may get with all there are.
func (t *Table) checkVolumeChoices() error {
	listed := 0
	for _, o := range t.Objects(object.PersistentVolumes) {
		v, of := o.(*object.PersistentVolume), map[string]*object.PersistentVolume(nil)
		if v.Claim != nil {
			of = t.volumeChoices.keptFor[objectName{v.Claim.Namespace, v.Claim.Name}]
		} else if f := t.volumeChoices.free[v.Class]; f != nil {
			of = f.byName
		}
		if of[v.Name] != v {
			return fmt.Errorf("table: volume %s is not among those that claims may get", v.Name)
		}
	}
	for _, f := range t.volumeChoices.free { // any order: a sum
		listed += len(f.byName)
	}
	for _, list := range t.volumeChoices.keptFor { // any order: a sum
		listed += len(list)
	}
	if n := t.ObjectCount(object.PersistentVolumes); listed != n {
		return fmt.Errorf("table: claims may get %d volumes of %d", listed, n)
	}
	return nil
}
