package queue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// However entries come, go and change, mostly in the order in which they
// leave: the least is at the head, each is where it says, and the run takes no
// more room than it has entries, twice, and some.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := heap{less: func(a, b *Entry) bool { return a.Sequence < b.Sequence }}
		var in []*Entry
		next := uint64(1 << 20)
		draw := func(late bool) uint64 {
			if next += 2; late {
				return next - uint64(2*rapid.IntRange(0, 1000).Draw(t, "late")) - 1
			}
			return next
		}
		any := func() int { return rapid.IntRange(0, len(in)-1).Draw(t, "which") }
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			for range rapid.IntRange(0, 60).Draw(t, "pushes") {
				e := &Entry{index: nowhere}
				e.Sequence = draw(rapid.IntRange(0, 9).Draw(t, "kind") == 0)
				h.push(e)
				in = append(in, e)
			}
			for range rapid.IntRange(0, min(60, len(in))).Draw(t, "others") {
				switch rapid.IntRange(0, 5).Draw(t, "what") {
				case 0:
					i := any()
					h.remove(in[i])
					in = slices.Delete(in, i, i+1)
				case 1:
					e := in[any()]
					e.Sequence = draw(true)
					h.fix(e)
				default:
					e := h.head()
					h.remove(e)
					in = slices.DeleteFunc(in, func(o *Entry) bool { return o == e })
				}
				checkHeap(t, &h, in)
			}
			checkHeap(t, &h, in)
		}
	})
}

func checkHeap(t *rapid.T, h *heap, in []*Entry) {
	var least *Entry
	for _, e := range in {
		if least == nil || e.Sequence < least.Sequence {
			least = e
		}
		if !h.has(e) {
			t.Fatalf("entry %d is not at %d", e.Sequence, e.index)
		}
	}
	if head := h.head(); head != least && (head == nil || least == nil || head.Sequence != least.Sequence) {
		t.Fatalf("head %v, want %v", head, least)
	}
	listed := 0
	for range h.all() {
		listed++
	}
	if h.len() != len(in) || listed != len(in) {
		t.Fatalf("length %d, %d listed, want %d", h.len(), listed, len(in))
	}
	if most := 64 + 2*len(in); len(h.run) > most {
		t.Fatalf("the run has room for %d entries, want at most %d for %d", len(h.run), most, len(in))
	}
}
