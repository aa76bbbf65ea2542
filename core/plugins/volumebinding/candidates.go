package volumebinding

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/index/freevolumes"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// candidates holds the free PersistentVolumes that a claim may be bound to. Most local
// volumes have a node affinity to one value of a label (pinned); they are found by the
// node's value.
type candidates struct {
	claim    *object.PersistentVolumeClaim
	preBound []*object.PersistentVolume // reserved for this claim (claimRef); the smallest first
	all      *freevolumes.Volumes       // the free volumes of the claim's class
	// unpinned is the suitable volumes without a Pin. many is the suitable ones of each Pin that
	// more than freevolumes.Few volumes have. Both list the smallest first, as far as firstThatSuit
	// goes.
	unpinned []*object.PersistentVolume
	many     map[freevolumes.Pin][]*object.PersistentVolume
}

// suitable returns the candidates for the claim. others is the number of the pod's
// other claims, which may be given volumes before it.
func suitable(t *table.Table, c *object.PersistentVolumeClaim, others int) *candidates {
	found := &candidates{claim: c, preBound: preBound(t, c), all: freevolumes.Of(t).InClass(c.Class), many: map[freevolumes.Pin][]*object.PersistentVolume{}}
	found.unpinned = found.firstThatSuit(found.all.Unpinned(), others)
	for at, volumes := range found.all.ManyPinned() { // any order: each by itself
		found.many[at] = found.firstThatSuit(volumes, others)
	}
	return found
}

// firstThatSuit returns those of the volumes, which are sorted by size, to which the claim may be
// bound. It stops once more than others of them are usable by every node for which the list is
// read: the pod's other claims cannot take all of these.
func (f *candidates) firstThatSuit(volumes []*object.PersistentVolume, others int) (list []*object.PersistentVolume) {
	from, _ := slices.BinarySearchFunc(volumes, f.claim.Bytes, func(v *object.PersistentVolume, bytes int64) int { return cmp.Compare(v.Bytes, bytes) })
	for _, v := range volumes[from:] {
		if !f.suit(v) {
			continue
		}
		list = append(list, v)
		if v.Pin == nil && v.Nodes == nil || pinnedAlone(v) {
			if others--; others < 0 {
				break
			}
		}
	}
	return list
}

// suiting returns those of the volumes to which the claim may be bound, in order.
func (f *candidates) suiting(volumes []*object.PersistentVolume) (list []*object.PersistentVolume) {
	for _, v := range volumes {
		if f.suit(v) {
			list = append(list, v)
		}
	}
	return list
}

// suit reports whether the claim may be bound to the volume, on a node that reaches it.
func (f *candidates) suit(v *object.PersistentVolume) bool {
	return suits(v, f.claim) && v.Available && offers(v, f.claim)
}

// preBound returns the volumes reserved for the claim (by claimRef) that have its class and suit
// it, the smallest first.
func preBound(t *table.Table, c *object.PersistentVolumeClaim) (list []*object.PersistentVolume) {
	for v := range freevolumes.Of(t).KeptFor(c.Namespace, c.Name) {
		if v.Keeps(c) && v.Class == c.Class && suits(v, c) {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, (*object.PersistentVolume).CompareSize)
	return list
}

// suits reports whether the volume is large enough, has the claim's volume mode and
// attributes class, and is not being deleted.
func suits(v *object.PersistentVolume, c *object.PersistentVolumeClaim) bool {
	return v.Bytes >= c.Bytes && v.VolumeMode == c.VolumeMode && v.Attributes == c.Attributes && !v.Terminating
}

// offers reports whether the claim's selector matches the volume and the volume has all
// access modes of the claim.
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

// on returns the volume for the claim on the node; nil for none. It ignores volumes in taken. If
// some are reserved for the claim, it is the smallest of these, or nil if the node does not reach
// that one. Else it is the smallest suitable one that the node reaches.
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
		best = first(f.pinnedTo(key, n), n, taken, best)
	}
	return best
}

// pinnedTo returns the suitable volumes that are pinned to the node's value of the label key, the
// smallest first; nil if the node lacks the label.
func (f *candidates) pinnedTo(key string, n *object.Node) []*object.PersistentVolume {
	value, has := n.Labels[key]
	if !has {
		return nil
	}
	at := freevolumes.Pin{Key: key, Value: value}
	if many, known := f.many[at]; known {
		return many
	}
	return f.fewThatSuit(f.all.Pinned(at))
}

// fewThatSuit returns those of the volumes to which the claim may be bound, in order. It
// does not allocate if all are.
func (f *candidates) fewThatSuit(few []*object.PersistentVolume) []*object.PersistentVolume {
	for i, v := range few {
		if !f.suit(v) {
			return append(few[:i:i], f.suiting(few[i+1:])...)
		}
	}
	return few
}

// first returns the first of the volumes, sorted by size, that the node reaches and
// that is not in taken, if it is smaller than best or best is nil; else best.
func first(volumes []*object.PersistentVolume, n *object.Node, taken []*object.PersistentVolume, best *object.PersistentVolume) *object.PersistentVolume {
	for _, v := range volumes {
		if best != nil && v.CompareSize(best) >= 0 {
			break
		}
		if (pinnedAlone(v) || reaches(v.Nodes, n)) && !slices.Contains(taken, v) {
			return v
		}
	}
	return best
}

// pinnedAlone reports whether the volume is usable by every node that has the label and one of the
// values which pin it. A search by that label needs no other check.
func pinnedAlone(v *object.PersistentVolume) bool {
	if v.Pin == nil {
		return false
	}
	key, _, ok := v.Nodes.OneOf()
	return ok && key == v.Pin.Key
}
