package kube

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
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
)

// recorder publishes events in the background. What does not fit into its
// queue is dropped and counted. add is for one caller at a time.
type recorder struct {
	pool    *pool
	send    func(context.Context, *eventsv1.Event)
	busy    func() bool // bindings are under way
	dropped atomic.Uint64
	host    string
	waiting sync.Mutex // of who waits for bindings: the others wait for him

	// said holds the warnings of this period and of the one before: a pod that
	// fails again and again says so once in a while only, as v1.36 makes a
	// series of such events. The pod's condition is always the latest.
	said    [2]map[warning]bool
	rotated time.Time
}

// warning is what a repeated warning has in common with the first.
type warning struct {
	pod    types.UID
	reason string
}

const warningPeriod = time.Minute

func newRecorder(p *pool, send func(context.Context, *eventsv1.Event), busy func() bool) *recorder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &recorder{pool: p, send: send, busy: busy, host: host}
}

func (r *recorder) add(e machine.Announce) {
	now := time.Now()
	if e.Warning && r.repeated(warning{e.Pod.UID, e.Reason}, now) {
		return
	}
	if !r.pool.submit(func(ctx context.Context) {
		r.yield(ctx, now)
		r.send(ctx, eventOf(e, r.host, now))
	}) {
		r.dropped.Add(1)
	}
}

// What an event waits for bindings that are under way, at the most, and how
// often it looks.
const (
	eventPatience = 30 * time.Second
	eventPause    = 50 * time.Millisecond
)

// yield lets bindings go first: the API server takes one or the other. It does
// not wait long, nor where many events wait already.
func (r *recorder) yield(ctx context.Context, since time.Time) {
	r.waiting.Lock()
	defer r.waiting.Unlock()
	for r.busy() && time.Since(since) < eventPatience && !r.pool.crowded() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(eventPause):
		}
	}
}

// repeated says whether the warning was given a short while ago.
func (r *recorder) repeated(w warning, now time.Time) bool {
	if now.Sub(r.rotated) >= warningPeriod {
		r.said[0], r.said[1] = map[warning]bool{}, r.said[0]
		r.rotated = now
	}
	if r.said[0][w] || r.said[1][w] {
		return true
	}
	r.said[0][w] = true
	return false
}

// maxInstance is the longest reportingInstance that the API takes, in bytes.
const maxInstance = 128

// eventOf renders an Announce effect. It is reported by the profile that acts:
// the preemptor's when there is one.
func eventOf(e machine.Announce, host string, now time.Time) *eventsv1.Event {
	actor := e.Pod
	kind := v1.EventTypeNormal
	if e.Warning {
		kind = v1.EventTypeWarning
	}
	event := &eventsv1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Pod.Namespace, Name: eventName(e.Pod.Name, now)},
		EventTime:  metav1.MicroTime{Time: now},
		Type:       kind,
		Reason:     e.Reason,
		Action:     e.Action,
		Note:       strings.ToValidUTF8(explain.Note(e.Note), ""), // a character may be cut in two
		Regarding:  reference(e.Pod),
	}
	if e.Related != nil {
		actor = e.Related
		related := reference(e.Related)
		event.Related = &related
	}
	event.ReportingController = actor.SchedulerName
	instance := actor.SchedulerName + "-" + host
	event.ReportingInstance = instance[:min(len(instance), maxInstance)]
	return event
}

// eventName is the pod's name and the time, as users know it, or random where
// that is too long for a name.
func eventName(pod string, now time.Time) string {
	name := pod + "." + strconv.FormatInt(now.UnixNano(), 16)
	if len(name) > validation.DNS1123SubdomainMaxLength {
		return string(uuid.NewUUID())
	}
	return name
}

func reference(p *object.Pod) v1.ObjectReference {
	return v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID}
}

// publish sends an event. One that the API does not take is lost: it only
// informs.
func (h *Hands) publish(ctx context.Context, e *eventsv1.Event) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := h.clients.Events.post(ctx, "namespaces/"+e.Namespace+"/events", e)
	if err == nil || apierrors.IsAlreadyExists(err) {
		return
	}
	h.announceLost.Add(1)
	h.logger.V(2).Info("Cannot publish an event", "pod", klog.KRef(e.Regarding.Namespace, e.Regarding.Name),
		"reason", e.Reason, "err", err)
}
