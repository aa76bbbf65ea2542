package table

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
)

// An image is on the nodes that report it, be they few or many.
func TestImagesOnNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb, on := New(), map[string]bool{}
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
			image := tb.Image("x:1")
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
