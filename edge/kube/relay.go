package kube

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// relay is a watch that passes on the events of another watch, each through change. After
// Stop it passes on nothing, not even the error by which the other watch ends then.
type relay struct {
	watch.Interface
	change  func(watch.Event) watch.Event
	events  chan watch.Event
	stopped chan struct{}
	stop    sync.Once
}

// newRelay returns a relay of the watch, which begins at once. It sends the events first,
// unchanged, before those of the watch.
func newRelay(of watch.Interface, change func(watch.Event) watch.Event, first ...watch.Event) *relay {
	r := &relay{Interface: of, change: change, events: make(chan watch.Event), stopped: make(chan struct{})}
	go r.pass(first)
	return r
}

// ResultChan returns the channel of the relayed events.
func (r *relay) ResultChan() <-chan watch.Event { return r.events }

// Stop ends both watches.
func (r *relay) Stop() {
	r.stop.Do(func() { close(r.stopped) })
	r.Interface.Stop()
}

// pass sends the events first and then those of the watch, until that ends or Stop. It then
// closes the channel.
func (r *relay) pass(first []watch.Event) {
	defer close(r.events)
	for _, e := range first {
		if !r.send(e) {
			return
		}
	}
	for e := range r.Interface.ResultChan() {
		if !r.send(r.change(e)) {
			return
		}
	}
}

// send sends an event, and waits until it is received. It returns false after Stop.
func (r *relay) send(e watch.Event) bool {
	select {
	case <-r.stopped:
		return false
	default:
	}
	select {
	case r.events <- e:
		return true
	case <-r.stopped:
		return false
	}
}

// unchanged is the change of a relay that passes events on as they are.
func unchanged(e watch.Event) watch.Event { return e }
