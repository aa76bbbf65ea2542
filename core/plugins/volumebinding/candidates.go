package volumebinding

import (
	"slices"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// candidates are the volumes that suit a claim except for the node. Those that few share
// a label with are looked at where a node has it.
type candidates struct {
	claim    *object.PersistentVolumeClaim
	preBound []*object.PersistentVolume // for this very claim
	all      *table.FreeVolumes
	// unpinned are the volumes that suit and no label pins, many those by the labels
	// that pin many; the smallest first.
	unpinned []*object.PersistentVolume
	many     map[table.VolumePin][]*object.PersistentVolume
}

// suitable finds the volumes of the claim's class that suit it.
func suitable(t *table.Table, c *object.PersistentVolumeClaim) *candidates {
	found := &candidates{claim: c, preBound: preBound(t, c), all: t.FreeVolumes(c.Class), many: map[table.VolumePin][]*object.PersistentVolume{}}
	found.unpinned = found.suiting(found.all.Unpinned())
	for at, volumes := range found.all.ManyPinned() { // any order: each by itself
		found.many[at] = found.suiting(volumes)
	}
	return found
}

func (f *candidates) suiting(volumes []*object.PersistentVolume) (list []*object.PersistentVolume) {
	for _, v := range volumes {
		if f.suit(v) {
			list = append(list, v)
		}
	}
	return list
}

// suit tells whether the claim may get the free volume.
func (f *candidates) suit(v *object.PersistentVolume) bool {
	return suits(v, f.claim) && v.Available && offers(v, f.claim)
}

// preBound finds those that are kept for the claim, the smallest first.
func preBound(t *table.Table, c *object.PersistentVolumeClaim) (list []*object.PersistentVolume) {
	for v := range t.VolumesKept(c.Namespace, c.Name) {
		if v.Keeps(c) && v.Class == c.Class && suits(v, c) {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, (*object.PersistentVolume).CompareSize)
	return list
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
	best := first(f.unpinned, n, taken, nil)
	for _, key := range f.all.Keys() {
		if value, ok := n.Labels[key]; ok {
			best = first(f.pinnedTo(table.VolumePin{Key: key, Value: value}), n, taken, best)
		}
	}
	return best
}

// surelyOn tells that there is a volume for the claim on the node, whichever it is, where
// that is found out with little effort.
func (f *candidates) surelyOn(n *object.Node, taken []*object.PersistentVolume) bool {
	if len(f.preBound) > 0 {
		return false
	}
	if first(f.unpinned, n, taken, nil) != nil {
		return true
	}
	for _, key := range f.all.Keys() {
		if many := f.many[table.VolumePin{Key: key, Value: n.Labels[key]}]; len(many) > 0 && first(many, n, taken, nil) != nil {
			return true
		}
	}
	return false
}

// pinnedTo are the volumes that the label pins and that suit, the smallest first.
func (f *candidates) pinnedTo(at table.VolumePin) []*object.PersistentVolume {
	if many, known := f.many[at]; known {
		return many
	}
	few := f.all.Pinned(at)
	for i, v := range few {
		if !f.suit(v) {
			return append(few[:i:i], f.suiting(few[i+1:])...)
		}
	}
	return few
}

// first is the smallest of the volumes that the node reaches and is not taken, if it is
// smaller than the best so far; else that. The volumes come by size.
func first(volumes []*object.PersistentVolume, n *object.Node, taken []*object.PersistentVolume, best *object.PersistentVolume) *object.PersistentVolume {
	for _, v := range volumes {
		if best != nil && v.CompareSize(best) >= 0 {
			break
		}
		if reaches(v.Nodes, n) && !slices.Contains(taken, v) {
			return v
		}
	}
	return best
}
