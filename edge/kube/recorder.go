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

// recorder publishes events in the background, repeats as series. What does not
// fit into its queue is dropped and counted.
type recorder struct {
	pool    *pool
	sink    eventSink
	busy    func() bool // bindings are under way
	cache   *eventCache
	dropped atomic.Uint64 // by the queue or the API
	host    string
	waiting chan struct{} // holds a token while one waits for bindings: the others wait for him
	again   atomic.Int64  // events that wait for another try
}

// eventSink is the API as the recorder sees it.
type eventSink interface {
	create(context.Context, *eventsv1.Event) error
	// patch writes the event's series.
	patch(context.Context, *eventsv1.Event) error
}

// neverRepeated is the reason of an event that no pod has twice. They are left
// out of the cache, where they would push the others out.
const neverRepeated = machine.ReasonScheduled

func newRecorder(p *pool, sink eventSink, busy func() bool) *recorder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	r := &recorder{pool: p, sink: sink, busy: busy, cache: newEventCache(), host: host, waiting: make(chan struct{}, 1)}
	go r.finishSeries(p.ctx)
	return r
}

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

// A request that nobody answers is sent so often, with so much time in between; so
// many wait for another try at the most. client-go's recorder sends twelve times, and
// keeps a goroutine for each.
const (
	eventTries = 3
	eventAgain = 10 * time.Second
	againLimit = 1000
)

// submit queues a request. One that the API server refuses is lost: events only
// inform. One that it does not answer is sent again a while later: the name says what
// came twice.
func (r *recorder) submit(since time.Time, tries int, request func(context.Context) error) bool {
	queued := r.pool.submit(func(ctx context.Context) {
		r.yield(ctx, since)
		err := contained("PublishEvent", func() error { return request(ctx) })
		if err != nil && (tries == 1 || !unanswered(err) || !r.later(tries-1, request)) {
			r.dropped.Add(1)
		}
	})
	if !queued {
		r.dropped.Add(1)
	}
	return queued
}

// later submits the request again after a while. It reports false where too many wait.
func (r *recorder) later(tries int, request func(context.Context) error) bool {
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

// unanswered reports whether a request that was sent, or was to be, got no answer.
func unanswered(err error) bool {
	status := apierrors.APIStatus(nil)
	return !errors.As(err, &status) && !errors.Is(err, fence.ErrNotLeading)
}

// record writes an event, or the series that it has become. An Event that has
// gone meanwhile, or that never came, is created with its series.
func (r *recorder) record(ctx context.Context, e *eventsv1.Event) error {
	if e.Series != nil {
		if err := r.sink.patch(ctx, e); !apierrors.IsNotFound(err) {
			return err
		}
	}
	return r.sink.create(ctx, e)
}

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

// finish writes the last counts of the series that are over. An Event that has
// gone meanwhile stays away.
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

// What an event waits for bindings that are under way, at the most, and how
// often it looks.
const (
	eventHold  = 2 * time.Second
	eventPause = 50 * time.Millisecond
)

// yield waits while bindings are pending, since the API server can do one or the other.
// It does not wait long, nor if many events wait already.
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

// maxInstance is the longest reportingInstance that the API takes, in bytes.
const maxInstance = 128

// eventOf renders a PublishEvent effect. It is reported by the profile that acts:
// the preemptor's when there is one.
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
			related = v1.ObjectReference{APIVersion: "scheduling.k8s.io/v1alpha2", Kind: "PodGroup", Namespace: g.Namespace, Name: g.Name, UID: g.UID, ResourceVersion: g.Version}
		}
		event.Related = &related
	}
	event.ReportingController = actor.SchedulerName
	instance := actor.SchedulerName + "-" + host
	event.ReportingInstance = instance[:min(len(instance), maxInstance)]
	return event
}

// eventName returns the pod's name and the time, as users know it, or random where
// that is too long for a name.
func eventName(pod string, now time.Time) string {
	name := pod + "." + strconv.FormatInt(now.UnixNano(), 16)
	if len(name) > validation.DNS1123SubdomainMaxLength {
		return string(uuid.NewUUID())
	}
	return name
}

func reference(p *object.Pod) v1.ObjectReference {
	return v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.Version}
}

// eventWriter writes events to the API server.
type eventWriter struct {
	clients *Clients
	logger  klog.Logger
}

func (a eventWriter) create(ctx context.Context, e *eventsv1.Event) error {
	err := a.clients.Events.post(ctx, "namespaces/"+e.Namespace+"/events", e)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return a.told(e, err)
}

func (a eventWriter) patch(ctx context.Context, e *eventsv1.Event) error {
	body, err := json.Marshal(map[string]any{"series": e.Series})
	if err != nil {
		return err
	}
	return a.told(e, a.clients.Series.Patch(types.MergePatchType).Namespace(e.Namespace).Resource("events").Name(e.Name).
		Body(body).Do(ctx).Error())
}

func (a eventWriter) told(e *eventsv1.Event, err error) error {
	if err != nil && !apierrors.IsNotFound(err) {
		a.logger.V(2).Info("Cannot publish an event", "event", klog.KObj(e), "reason", e.Reason, "err", err)
	}
	return err
}
