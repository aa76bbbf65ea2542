package kube

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berth-scheduler/berth/core/machine"
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

// silent is an API server that answers no event until it is well again.
type silent struct {
	ledger
	until  time.Time
	asked  []time.Duration // when, by the time of the first
	origin time.Time
}

func (s *silent) create(ctx context.Context, e *eventsv1.Event) error {
	s.asked = append(s.asked, time.Since(s.origin))
	if time.Now().Before(s.until) {
		time.Sleep(requestTimeout)
		return context.DeadlineExceeded
	}
	return s.ledger.create(ctx, e)
}

// An event that is not answered, as on a half-open connection, is sent again, three
// times in all, and is not lost when the API server answers then. One that is refused
// is not sent again. The ends of tries and of the queue are counted.
func TestEventsAreSentAgain(t *testing.T) {
	for _, c := range []struct {
		name    string
		silent  time.Duration
		refused error
		sent    int
		arrives bool
		dropped uint64
	}{
		{"answered", 0, nil, 1, true, 0},
		{"refused", 0, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "e", nil), 1, false, 1},
		{"half-open for a minute", time.Minute, nil, 2, true, 0},
		{"never answered", time.Hour, nil, eventTries, false, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPool(1, 10, 0)
			s := &silent{ledger: ledger{events: map[string]bool{}, answer: c.refused}, until: time.Now().Add(c.silent), origin: time.Now()}
			r := newRecorder(p, s, func() bool { return false })
			r.add(machine.PublishEvent{Pod: testPod("p"), Reason: "Scheduled", Action: "Binding", Note: "n"})
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if len(s.asked) != c.sent || len(s.events) > 0 != c.arrives || r.dropped.Load() != c.dropped || r.again.Load() != 0 {
				t.Errorf("%s: sent at %v, arrived %v, %d dropped", c.name, s.asked, s.events, r.dropped.Load())
			}
			for i := 1; i < len(s.asked); i++ {
				if gap := s.asked[i] - s.asked[i-1]; gap != requestTimeout+eventAgain {
					t.Errorf("%s: sent again after %s", c.name, gap)
				}
			}
			p.close(false)
			p.cancel()
		})
	}
}

// No more events wait for another try than are allowed.
func TestEventsThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1, 0, 0)
		r := newRecorder(p, nil, func() bool { return false })
		for range againLimit + 50 {
			r.submit(time.Now(), 2, func(context.Context) error { return context.DeadlineExceeded })
		}
		synctest.Wait()
		if r.again.Load() != againLimit || r.dropped.Load() != 50 {
			t.Errorf("%d wait, %d are dropped", r.again.Load(), r.dropped.Load())
		}
		p.close(false)
		p.cancel()
	})
}
