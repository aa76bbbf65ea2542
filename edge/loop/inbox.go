package loop

import (
	"sync"

	"github.com/berth-scheduler/berth/core/machine"
)

// item is one entry of the inbox: an event for the machine, or a question
// about it.
type item struct {
	event machine.Event
	ask   func()
}

// keptCapacity is the longest buffer that an inbox keeps for reuse.
const keptCapacity = 1 << 16

// inbox is a first-in-first-out queue with one reader. Writers of news wait
// while it is full; outcomes and questions always get in, because their number
// is bounded by what was asked for, and because who reports an outcome must
// never wait for the loop, which may wait for him.
type inbox struct {
	wake chan struct{} // holds a token when there may be something to read

	mu     sync.Mutex
	room   sync.Cond
	items  []item
	spare  []item
	news   int // how many of items came through post
	limit  int // most of them at a time
	closed bool
}

func newInbox(limit int) *inbox {
	b := &inbox{wake: make(chan struct{}, 1), limit: limit}
	b.room.L = &b.mu
	return b
}

// post adds news, and waits for room. It drops them once the inbox is closed.
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

// push adds an item at once. It reports false when the inbox is closed.
func (b *inbox) push(it item) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.append(it)
}

func (b *inbox) append(it item) bool {
	if b.closed {
		return false
	}
	b.items = append(b.items, it)
	b.ring()
	return true
}

// ring wakes the reader.
func (b *inbox) ring() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take empties the inbox. The slice is valid until the next take.
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

// close drops what is left and wakes every waiting writer.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.items, b.spare = nil, nil
	b.room.Broadcast()
}
