package queue

import (
	stdheap "container/heap"
	"iter"
)

// heap is a priority queue. Most pods arrive in the order in which they leave, so there
// is a run beside the binary heap: a sorted list, to which an entry is appended if it
// comes after the last one. Entries know their index.
type heap struct {
	less    func(a, b *Entry) bool
	entries []*Entry // the binary heap
	run     []*Entry // from front on; nil: it was taken out of the middle
	front   int
	holes   int
}

func (h *heap) len() int { return len(h.entries) + len(h.run) - h.front - h.holes }

// head returns the least entry, nil when there is none.
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

func (h *heap) push(e *Entry) {
	if n := len(h.run); n == h.front || !h.less(e, h.run[n-1]) {
		h.run = append(h.run, e)
		e.index = runIndex(n)
		return
	}
	stdheap.Push((*ordered)(h), e)
}

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

// fix restores the order after the entry changed.
func (h *heap) fix(e *Entry) {
	h.remove(e)
	h.push(e)
}

// trim keeps entries at both ends of the run, and its room within bounds.
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

// all iterates over the entries, in no order.
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

// has reports whether the entry is at its index.
func (h *heap) has(e *Entry) bool {
	list, at := h.entries, e.index
	if at < nowhere {
		list, at = h.run, runIndex(at)
	}
	return at >= 0 && at < len(list) && list[at] == e
}

// An entry's index is its place in the binary heap; negative ones stand for
// places in the run.
const nowhere = -1

func runIndex(index int) int { return -2 - index }

// ordered is a heap as container/heap sees it.
type ordered heap

func (h *ordered) Len() int           { return len(h.entries) }
func (h *ordered) Less(i, j int) bool { return h.less(h.entries[i], h.entries[j]) }

func (h *ordered) Swap(i, j int) {
	h.entries[i], h.entries[j] = h.entries[j], h.entries[i]
	h.entries[i].index, h.entries[j].index = i, j
}

func (h *ordered) Push(x any) {
	e := x.(*Entry)
	e.index = len(h.entries)
	h.entries = append(h.entries, e)
}

func (h *ordered) Pop() any {
	last := len(h.entries) - 1
	e := h.entries[last]
	h.entries[last] = nil
	h.entries = h.entries[:last]
	e.index = nowhere
	return e
}
