package images

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// An image is on the nodes that report it, be they few or many.
func TestImagesOnNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb, on := table.New(), map[string]bool{}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			name := fmt.Sprint("n", rapid.IntRange(0, 60).Draw(t, "node"))
			switch rapid.IntRange(0, 5).Draw(t, "change") {
			case 0:
				tb.RemoveNode(name)
				delete(on, name)
			case 1:
				tb.SetNode(&object.Node{Name: name})
				delete(on, name)
			default:
				tb.SetNode(&object.Node{Name: name, Images: []object.Image{{Names: []string{"x:1", "x:1"}, Bytes: 7}}})
				on[name] = true
			}
			image := Of(tb).Image("x:1")
			if image == nil {
				image = &Image{}
			}
			if image.Nodes() != len(on) {
				t.Fatalf("on %d nodes, want %d", image.Nodes(), len(on))
			}
			for _, r := range tb.All() {
				if image.On(r) != on[tb.Name(r)] {
					t.Fatalf("node %s has it: %v, want %v", tb.Name(r), image.On(r), on[tb.Name(r)])
				}
			}
		}
	})
}

// An image keeps the size that its first reporter gave, until no node has it.
func TestImageSizes(t *testing.T) {
	with := func(name string, bytes int64) *object.Node {
		n := &object.Node{Name: name}
		n.Images = []object.Image{{Names: []string{"x:1", "x@sha"}, Bytes: bytes}}
		return n
	}
	tb := table.New()
	steps := []struct {
		do    func()
		bytes int64 // 0: nobody has it
		nodes int
		moved bool // the revision of images
	}{
		{func() { tb.SetNode(with("a", 10)) }, 10, 1, true},
		{func() { tb.SetNode(with("b", 20)) }, 10, 2, true},
		{func() { tb.SetNode(with("b", 20)) }, 10, 2, false},
		{func() { tb.AddPod(&object.Pod{UID: "p"}, "b") }, 10, 2, false},
		{func() { tb.RemoveNode("a") }, 10, 1, true},
		{func() { tb.SetNode(&object.Node{Name: "c"}) }, 10, 1, true}, // it counts nodes, too
		{func() { tb.SetNode(with("b", 30)) }, 30, 1, true},
		{func() { tb.SetNode(&object.Node{Name: "b"}) }, 0, 0, true},
	}
	for i, s := range steps {
		before := Of(tb).Revision()
		s.do()
		img := Of(tb).Image("x:1")
		if (Of(tb).Revision() != before) != s.moved {
			t.Errorf("step %d: revision went from %d to %d", i, before, Of(tb).Revision())
		}
		if img == nil && s.bytes != 0 || img != nil && (img.Bytes != s.bytes || img.Nodes() != s.nodes) {
			t.Errorf("step %d: %+v, want %d bytes on %d nodes", i, img, s.bytes, s.nodes)
		}
	}
}

// TestManyImages: a node may list 50,000 images, others each time, and leaves nothing
// of them behind.
func TestManyImages(t *testing.T) {
	tab := table.New()
	for turn := range 3 {
		n := &object.Node{Name: "a"}
		for i := range 50_000 {
			n.Images = append(n.Images, object.Image{Names: []string{fmt.Sprint("image-", (i+turn*25_000)%100_000)}, Bytes: int64(i)})
		}
		tab.SetNode(n)
		if n := len(Of(tab).byName); n > 50_000 {
			t.Errorf("%d images", n)
		}
		if on := Of(tab).Image(n.Images[0].Names[0]); on == nil || on.Nodes() != 1 {
			t.Errorf("an image of the node: %+v", on)
		}
	}
	if err := tab.Check(); err != nil {
		t.Error(err)
	}
	tab.RemoveNode("a")
	if n := len(Of(tab).byName); n > 0 {
		t.Errorf("%d images of no node", n)
	}
}
