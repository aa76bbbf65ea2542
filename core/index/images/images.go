// Package images keeps which nodes of a table have which container images.
package images

import (
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Image is a container image that at least one node has.
type Image struct {
	// Bytes is the size that the first node to report the image gave.
	Bytes int64
	nodes int // number of nodes that have it
	// The rows are in a sorted list while they are few, else in a set with a bit for every
	// row of the table.
	few  []table.Row
	many table.RowSet
}

// Nodes returns the number of nodes that have the image.
func (i *Image) Nodes() int { return i.nodes }

// On reports whether the node at the row has the image.
func (i *Image) On(r table.Row) bool {
	if i.many != nil {
		return i.many.Has(r)
	}
	_, on := slices.BinarySearch(i.few, r)
	return on
}

// add records that the node at the row has the image; all is the number of rows of the
// table.
func (i *Image) add(r table.Row, all int) {
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
		i.many = append(i.many, make(table.RowSet, words-len(i.many))...)
	}
	for _, few := range i.few {
		i.many.Set(few, true)
	}
	i.few = nil
	i.many.Set(r, true)
}

// remove takes the row out of the nodes with the image.
func (i *Image) remove(r table.Row) {
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

// Index keeps the images by name. An image with several names is there under each.
type Index struct {
	table    *table.Table
	byName   map[string]*Image
	revision uint64 // see Revision
}

// index registers the Index, so that every table has one.
var index = table.Follow(func(t *table.Table) table.Follower[*Index] {
	x := &Index{table: t, byName: map[string]*Image{}, revision: t.Epoch()}
	return table.Follower[*Index]{Index: x, NodeChanged: x.follow, Check: x.check}
})

// Of returns the table's index of its nodes' images.
func Of(t *table.Table) *Index { return index.Of(t) }

// Image returns the image with the name, nil if no node has it. It is the index's own. Read
// only.
func (x *Index) Image(name string) *Image { return x.byName[name] }

// Revision returns a number that changes whenever an image is added to or removed from a
// node, or the number of nodes changes.
func (x *Index) Revision() uint64 { return x.revision }

// follow updates the index for the row's node, which changed from was to is; nil stands for
// no node.
func (x *Index) follow(r table.Row, was, is *object.Node) {
	if (was == nil) != (is == nil) {
		x.revision++
	}
	if sameImages(was, is) {
		return
	}
	x.revision++
	if was != nil {
		for _, img := range was.Images {
			for _, name := range img.Names {
				x.remove(name, r)
			}
		}
	}
	if is == nil {
		return
	}
	for _, img := range is.Images {
		for _, name := range img.Names {
			entry := x.byName[name]
			if entry == nil {
				entry = &Image{Bytes: img.Bytes}
				x.byName[name] = entry
			}
			entry.add(r, x.table.Rows())
		}
	}
}

// remove takes the row out of the nodes with the image of that name.
func (x *Index) remove(name string, r table.Row) {
	entry := x.byName[name]
	if entry == nil {
		return
	}
	if entry.remove(r); entry.nodes == 0 {
		delete(x.byName, name)
	}
}

// check returns an error if the images differ from those of a fresh table. Sizes are left
// out: an image keeps the size that its first reporter gave, which depends on history.
func (x *Index) check(fresh *Index) error {
	if len(x.byName) != len(fresh.byName) {
		return fmt.Errorf("%d images, rebuilt %d", len(x.byName), len(fresh.byName))
	}
	for name, img := range x.byName { // any order: an error is an error
		other := fresh.Image(name)
		if other == nil || other.Nodes() != img.Nodes() {
			return fmt.Errorf("image %q is on %d nodes, rebuilt differs", name, img.Nodes())
		}
		for _, r := range x.table.All() {
			if img.On(r) != other.On(r) {
				return fmt.Errorf("image %q on node %q: %v, rebuilt differs", name, x.table.Name(r), img.On(r))
			}
		}
	}
	return nil
}

// sameImages reports whether two nodes, which may be nil, report the same images, with equal
// sizes and names, in the same order.
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
