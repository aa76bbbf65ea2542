package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

const (
	bindWorkers    = 64     // bindings sent at a time; slow ones (slowAfter) do not count
	bindLimit      = 1024   // queued bindings from which on Full returns true
	requestWorkers = 16     // reads, writes and evictions sent at a time
	endedWorkers   = 2      // reads sent at a time of how a pod ended: many may end at once
	statusWorkers  = 16     // status patches sent at a time
	eventWorkers   = 16     // Events sent at a time
	eventLimit     = 10_000 // queued Events; more are dropped

	// slowAfter is how long a request occupies a worker. So at least 128 bindings are
	// sent in a second, if the rate limiter allows, even if none returns; others wait at
	// most as long for a slow request before them.
	slowAfter = 500 * time.Millisecond

	maxTries = 5 // of a request that an overloaded server turns away
)

// Executor carries out the machine's effects as API calls and reports their outcomes. Do
// never waits: each kind of work has its queue and its goroutines. Full bounds the queue
// of bindings, the number of pods bounds the bindings that were sent and the status
// patches (a later patch of a pod is merged into the one that waits), and the queue of
// events has a limit.
type Executor struct {
	clients *Clients
	report  func(machine.Event)
	logger  klog.Logger

	bindings *pool        // for Bind
	requests *pool        // for Write and Evict, and for ReadPod unless Ended is set
	ended    *pool        // for ReadPod with Ended
	status   *statusQueue // its pool is also that of the next three
	groups   *patches[machine.PatchGroupStatus]
	phases   *patches[machine.PatchGroupPhase]
	quotas   *patches[machine.PatchQuotaStatus]
	events   *recorder

	extenders Extenders          // nil: there is none
	described []machine.Extender // their configuration, by the index in CallExtender.Extender
	asking    *calls             // filter, prioritize and preempt calls to extenders
	delegated *calls             // bind calls to extenders

	hosts   Hosts  // run plugins written against kube-scheduler's framework; nil: there are none
	plugins *calls // PreBind and Bind plugins that run

	decode func(*v1.Pod) *object.Pod
	fields podFields // removes the fields of a pod that are not to be read
	// record, when set, is called with each event about an object in a reply, and with that
	// object as the API sent it.
	record func(machine.Event, metav1.Object)

	replied     versions      // latest versions that replies have shown
	binding     atomic.Int64  // bindings queued or sent and not answered
	unanswered  atomic.Int64  // bindings, writes and plugins that began and are not reported on
	patchFailed atomic.Uint64 // tries of status patches that failed so far
}

// NewExecutor returns an executor that reports outcomes through report, which must not
// block. It works until Stop and Close.
func NewExecutor(c *Clients, report func(machine.Event), logger klog.Logger) *Executor {
	h := &Executor{clients: c, report: report, logger: logger, decode: decode.Pod, asking: newCalls(), delegated: newCalls(), plugins: newCalls(),
		bindings: newPool(bindWorkers, 0, slowAfter), requests: newPool(requestWorkers, 0, slowAfter), ended: newPool(endedWorkers, 0, slowAfter)}
	h.status = newStatusQueue(newPool(statusWorkers, 0, slowAfter), h.patch)
	h.quotas = newPatches(h.status.pool, latest, anyQuota, h.patchQuota)
	h.groups = newPatches(h.status.pool, latest, rewordsGroup, h.patchGroup)
	h.phases = newPatches(h.status.pool, latest, rewordsPhase, h.patchPhase)
	h.quotas.lasting, h.groups.lasting, h.phases.lasting = true, true, true
	h.events = newRecorder(newPool(eventWorkers, eventLimit, 0), eventWriter{c, logger}, func() bool { return h.binding.Load() > 0 })
	return h
}

// Record sets a function that is called with each event made from a reply and the API
// object that it shows, so that a recording can keep it. Call it before the first Do.
func (x *Executor) Record(attach func(machine.Event, metav1.Object)) { x.record = attach }

// PodFields sets a function that returns a pod without the fields that are not to be
// read: those that the feature gates disable. Call it before the first Do.
func (x *Executor) PodFields(fields func(*v1.Pod) *v1.Pod) { x.fields = fields }

// Counters are the executor's metrics.
type Counters struct {
	Binding       int    // bindings queued, or sent and not answered; none of plugins or extenders
	Unanswered    int    // bindings, writes and plugins that began and are not reported on
	Patches       int    // pods whose status is still to be written, or is being written
	Nominations   int    // those of them whose nominatedNodeName is to be written
	EventsDropped uint64 // Events so far that the queue had no place for, or that were not accepted
	PatchesFailed uint64 // tries of status patches so far that failed
}

// Counters returns the present counts.
func (x *Executor) Counters() Counters {
	return Counters{
		Binding:       int(x.binding.Load()),
		Unanswered:    int(x.unanswered.Load()),
		Patches:       x.status.pending(),
		Nominations:   x.status.nominations(),
		EventsDropped: x.events.dropped.Load(),
		PatchesFailed: x.patchFailed.Load(),
	}
}

// Full reports whether more bindings would only wait here, or not be sent at all because
// the lease is no longer sure. The loop decides on no pod then. It may turn false without
// an outcome: when slow bindings give their workers away.
func (x *Executor) Full() bool { return x.bindings.waiting() >= bindLimit || !x.clients.held() }

// Do starts to carry out an effect and returns at once. The outcome, where the machine
// expects one, is reported as an event later. Effects that it does not know are ignored.
func (x *Executor) Do(e machine.Effect) {
	switch e := e.(type) {
	case machine.Bind:
		x.startBind(e)
	case machine.ReadPod:
		x.startRead(e)
	case machine.Evict:
		x.requests.submit(func(ctx context.Context) {
			err := contained("Evict", func() error { return x.evict(ctx, e) })
			x.report(machine.EvictReply{Victim: e.Victim.UID, Preemptor: e.Preemptor.UID, Err: err})
		})
	case machine.PatchStatus:
		x.status.add(e)
	case machine.PatchGroupStatus:
		x.groups.add(e.Group.UID, e)
	case machine.PatchGroupPhase:
		x.phases.add(e.Group.UID, e)
	case machine.PatchQuotaStatus:
		x.quotas.add(e.Quota.UID, e)
	case machine.ReportQuotaFaults:
		x.logger.Info("An ElasticQuota does not count as it is written", "elasticQuota", klog.KRef(e.Quota.Namespace, e.Quota.Name), "faults", e.Faults)
	case machine.PublishEvent:
		x.events.add(e)
	case machine.Write:
		x.startWrite(e)
	case machine.CallExtender:
		x.startAsk(e)
	case machine.BindByExtender:
		x.startBindBy(e)
	case machine.RunPlugins:
		x.startPlugins(e)
	case machine.CancelPlugins:
		x.hosts.Cancel(e.Pod.UID, e.Why)
	}
}

// startBind queues a binding and reports a BindReply when it has ended. It voids a status
// patch of the pod that was not sent yet. The binding waits for one that was sent: the API
// server sets the pod's condition when it binds, and a late patch would overwrite that.
func (x *Executor) startBind(e machine.Bind) {
	x.binding.Add(1)
	x.status.cancel(e.Pod.UID, func() {
		x.bindings.submit(func(ctx context.Context) {
			x.unanswered.Add(1)
			defer x.unanswered.Add(-1)
			result := machine.BindUnknown
			err := contained("Bind", func() (err error) {
				result, err = x.bind(ctx, e.Pod, e.Node)
				return err
			})
			x.binding.Add(-1)
			x.report(machine.BindReply{UID: e.Pod.UID, Result: result, Err: err})
		})
	})
}

// startRead reads the pod, after the effect's delay, and reports a ReadReply.
func (x *Executor) startRead(e machine.ReadPod) {
	pool := x.requests
	if e.Ended {
		pool = x.ended
	}
	read := func() {
		pool.submit(func(ctx context.Context) {
			var p *object.Pod
			err := contained("ReadPod", func() (err error) {
				p, err = x.get(ctx, e.Pod)
				return err
			})
			x.report(machine.ReadReply{UID: e.Pod.UID, Pod: p, Err: err})
		})
	}
	if e.Delay <= 0 {
		read()
		return
	}
	time.AfterFunc(e.Delay, read)
}

// get reads the pod from the API server. It returns nil without an error if the pod is gone,
// another pod has its name (the UID differs), or it is unbound and cannot be decoded. It
// records the version that the reply shows.
func (x *Executor) get(ctx context.Context, p *object.Pod) (*object.Pod, error) {
	pod := &v1.Pod{}
	err := x.clients.Read.Get().Namespace(p.Namespace).Resource("pods").Name(p.Name).Do(ctx).Into(pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get pod %s: %w", p.Key(), err)
	case pod.UID != p.UID:
		return nil, nil
	}
	x.replied.record("pods", pod.ResourceVersion)
	read, from, err := x.decodePod(pod)
	if read == nil {
		return nil, err
	}
	if x.record != nil {
		x.record(machine.ReadReply{Pod: read}, from)
	}
	switch {
	case x.hosts != nil:
		read.API = pod.DeepCopy()
	case x.extenders != nil && x.extenders.Pod(pod):
		read.API = pod
	}
	return read, nil
}

// decodePod decodes a pod and returns the API object that it was decoded from. Of a bound
// pod that cannot be decoded it returns only what the pod takes (roomOf), as the watch
// does, or an error if that cannot be decoded either; of an unbound one it returns nil.
func (x *Executor) decodePod(p *v1.Pod) (read *object.Pod, from *v1.Pod, err error) {
	p = x.fields.of(p)
	why := caught(func() { read = x.decode(p) })
	if why == nil {
		return read, p, nil
	}
	x.logger.Error(why, "Failed to decode object", "type", "*v1.Pod", "object", klog.KObj(p))
	if p.Spec.NodeName == "" {
		return nil, nil, nil
	}
	from = roomOf(p)
	err = caught(func() { read = x.decode(from) })
	return read, from, err
}

// evict sets the victim's DisruptionTarget condition, unless it is set, and deletes the pod.
// A victim that is gone already is a success.
func (x *Executor) evict(ctx context.Context, e machine.Evict) error {
	victim := e.Victim
	if !victim.Disrupted {
		err := x.patchStatus(ctx, x.clients.Bind, victim, disruption(victim, explain.Disrupted(e.Group != nil, e.Preemptor.SchedulerName), time.Now())).Error()
		if x.left(ctx, victim, err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("patch status of pod %s: %w", victim.Key(), err)
		}
	}
	err := x.clients.Bind.Delete().Namespace(victim.Namespace).Resource("pods").Name(victim.Name).
		Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &victim.UID}}).Do(ctx).Error()
	if err != nil && !x.left(ctx, victim, err) {
		return fmt.Errorf("delete pod %s: %w", victim.Key(), err)
	}
	return nil
}

// left reports whether a request failed with err because the victim no longer exists; false
// if err is nil. After a conflict it reads the pod: somebody may just have changed it.
func (x *Executor) left(ctx context.Context, victim *object.Pod, err error) bool {
	if !apierrors.IsConflict(err) {
		return gone(err)
	}
	now, unread := x.get(ctx, victim)
	return unread == nil && now == nil
}

// gone reports whether a request failed because the pod that it was for no longer exists.
// A new pod may have its name; a patch with the old UID is invalid for it, and a deletion
// conflicts.
func gone(err error) bool {
	if apierrors.IsInvalid(err) {
		status := apierrors.APIStatus(nil)
		return errors.As(err, &status) && status.Status().Details != nil &&
			slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
	}
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}

// patch carries out a PatchStatus effect. It returns false if it failed and another try may
// help. A pod that is gone counts as done. Other failures are logged and counted.
func (x *Executor) patch(ctx context.Context, e machine.PatchStatus) bool {
	err := contained("PatchStatus", func() error { return x.patchPod(ctx, e) })
	again := transient(err)
	if err == nil || !again && gone(err) {
		return true
	}
	x.patchFailed.Add(1)
	pod := klog.KRef(e.Pod.Namespace, e.Pod.Name)
	if again {
		x.logger.V(2).Info("Failed to update the status of a pod, retrying", "pod", pod, "err", err)
	} else {
		x.logger.Error(err, "Error updating pod", "pod", pod)
	}
	return !again
}

// patchPod writes the pod's status once. It records the version of a nomination, since
// the next leader must know what that reserves.
func (x *Executor) patchPod(ctx context.Context, e machine.PatchStatus) error {
	body := statusOf(e, time.Now())
	if e.Nominated == nil {
		return x.patchStatus(ctx, x.clients.Status, e.Pod, body).Error()
	}
	written := &v1.Pod{}
	if err := x.patchStatus(ctx, x.clients.Status, e.Pod, body).Into(written); err != nil {
		return err
	}
	x.replied.record("pods", written.ResourceVersion)
	return nil
}

// transient reports whether a status patch that failed may succeed when it is tried
// again: the server did not answer, was overloaded or failed, another change of the pod
// came between, a token had expired, or the lease was not sure.
func transient(err error) bool {
	status := apierrors.APIStatus(nil)
	switch {
	case err == nil:
		return false
	case !errors.As(err, &status):
		return true
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	default:
		return code >= 500
	}
}

// stopPoll is how often Stop calls known.
const stopPoll = 20 * time.Millisecond

// Stop drops the bindings that were not sent, and ends the calls to extenders but those that
// bind. It waits for the bindings that were sent, also by extenders and hosted plugins, until
// ctx ends, and cancels the rest. Outcomes are still reported. It then waits until known
// reports that the machine has settled every binding whose reply was lost, or ctx ends. Last it
// drops the queued reads, writes and evictions, and waits for the others until ctx ends.
func (x *Executor) Stop(ctx context.Context, known func() bool) {
	x.bindings.close(true)
	x.asking.end()
	x.bindings.wait(ctx)
	x.delegated.wait(ctx)
	x.plugins.leave(ctx)
	for !known() && sleep(ctx, stopPoll) {
	}
	x.ended.close(true)
	x.requests.close(true)
	x.requests.wait(ctx)
	x.ended.wait(ctx)
}

// Close takes no more events and status patches, sends those that wait until ctx ends,
// and drops the rest. Call it after Stop.
func (x *Executor) Close(ctx context.Context) {
	x.status.pool.close(false)
	x.events.pool.close(false)
	x.status.pool.wait(ctx)
	x.events.pool.wait(ctx)
}

// patchStatus sends a strategic merge patch of the pod's status subresource.
func (x *Executor) patchStatus(ctx context.Context, c statusClient, p *object.Pod, body []byte) rest.Result {
	return c.Patch(types.StrategicMergePatchType).Namespace(p.Namespace).Resource("pods").Name(p.Name).
		SubResource("status").Body(body).Do(ctx)
}

// Abandon cancels everything that is queued or sent, without waiting for it. It does not cancel
// hosted plugins that run; Stop does.
func (x *Executor) Abandon() {
	x.asking.end()
	x.delegated.end()
	for _, p := range []*pool{x.bindings, x.requests, x.ended, x.status.pool, x.events.pool} {
		p.close(true)
		p.cancel()
	}
}
