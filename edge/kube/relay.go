package kube

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// relay passes the events of a watch on, changed. After Stop nothing comes: the
// error that the end of its own connection may be to the watch is not passed on.
type relay struct {
	watch.Interface
	change  func(watch.Event) watch.Event
	events  chan watch.Event
	stopped chan struct{}
	stop    sync.Once
}

// newRelay passes the first events on before those of the watch.
func newRelay(of watch.Interface, change func(watch.Event) watch.Event, first ...watch.Event) *relay {
	r := &relay{Interface: of, change: change, events: make(chan watch.Event), stopped: make(chan struct{})}
	go r.pass(first)
	return r
}

// ResultChan returns where the events come.
func (r *relay) ResultChan() <-chan watch.Event { return r.events }

// Stop ends the watch.
func (r *relay) Stop() {
	r.stop.Do(func() { close(r.stopped) })
	r.Interface.Stop()
}

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

// send reports false after Stop.
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

func unchanged(e watch.Event) watch.Event { return e }
