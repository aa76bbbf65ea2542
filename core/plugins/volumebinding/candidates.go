package volumebinding

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// candidates are the volumes that suit a claim but for the node.
type candidates struct {
	preBound []*object.PersistentVolume // for this very claim
	free     []*object.PersistentVolume // the smallest first
	// pinned are the places in free of the volumes that a label pins, unpinned
	// those of the others, ascending.
	pinned   map[pinnedTo][]int
	keys     []string
	unpinned []int
}

type pinnedTo struct{ key, value string }

// suitable finds the volumes of the claim's class that suit it.
func suitable(t *table.Table, c *object.PersistentVolumeClaim) *candidates {
	found := &candidates{preBound: preBound(t, c), pinned: map[pinnedTo][]int{}}
	for v := range t.FreeVolumes(c.Class) {
		if suits(v, c) && v.Available && offers(v, c) {
			found.free = append(found.free, v)
		}
	}
	slices.SortFunc(found.free, bySize)
	for i, v := range found.free {
		found.pin(i, v.Pin)
	}
	return found
}

// preBound finds those that are kept for the claim, the smallest first.
func preBound(t *table.Table, c *object.PersistentVolumeClaim) (list []*object.PersistentVolume) {
	for v := range t.VolumesKept(c.Namespace, c.Name) {
		if v.Keeps(c) && v.Class == c.Class && suits(v, c) {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, bySize)
	return list
}

func bySize(a, b *object.PersistentVolume) int {
	return cmp.Or(cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Name, b.Name))
}

// suits: the volume is large enough, and of the mode and attributes.
func suits(v *object.PersistentVolume, c *object.PersistentVolumeClaim) bool {
	return v.Bytes >= c.Bytes && v.VolumeMode == c.VolumeMode && v.Attributes == c.Attributes && !v.Terminating
}

// offers: the claim's selector picks the volume, which has all the modes that
// the claim asks for.
func offers(v *object.PersistentVolume, c *object.PersistentVolumeClaim) bool {
	if c.Selector != nil && !c.Selector.Matches(labelSet(v.Labels)) {
		return false
	}
	for _, m := range c.Modes {
		if !slices.Contains(v.Modes, m) {
			return false
		}
	}
	return true
}

func (f *candidates) pin(i int, to *object.LabelPin) {
	if to == nil {
		f.unpinned = append(f.unpinned, i)
		return
	}
	if !slices.Contains(f.keys, to.Key) {
		f.keys = append(f.keys, to.Key)
	}
	for _, value := range to.Values {
		at := pinnedTo{to.Key, value}
		f.pinned[at] = append(f.pinned[at], i)
	}
}

// on picks the volume for the claim on the node, nil for none: one that is pre-bound
// to it, if any is; else the smallest that nobody else of the pod has.
func (f *candidates) on(n *object.Node, taken []*object.PersistentVolume) *object.PersistentVolume {
	for _, v := range f.preBound {
		if slices.Contains(taken, v) {
			continue
		}
		if reaches(v.Nodes, n) {
			return v
		}
		return nil
	}
	best := f.first(f.unpinned, n, taken, len(f.free))
	for _, key := range f.keys {
		if value, ok := n.Labels[key]; ok {
			best = f.first(f.pinned[pinnedTo{key, value}], n, taken, best)
		}
	}
	if best == len(f.free) {
		return nil
	}
	return f.free[best]
}

// first is the first of the places, before the limit, whose volume the node
// reaches and is not taken; the limit if there is none.
func (f *candidates) first(places []int, n *object.Node, taken []*object.PersistentVolume, limit int) int {
	for _, i := range places {
		if i >= limit {
			break
		}
		if v := f.free[i]; reaches(v.Nodes, n) && !slices.Contains(taken, v) {
			return i
		}
	}
	return limit
}
