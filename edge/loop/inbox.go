package loop

import (
	"sync"

	"github.com/berth-scheduler/berth/core/machine"
)

// item is one entry of the inbox: an event for the machine, or a question
// about it.
type item struct {
	event machine.Event // nil if ask is set
	ask   func()        // of Inspect, to be run between two steps
}

// keptCapacity is the longest buffer that an inbox keeps for reuse, in items.
const keptCapacity = 1 << 16

// inbox is a first-in-first-out queue with one reader, the loop. post, for events from the
// cluster, waits while limit of its events are queued. push, for outcomes of effects and for
// questions, never waits: their number is bounded by what was asked for, and whoever reports
// an outcome must not wait for the loop, as the loop may wait for the reporter.
type inbox struct {
	wake chan struct{} // holds a token when there may be something to read

	mu     sync.Mutex
	room   sync.Cond // signalled when the inbox is emptied or closed
	items  []item    // queued, oldest first
	spare  []item    // the buffer that take returned last; nil: none, or it is not kept
	news   int       // how many of items came through post
	limit  int       // post waits while news is that large
	closed bool
}

// newInbox returns an empty inbox. Its post waits while limit events from post are queued.
func newInbox(limit int) *inbox {
	b := &inbox{wake: make(chan struct{}, 1), limit: limit}
	b.room.L = &b.mu
	return b
}

// post adds an event from the cluster. It waits while the inbox is full, and drops the
// event once the inbox is closed.
func (b *inbox) post(e machine.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.news >= b.limit && !b.closed {
		b.room.Wait()
	}
	if b.append(item{event: e}) {
		b.news++
	}
}

// push adds an item even if the inbox is full. It drops the item and returns false if the
// inbox is closed.
func (b *inbox) push(it item) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.append(it)
}

// append adds an item and wakes the reader. It returns false if the inbox is closed. The
// caller holds mu.
func (b *inbox) append(it item) bool {
	if b.closed {
		return false
	}
	b.items = append(b.items, it)
	b.ring()
	return true
}

// ring wakes the reader, also if nothing was added. It never waits.
func (b *inbox) ring() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take removes and returns all items, in order; none if the inbox is empty. Whoever waits in
// post goes on. The slice is valid until the next take.
func (b *inbox) take() []item {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.items
	clear(b.spare) // what was taken last, which the reader is done with
	b.items, b.spare = b.spare[:0], taken
	if cap(b.spare) > keptCapacity {
		b.spare = nil
	}
	b.news = 0
	b.room.Broadcast()
	return taken
}

// close drops all items and those still to come. Whoever waits in post returns.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.items, b.spare = nil, nil
	b.room.Broadcast()
}
