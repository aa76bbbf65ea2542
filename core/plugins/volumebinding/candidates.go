package volumebinding

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/index/freevolumes"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// candidates holds the volumes that suit a claim on some node. Volumes that few share a
// pinning label with are found by the node's label.
type candidates struct {
	claim    *object.PersistentVolumeClaim
	preBound []*object.PersistentVolume // for this very claim
	all      *freevolumes.Volumes
	// unpinned are the volumes that suit and no label pins, many those by the labels
	// that pin many; the smallest first.
	unpinned []*object.PersistentVolume
	many     map[freevolumes.Pin][]*object.PersistentVolume
	pins     []pins
}

// pins are the volumes that one label pins.
type pins struct {
	freevolumes.Pins
	many map[int32][]*object.PersistentVolume // by the number of the label's value
}

// suitable finds the volumes of the claim's class that suit it.
// Of others of the pod's claims up to that many may be given one of them before.
func suitable(t *table.Table, c *object.PersistentVolumeClaim, others int) *candidates {
	found := &candidates{claim: c, preBound: preBound(t, c), all: freevolumes.Of(t).InClass(c.Class), many: map[freevolumes.Pin][]*object.PersistentVolume{}}
	found.unpinned = found.firstThatSuit(found.all.Unpinned(), others)
	for at, volumes := range found.all.ManyPinned() { // any order: each by itself
		found.many[at] = found.firstThatSuit(volumes, others)
	}
	for _, p := range found.all.Pins() {
		numbered := pins{Pins: p}
		for at, volumes := range found.many { // any order: each by itself
			if id := p.Number(at.Value); at.Key == p.Key && id != 0 {
				if numbered.many == nil {
					numbered.many = map[int32][]*object.PersistentVolume{}
				}
				numbered.many[id] = volumes
			}
		}
		found.pins = append(found.pins, numbered)
	}
	return found
}

// firstThatSuit returns the suitable ones of the volumes, which are sorted by size. It
// stops when more than others of them are usable by every node that reads the list: the
// pod's other claims cannot take all of these.
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

func (f *candidates) suiting(volumes []*object.PersistentVolume) (list []*object.PersistentVolume) {
	for _, v := range volumes {
		if f.suit(v) {
			list = append(list, v)
		}
	}
	return list
}

// suit reports whether the claim may get the free volume.
func (f *candidates) suit(v *object.PersistentVolume) bool {
	return suits(v, f.claim) && v.Available && offers(v, f.claim)
}

// preBound finds those that are kept for the claim, the smallest first.
func preBound(t *table.Table, c *object.PersistentVolumeClaim) (list []*object.PersistentVolume) {
	for v := range freevolumes.Of(t).KeptFor(c.Namespace, c.Name) {
		if v.Keeps(c) && v.Class == c.Class && suits(v, c) {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, (*object.PersistentVolume).CompareSize)
	return list
}

// suits reports whether the volume is large enough, of the claim's mode and attributes
// class, and not being deleted.
func suits(v *object.PersistentVolume, c *object.PersistentVolumeClaim) bool {
	return v.Bytes >= c.Bytes && v.VolumeMode == c.VolumeMode && v.Attributes == c.Attributes && !v.Terminating
}

// offers reports whether the claim's selector matches the volume, which has all access
// modes of the claim.
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

// on returns the volume for the claim on the node, nil for none: one that is pre-bound to
// it, if any is; else the smallest that no other claim of the pod takes.
func (f *candidates) on(r table.Row, n *object.Node, taken []*object.PersistentVolume) *object.PersistentVolume {
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
	for k := range f.pins {
		best = first(f.pinnedTo(&f.pins[k], r, n), n, taken, best)
	}
	return best
}

// surelyOn reports whether the node certainly has a volume for the claim. It looks only
// where that is cheap; false means unknown.
func (f *candidates) surelyOn(r table.Row, n *object.Node, taken []*object.PersistentVolume) bool {
	if len(f.preBound) > 0 {
		return false
	}
	if first(f.unpinned, n, taken, nil) != nil {
		return true
	}
	for k := range f.pins {
		if many := f.manyAt(&f.pins[k], r, n); len(many) > 0 && first(many, n, taken, nil) != nil {
			return true
		}
	}
	return false
}

// manyAt returns the volumes of a pin that has many, if the node has such a label.
func (f *candidates) manyAt(p *pins, r table.Row, n *object.Node) []*object.PersistentVolume {
	id, numbered := p.At(r)
	switch {
	case !numbered:
		return f.many[freevolumes.Pin{Key: p.Key, Value: n.Labels[p.Key]}]
	case id == 0 || p.many == nil:
		return nil
	}
	return p.many[id]
}

// pinnedTo returns the volumes that the label pins to the node and that suit, the smallest
// first.
func (f *candidates) pinnedTo(p *pins, r table.Row, n *object.Node) []*object.PersistentVolume {
	id, numbered := p.At(r)
	if !numbered {
		value, has := n.Labels[p.Key]
		if !has {
			return nil
		}
		at := freevolumes.Pin{Key: p.Key, Value: value}
		if many, known := f.many[at]; known {
			return many
		}
		return f.fewThatSuit(f.all.Pinned(at))
	}
	if id == 0 {
		return nil
	}
	if many, known := p.many[id]; known {
		return many
	}
	return f.fewThatSuit(p.Few(id))
}

// fewThatSuit returns the suitable ones of a few volumes.
func (f *candidates) fewThatSuit(few []*object.PersistentVolume) []*object.PersistentVolume {
	for i, v := range few {
		if !f.suit(v) {
			return append(few[:i:i], f.suiting(few[i+1:])...)
		}
	}
	return few
}

// first returns the smallest of the volumes that the node reaches and is not taken, if it is
// smaller than the best so far; else that. The volumes come by size.
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

// pinnedAlone reports whether the volume is usable by every node that has the label which
// pins it. A search by that label needs no other check.
func pinnedAlone(v *object.PersistentVolume) bool {
	if v.Pin == nil {
		return false
	}
	key, _, ok := v.Nodes.OneOf()
	return ok && key == v.Pin.Key
}
