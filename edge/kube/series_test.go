package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
)

// ledger is an API server's events. What it is told to answer, it does once.
type ledger struct {
	said   []string
	events map[string]bool // that are there
	answer error
}

func (l *ledger) say(what string, e *eventsv1.Event) error {
	text := what
	if e.Reason != "" {
		text += fmt.Sprintf(" %s@%s", e.Note, e.Regarding.ResourceVersion)
	}
	if e.Series != nil {
		text += fmt.Sprintf(" x%d at %s", e.Series.Count, e.Series.LastObservedTime.UTC().Format("15:04:05"))
	}
	l.said = append(l.said, text)
	err := l.answer
	l.answer = nil
	return err
}

func (l *ledger) create(_ context.Context, e *eventsv1.Event) error {
	err := l.say("create", e)
	if err == nil {
		l.events[e.Name] = true
	}
	return err
}

func (l *ledger) patch(_ context.Context, e *eventsv1.Event) error {
	err := l.say("patch", e)
	if err == nil && !l.events[e.Name] {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "events"}, e.Name)
	}
	return err
}

func failing(note, version string) machine.PublishEvent {
	p := testPod("p")
	p.Version = version
	return machine.PublishEvent{Pod: p, Warning: true, Reason: "FailedScheduling", Action: "Scheduling", Note: note}
}

// Repeats of an event are a series, as kube-scheduler's recorder makes them: it
// is told of at once, then once in half an hour, then when it is over. What is
// wrong now is told at once.
func TestSeries(t *testing.T) {
	nothing := errors.New("no connection")
	type at struct {
		after time.Duration // since the one before
		e     machine.PublishEvent
		fault error
	}
	full := failing("full", "7")
	var hour []at
	for range 61 {
		hour = append(hour, at{time.Minute, full, nil})
	}
	tests := map[string]struct {
		events []at
		gone   bool // the Event, after the first
		want   []string
	}{
		"once": {[]at{{0, full, nil}}, false, []string{"create full@7"}},
		"again and again": {[]at{{0, full, nil}, {time.Second, full, nil}, {time.Second, full, nil}, {time.Second, full, nil}}, false,
			[]string{"create full@7", "patch full@7 x2 at 00:00:01", "patch x4 at 00:00:03"}},
		"for an hour": {hour, false,
			[]string{"create full@7", "patch full@7 x2 at 00:02:00", "patch full@7 x32 at 00:32:00", "patch x61 at 01:01:00"}},
		"told already": {[]at{{0, full, nil}, {time.Second, full, nil}}, false, []string{"create full@7", "patch full@7 x2 at 00:00:01"}},
		"something else is wrong": {[]at{{0, full, nil}, {time.Second, failing("tainted", "7"), nil}, {time.Second, full, nil}}, false,
			[]string{"create full@7", "create tainted@7", "patch full@7 x2 at 00:00:02"}},
		"another state of the pod": {[]at{{0, full, nil}, {time.Second, failing("full", "8"), nil}}, false,
			[]string{"create full@7", "create full@8"}},
		"much later": {[]at{{0, full, nil}, {2*finishTime + 1, full, nil}}, false, []string{"create full@7", "create full@7"}},
		"the Event is gone": {[]at{{0, full, nil}, {time.Second, full, nil}}, true,
			[]string{"create full@7", "patch full@7 x2 at 00:00:01", "create full@7 x2 at 00:00:01"}},
		"lost": {[]at{{0, full, nothing}, {time.Second, full, nil}, {time.Second, full, nil}}, false,
			[]string{"create full@7", "patch full@7 x2 at 00:00:01", "create full@7 x2 at 00:00:01", "patch x3 at 00:00:02"}},
		"a repeat is lost": {[]at{{0, full, nil}, {time.Second, full, nothing}, {time.Second, full, nil}}, false,
			[]string{"create full@7", "patch full@7 x2 at 00:00:01", "patch full@7 x3 at 00:00:02"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &ledger{events: map[string]bool{}}
				r := newRecorder(newPool(1, 0, 0), l, func() bool { return false })
				for i, e := range tt.events {
					if i == 1 && tt.gone {
						clear(l.events)
					}
					time.Sleep(e.after)
					l.answer = e.fault
					r.add(e.e)
					synctest.Wait()
				}
				time.Sleep(3 * finishTime)
				synctest.Wait()
				if !slices.Equal(l.said, tt.want) {
					t.Errorf("said\n%s\nwant\n%s", strings.Join(l.said, "\n"), strings.Join(tt.want, "\n"))
				}
				if len(r.cache.recent)+len(r.cache.older) > 0 {
					t.Error("something is kept")
				}
				r.pool.close(false)
				r.pool.wait(context.Background())
			})
		})
	}
}

// However many different events there are, no more than two caches full are
// kept, and those that no pod has twice not at all.
func TestSeriesAreBounded(t *testing.T) {
	p := newPool(0, 1, 0)
	defer p.cancel()
	r := newRecorder(p, nil, nil)
	pod := testPod("p")
	for i := range 3*cacheLimit + 1 {
		pod.UID = types.UID(fmt.Sprint(i))
		r.add(machine.PublishEvent{Pod: pod, Reason: "FailedScheduling"})
		if len(r.cache.recent) > cacheLimit || len(r.cache.older) > cacheLimit {
			t.Fatalf("%d and %d events are kept", len(r.cache.recent), len(r.cache.older))
		}
	}
	if got := r.dropped.Load(); got != 3*cacheLimit {
		t.Errorf("%d dropped", got)
	}
	kept := len(r.cache.recent)
	pod.UID = "another"
	r.add(machine.PublishEvent{Pod: pod, Reason: neverRepeated})
	if len(r.cache.recent) != kept {
		t.Error("what is never repeated is kept")
	}
}

// What the API server gets of a repeat.
func TestSeriesPatch(t *testing.T) {
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
		if r.Method == http.MethodPatch && r.Header.Get("Content-Type") != string(types.MergePatchType) {
			t.Errorf("a patch of type %s", r.Header.Get("Content-Type"))
		}
		answer(w, 200, nil)
	})
	h, _ := executorOn(t, s.config(), always)
	h.Do(failing("full", "7"))
	made := <-s.requests
	h.Do(failing("full", "7"))
	patched := <-s.requests
	if made.Line != "POST /apis/events.k8s.io/v1/namespaces/ns/events" || !strings.Contains(made.Body, `"resourceVersion":"7"`) {
		t.Errorf("got %v", made)
	}
	if !strings.HasPrefix(patched.Line, "PATCH /apis/events.k8s.io/v1/namespaces/ns/events/p.") ||
		!strings.HasPrefix(patched.Body, `{"series":{"count":2,"lastObservedTime":"20`) {
		t.Errorf("got %v", patched)
	}
}
