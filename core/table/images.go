package table

import (
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// Image is a container image that some node has.
type Image struct {
	// Bytes is the size that the first node to report the image gave.
	Bytes int64
	nodes int
	// The rows stand in a sorted list while they are few, else in a set, of which
	// every row of the table takes a bit.
	few  []Row
	many RowSet
}

// Nodes returns the number of nodes that have the image.
func (i *Image) Nodes() int { return i.nodes }

// On reports whether the node at the row has the image.
func (i *Image) On(r Row) bool {
	if i.many != nil {
		return i.many.Has(r)
	}
	_, on := slices.BinarySearch(i.few, r)
	return on
}

// add records that the node at the row has the image; all is the number of rows.
func (i *Image) add(r Row, all int) {
	if i.On(r) {
		return
	}
	i.nodes++
	if i.many == nil && len(i.few) < 16+all/256 {
		at, _ := slices.BinarySearch(i.few, r)
		i.few = slices.Insert(i.few, at, r)
		return
	}
	if words := (all + 63) / 64; len(i.many) < words {
		i.many = append(i.many, make(RowSet, words-len(i.many))...)
	}
	for _, few := range i.few {
		i.many.Set(few, true)
	}
	i.few = nil
	i.many.Set(r, true)
}

// remove records that the node at the row no longer has the image.
func (i *Image) remove(r Row) {
	if !i.On(r) {
		return
	}
	i.nodes--
	if i.many != nil {
		i.many.Set(r, false)
		return
	}
	at, _ := slices.BinarySearch(i.few, r)
	i.few = slices.Delete(i.few, at, at+1)
}

// Image returns the image of the name, nil if no node has it.
func (t *Table) Image(name string) *Image { return t.images[name] }

// ImageRevision changes whenever an image appears on or leaves a node, or the
// number of nodes changes.
func (t *Table) ImageRevision() uint64 { return t.imageRevision }

func (t *Table) setImages(r Row, old, now *object.Node) {
	if sameImages(old, now) {
		return
	}
	t.imageRevision++
	if old != nil {
		for _, img := range old.Images {
			for _, name := range img.Names {
				t.dropImage(name, r)
			}
		}
	}
	if now == nil {
		return
	}
	for _, img := range now.Images {
		for _, name := range img.Names {
			entry := t.images[name]
			if entry == nil {
				entry = &Image{Bytes: img.Bytes}
				t.images[name] = entry
			}
			entry.add(r, len(t.nodes))
		}
	}
}

func (t *Table) dropImage(name string, r Row) {
	entry := t.images[name]
	if entry == nil {
		return
	}
	if entry.remove(r); entry.nodes == 0 {
		delete(t.images, name)
	}
}

func sameImages(a, b *object.Node) bool {
	var x, y []object.Image
	if a != nil {
		x = a.Images
	}
	if b != nil {
		y = b.Images
	}
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i].Bytes != y[i].Bytes || len(x[i].Names) != len(y[i].Names) {
			return false
		}
		for j := range x[i].Names {
			if x[i].Names[j] != y[i].Names[j] {
				return false
			}
		}
	}
	return true
}
