package queue

import (
	stdheap "container/heap"
	"iter"
)

// heap is a priority queue. Most pods arrive in the order in which they leave, so there is
// a sorted list, the run, beside the binary heap: an entry that comes after the last of the
// run is appended to it. Entries know their index.
type heap struct {
	less    func(a, b *Entry) bool
	entries []*Entry // the binary heap
	run     []*Entry // sorted from front on; nil: removed from the middle
	front   int      // index of the first entry in run
	holes   int      // nil entries in run after front
}

// len returns the number of entries.
func (h *heap) len() int { return len(h.entries) + len(h.run) - h.front - h.holes }

// head returns the least entry without removing it, nil if there is none.
func (h *heap) head() *Entry {
	switch {
	case h.front == len(h.run) && len(h.entries) == 0:
		return nil
	case h.front == len(h.run):
		return h.entries[0]
	case len(h.entries) == 0 || !h.less(h.entries[0], h.run[h.front]):
		return h.run[h.front]
	}
	return h.entries[0]
}

// push adds an entry that is in no heap.
func (h *heap) push(e *Entry) {
	if n := len(h.run); n == h.front || !h.less(e, h.run[n-1]) {
		h.run = append(h.run, e)
		e.index = runIndex(n)
		return
	}
	stdheap.Push((*ordered)(h), e)
}

// remove removes an entry of this heap.
func (h *heap) remove(e *Entry) {
	if e.index >= 0 {
		stdheap.Remove((*ordered)(h), e.index)
		return
	}
	h.run[runIndex(e.index)] = nil
	e.index = nowhere
	h.holes++
	h.trim()
}

// fix moves the entry to its right place in the order, after its sort key changed.
func (h *heap) fix(e *Entry) {
	h.remove(e)
	h.push(e)
}

// trim removes the nil entries that removed entries left at both ends of the run, and all
// of them if they are many, so that the memory is bounded.
func (h *heap) trim() {
	for h.front < len(h.run) && h.run[h.front] == nil {
		h.front++
		h.holes--
	}
	for n := len(h.run); n > h.front && h.run[n-1] == nil; n-- {
		h.run = h.run[:n-1]
		h.holes--
	}
	if gone := h.front + h.holes; gone < 64 || 2*gone < len(h.run) {
		return
	}
	kept := h.run[:0]
	for _, e := range h.run[h.front:] {
		if e != nil {
			e.index = runIndex(len(kept))
			kept = append(kept, e)
		}
	}
	clear(h.run[len(kept):])
	h.run, h.front, h.holes = kept, 0, 0
}

// all returns the entries, in no order.
func (h *heap) all() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, list := range [][]*Entry{h.entries, h.run[h.front:]} {
			for _, e := range list {
				if e != nil && !yield(e) {
					return
				}
			}
		}
	}
}

// has reports whether the entry is in this heap, at the index that the entry itself keeps. It is
// for checks.
func (h *heap) has(e *Entry) bool {
	list, at := h.entries, e.index
	if at < nowhere {
		list, at = h.run, runIndex(at)
	}
	return at >= 0 && at < len(list) && list[at] == e
}

// Entry.index is the index in the binary heap if it is at least 0, nowhere for an entry in
// no heap, and a runIndex for one in the run.
const nowhere = -1

// runIndex converts an index in the run to an Entry.index, and back.
func runIndex(index int) int { return -2 - index }

// ordered implements container/heap's Interface for the binary heap of a heap.
type ordered heap

// Len returns the number of entries in the binary heap.
func (h *ordered) Len() int { return len(h.entries) }

// Less compares two entries of the binary heap.
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
