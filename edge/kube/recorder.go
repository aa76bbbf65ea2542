package kube

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/fence"
)

// recorder publishes Events in the background. Repeats of an Event become its series. An
// Event that does not fit into the queue is dropped and counted.
type recorder struct {
	pool    *pool
	sink    eventSink
	busy    func() bool   // whether bindings are under way, which come first
	cache   *eventCache   // counts repeats
	dropped atomic.Uint64 // requests that were given up: no place in the queue, or no success
	host    string        // this machine's name, in the Events' reportingInstance
	waiting chan struct{} // of capacity 1: holds a token while a worker waits for bindings
	again   atomic.Int64  // requests that wait for another try
}

// eventSink is where a recorder sends Events: the API server, or a test's.
type eventSink interface {
	// create creates the Event. One that exists already is no error.
	create(context.Context, *eventsv1.Event) error
	// patch writes the Event's series, its count of repeats.
	patch(context.Context, *eventsv1.Event) error
}

// neverRepeated is the reason of an Event that a pod has only once (Scheduled). These are
// not cached, since they would push the others out of the cache.
const neverRepeated = machine.ReasonScheduled

// newRecorder returns a recorder whose requests are jobs of the pool. It starts a goroutine
// that runs until the pool's context ends.
func newRecorder(p *pool, sink eventSink, busy func() bool) *recorder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	r := &recorder{pool: p, sink: sink, busy: busy, cache: newEventCache(), host: host, waiting: make(chan struct{}, 1)}
	go r.finishSeries(p.ctx)
	return r
}

// add queues an event to be published, or counts it as a repeat of one that was. Of the repeats
// only the second occurrence is written, and then one in refreshTime. It never waits.
func (r *recorder) add(e machine.PublishEvent) {
	now := time.Now()
	if e.Reason == neverRepeated {
		s := newSeries(e, now)
		s.count = 1
		r.submit(now, eventTries, func(ctx context.Context) error { return r.record(ctx, eventOf(e, r.host, *s)) })
		return
	}
	if r.cache.full() {
		r.finish()
	}
	key := keyOf(e)
	s, tell := r.cache.add(key, e, now)
	if !tell {
		return
	}
	tries := eventTries
	if s.count > 1 {
		tries = 1 // the next repeat tells more
	}
	sent := false
	if !r.submit(now, tries, func(ctx context.Context) error {
		if sent && r.cache.repeated(key, s.count) {
			return nil // the repeat was told
		}
		sent = true
		err := r.record(ctx, eventOf(e, r.host, s))
		if err != nil {
			r.cache.lost(key)
		}
		return err
	}) {
		r.cache.lost(key)
	}
}

// Retries of requests without an answer. client-go's recorder sends twelve times, and keeps
// a goroutine for each.
const (
	eventTries = 3                // how often a request is sent at most
	eventAgain = 10 * time.Second // between two tries
	againLimit = 1000             // requests that wait for another try at most
)

// submit queues a request, to be sent up to tries times. since is when the event happened. A
// request that the API server rejects is dropped and counted; one without an answer is sent
// again later, where the Event's name prevents a duplicate. It returns false, and counts the
// request as dropped, if the queue is full.
func (r *recorder) submit(since time.Time, tries int, request func(context.Context) error) bool {
	queued := r.pool.submit(func(ctx context.Context) {
		r.yield(ctx, since)
		err := contained("PublishEvent", func() error { return request(ctx) })
		if err != nil && (tries == 1 || !unanswered(err) || !r.retryLater(tries-1, request)) {
			r.dropped.Add(1)
		}
	})
	if !queued {
		r.dropped.Add(1)
	}
	return queued
}

// retryLater submits a request without an answer again after eventAgain, up to tries times.
// It returns false, and submits nothing, if againLimit requests wait already.
func (r *recorder) retryLater(tries int, request func(context.Context) error) bool {
	if r.again.Add(1) > againLimit {
		r.again.Add(-1)
		return false
	}
	time.AfterFunc(eventAgain, func() {
		r.again.Add(-1)
		r.submit(time.Now(), tries, request)
	})
	return true
}

// unanswered reports whether err, which is not nil, means that no answer came, rather than
// that the API server rejected the request or the lease is lost.
func unanswered(err error) bool {
	status := apierrors.APIStatus(nil)
	return !errors.As(err, &status) && !errors.Is(err, fence.ErrNotLeading)
}

// record creates the Event, or patches its series if it is a repeat. An Event that no
// longer exists, or was never created, is created with its series.
func (r *recorder) record(ctx context.Context, e *eventsv1.Event) error {
	if e.Series != nil {
		if err := r.sink.patch(ctx, e); !apierrors.IsNotFound(err) {
			return err
		}
	}
	return r.sink.create(ctx, e)
}

// finishSeries calls finish every finishTime until the context ends.
func (r *recorder) finishSeries(ctx context.Context) {
	ticker := time.NewTicker(finishTime)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.finish()
		}
	}
}

// finish ends a period of the cache. It removes the events that did not occur in that period,
// and queues a write for each of them whose last count was not written. An Event that no longer
// exists is not created again.
func (r *recorder) finish() {
	now := time.Now()
	for _, s := range r.cache.turn() {
		e := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}, Series: s.api()}
		r.submit(now, 1, func(ctx context.Context) error {
			if err := r.sink.patch(ctx, e); !apierrors.IsNotFound(err) {
				return err
			}
			return nil
		})
	}
}

// How long an Event waits for bindings that are under way.
const (
	eventHold  = 2 * time.Second       // at most, since it happened
	eventPause = 50 * time.Millisecond // between two checks
)

// yield waits while bindings are under way, since both compete for the API server: at
// most until eventHold after since, and not if the queue is nearly full. One worker checks
// at a time, the others wait for it.
func (r *recorder) yield(ctx context.Context, since time.Time) {
	r.waiting <- struct{}{}
	defer func() { <-r.waiting }()
	for r.busy() && time.Since(since) < eventHold && !r.pool.nearlyFull() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(eventPause):
		}
	}
}

// maxInstance is the length of the longest reportingInstance that the API accepts, in bytes.
const maxInstance = 128

// eventOf returns the API's Event for the effect, with its series s. It is reported by the
// profile that acts: the preemptor's if there is one (e.Related), else the pod's.
func eventOf(e machine.PublishEvent, host string, s eventSeries) *eventsv1.Event {
	actor := e.Pod
	kind := v1.EventTypeNormal
	if e.Warning {
		kind = v1.EventTypeWarning
	}
	event := &eventsv1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Pod.Namespace, Name: s.name},
		EventTime:  metav1.MicroTime{Time: s.first},
		Series:     s.api(),
		Type:       kind,
		Reason:     string(e.Reason),
		Action:     e.Action,
		Note:       strings.ToValidUTF8(explain.Note(e.Note), ""), // a character may be cut in two
		Regarding:  reference(e.Pod),
	}
	if e.Related != nil {
		actor = e.Related
		related := reference(e.Related)
		if g := e.RelatedGroup; g != nil {
			related = v1.ObjectReference{APIVersion: "scheduling.k8s.io/v1beta1", Kind: "PodGroup", Namespace: g.Namespace, Name: g.Name, UID: g.UID, ResourceVersion: g.Version}
		}
		event.Related = &related
	}
	event.ReportingController = actor.SchedulerName
	instance := actor.SchedulerName + "-" + host
	event.ReportingInstance = instance[:min(len(instance), maxInstance)]
	return event
}

// eventName returns the pod's name with the time in hex, as client-go names Events, or a
// random name if that would be too long.
func eventName(pod string, now time.Time) string {
	name := pod + "." + strconv.FormatInt(now.UnixNano(), 16)
	if len(name) > validation.DNS1123SubdomainMaxLength {
		return string(uuid.NewUUID())
	}
	return name
}

// reference returns an Event's reference to the pod.
func reference(p *object.Pod) v1.ObjectReference {
	return v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.Version}
}

// eventWriter is the eventSink that writes to the API server.
type eventWriter struct {
	clients *Clients
	logger  klog.Logger
}

// create creates the Event. One that exists already is no error.
func (a eventWriter) create(ctx context.Context, e *eventsv1.Event) error {
	err := a.clients.Events.post(ctx, "namespaces/"+e.Namespace+"/events", e)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return a.logged(e, err)
}

// patch writes the Event's series. It returns NotFound if the Event does not exist.
func (a eventWriter) patch(ctx context.Context, e *eventsv1.Event) error {
	body, err := json.Marshal(map[string]any{"series": e.Series})
	if err != nil {
		return err
	}
	return a.logged(e, a.clients.Series.Patch(types.MergePatchType).Namespace(e.Namespace).Resource("events").Name(e.Name).
		Body(body).Do(ctx).Error())
}

// logged logs err, unless it is nil or means that the Event does not exist, and returns it.
func (a eventWriter) logged(e *eventsv1.Event, err error) error {
	if err != nil && !apierrors.IsNotFound(err) {
		a.logger.V(2).Info("Cannot publish an event", "event", klog.KObj(e), "reason", e.Reason, "err", err)
	}
	return err
}
