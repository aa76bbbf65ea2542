package table

import "github.com/berth-scheduler/berth/core/object"

// Image is a container image that some node has.
type Image struct {
	// Bytes is the size that the first node to report the image gave.
	Bytes int64
	rows  map[Row]struct{}
}

// Nodes is the number of nodes that have the image.
func (i *Image) Nodes() int { return len(i.rows) }

// On tells whether the node at the row has the image.
func (i *Image) On(r Row) bool {
	_, ok := i.rows[r]
	return ok
}

// Image returns the image of that name, nil if no node has it.
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
				entry = &Image{Bytes: img.Bytes, rows: map[Row]struct{}{}}
				t.images[name] = entry
			}
			entry.rows[r] = struct{}{}
		}
	}
}

func (t *Table) dropImage(name string, r Row) {
	entry := t.images[name]
	if entry == nil {
		return
	}
	delete(entry.rows, r)
	if len(entry.rows) == 0 {
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
