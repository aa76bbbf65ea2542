package queue

import (
	stdheap "container/heap"
	"iter"
	"slices"
)

// heap is a priority queue whose entries know their index.
type heap struct {
	less    func(a, b *Entry) bool
	entries []*Entry
}

// nowhere is the Entry.index of an entry that is in no heap and in no set of a place.
const nowhere = -1

// len returns the number of entries.
func (h *heap) len() int { return len(h.entries) }

// head returns the least entry without removing it, nil if there is none.
func (h *heap) head() *Entry {
	if len(h.entries) == 0 {
		return nil
	}
	return h.entries[0]
}

// push adds an entry that is in no heap.
func (h *heap) push(e *Entry) { stdheap.Push((*ordered)(h), e) }

// remove removes an entry of this heap.
func (h *heap) remove(e *Entry) { stdheap.Remove((*ordered)(h), e.index) }

// fix moves the entry to its right place in the order, after its sort key changed.
func (h *heap) fix(e *Entry) { stdheap.Fix((*ordered)(h), e.index) }

// sortAnew sorts the entries again after the order of less changed.
func (h *heap) sortAnew() { stdheap.Init((*ordered)(h)) }

// all returns the entries, in no order.
func (h *heap) all() iter.Seq[*Entry] { return slices.Values(h.entries) }

// has reports whether the entry is in this heap, at the index that the entry itself keeps.
// It is for checks.
func (h *heap) has(e *Entry) bool {
	return e.index >= 0 && e.index < len(h.entries) && h.entries[e.index] == e
}

// ordered implements container/heap's Interface for a heap.
type ordered heap

// Len returns the number of entries.
func (h *ordered) Len() int { return len(h.entries) }

// Less compares two entries.
func (h *ordered) Less(i, j int) bool { return h.less(h.entries[i], h.entries[j]) }

// Swap swaps two entries and their indexes.
func (h *ordered) Swap(i, j int) {
	h.entries[i], h.entries[j] = h.entries[j], h.entries[i]
	h.entries[i].index, h.entries[j].index = i, j
}

// Push appends an *Entry.
func (h *ordered) Push(x any) {
	e := x.(*Entry)
	e.index = len(h.entries)
	h.entries = append(h.entries, e)
}

// Pop removes and returns the last *Entry.
func (h *ordered) Pop() any {
	last := len(h.entries) - 1
	e := h.entries[last]
	h.entries[last] = nil
	h.entries = h.entries[:last]
	e.index = nowhere
	return e
}
