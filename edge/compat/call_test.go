package compat

import "testing"

// A worker that has nothing to do ends with the scheduler.
func TestWorkersEnd(t *testing.T) {
	var l workers
	idle, busy := l.take(), l.take()
	l.put(idle, nil)
	l.end()
	l.put(busy, nil)
	for _, w := range []*worker{idle, busy} {
		if _, open := <-w.jobs; open {
			t.Error("it has work")
		}
	}
	if len(l.idle) > 0 {
		t.Error("one is kept")
	}
}
