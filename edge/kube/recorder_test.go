package kube

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// An event lets bindings that are under way go first, but not for ever, and
// not where the queue fills or closes.
func TestEventsYieldToBindings(t *testing.T) {
	for _, c := range []struct {
		name  string
		busy  time.Duration // how long bindings are under way
		queue int           // events that wait, of ten
		close bool
		want  time.Duration // how long it waits, give or take a look
	}{
		{"no binding", 0, 0, false, 0},
		{"a short burst", time.Second, 0, false, time.Second},
		{"bindings without end", time.Hour, 0, false, eventHold},
		{"a queue that fills", time.Hour, 9, false, 0},
		{"the end of the process", time.Hour, 0, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			p := newPool(0, 10, 0)
			defer p.cancel()
			r := newRecorder(p, nil, func() bool { return time.Since(start) < c.busy })
			for range c.queue {
				p.submit(func(context.Context) {})
			}
			if c.close {
				p.close(false)
			}
			r.yield(t.Context(), start)
			if took := time.Since(start); took < c.want || took > c.want+eventPause {
				t.Errorf("%s: waited %s, want %s", c.name, took, c.want)
			}
		})
	}
}
