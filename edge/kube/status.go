package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// statusClient is the part of a client that patches.
type statusClient interface {
	Patch(types.PatchType) *rest.Request
}

// condition is a pod condition as a patch writes it. What is left out stays as
// it is in the API; conditions are told apart by type.
type condition struct {
	Type               v1.PodConditionType `json:"type"`
	Status             v1.ConditionStatus  `json:"status"`
	Reason             string              `json:"reason"`
	Message            string              `json:"message"`
	ObservedGeneration int64               `json:"observedGeneration,omitempty"`
	LastTransitionTime *metav1.Time        `json:"lastTransitionTime,omitempty"`
}

// podPatch renders a strategic merge patch of a pod's status. The UID makes the
// API server refuse it when the name has another owner by then.
func podPatch(p *object.Pod, status map[string]any) []byte {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": status})
	if err != nil {
		panic(fmt.Sprintf("patch of pod %s: %v", p.Key(), err)) // strings and numbers only
	}
	return body
}

// statusOf renders a Patch effect. The time of transition changes with the
// condition's status only.
func statusOf(e machine.PatchStatus, now time.Time) []byte {
	status := map[string]any{}
	if c := e.Condition; c != nil {
		written := condition{Type: v1.PodScheduled, Status: c.Status, Reason: c.Reason, Message: c.Message,
			ObservedGeneration: e.Pod.Generation}
		if c.Status != e.Pod.Scheduled.Status {
			written.LastTransitionTime = &metav1.Time{Time: now}
		}
		status["conditions"] = []condition{written}
	}
	if n := e.Nominated; n != nil {
		status["nominatedNodeName"] = n
		if *n == "" {
			status["nominatedNodeName"] = nil
		}
	}
	return podPatch(e.Pod, status)
}

// disruption renders the condition of a victim.
func disruption(victim *object.Pod, message string, now time.Time) []byte {
	return podPatch(victim, map[string]any{"conditions": []condition{{
		Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler,
		Message: message, ObservedGeneration: victim.Generation, LastTransitionTime: &metav1.Time{Time: now},
	}}})
}

// A patch that fails is tried again after a wait that doubles, for about eight
// minutes; by then the pod's next attempt, which writes the state of that time,
// is due. kube-scheduler tries four times within half a second.
const (
	statusTries   = 24
	statusBackoff = 100 * time.Millisecond
	statusWait    = 30 * time.Second // the longest
)

// statusQueue holds at most one patch a pod: a later one is merged into the one
// that waits. Patches of one pod are sent one after the other.
type statusQueue struct {
	pool *pool
	send func(context.Context, machine.PatchStatus) bool // false: to be tried again

	mu   sync.Mutex
	pods map[types.UID]*podStatus
}

// podStatus is what waits, and what is under way, for one pod.
type podStatus struct {
	patch   *machine.PatchStatus // to be sent
	queued  bool                 // a job or a timer will look at this
	sending *machine.PatchStatus // is on its way
	tries   int                  // of this patch, or of one that was merged into it
	then    func()               // to be called when what is being sent has arrived
}

func newStatusQueue(p *pool, send func(context.Context, machine.PatchStatus) bool) *statusQueue {
	return &statusQueue{pool: p, send: send, pods: map[types.UID]*podStatus{}}
}

// add queues a patch, or merges it into the one that waits.
func (q *statusQueue) add(e machine.PatchStatus) {
	q.mu.Lock()
	defer q.mu.Unlock()
	uid := e.Pod.UID
	s := q.pods[uid]
	if s == nil {
		s = &podStatus{}
		q.pods[uid] = s
	}
	s.patch = merged(s.patch, e)
	q.enqueue(uid, s)
}

// merged is the patch that does what both do, the later one last.
func merged(earlier *machine.PatchStatus, later machine.PatchStatus) *machine.PatchStatus {
	if earlier != nil && later.Condition == nil {
		later.Condition = earlier.Condition
	}
	if earlier != nil && later.Nominated == nil {
		later.Nominated = earlier.Nominated
	}
	return &later
}

// pending is the number of pods of which a status is still to be written.
func (q *statusQueue) pending() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.pods)
}

// nominations is the number of pods of which a nomination is still to be written.
func (q *statusQueue) nominations() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range q.pods { // any order: a sum
		if nominates(s.patch) || nominates(s.sending) {
			n++
		}
	}
	return n
}

func nominates(p *machine.PatchStatus) bool { return p != nil && p.Nominated != nil }

func (q *statusQueue) enqueue(uid types.UID, s *podStatus) {
	if !s.queued && s.sending == nil {
		s.queued = q.pool.submit(func(ctx context.Context) { q.next(ctx, uid) })
	}
	if !s.queued && s.sending == nil {
		delete(q.pods, uid) // closed: nothing will be sent any more
	}
}

// cancel voids the pod's patch that waits and calls then once none is on its
// way, at once in most cases.
func (q *statusQueue) cancel(uid types.UID, then func()) {
	q.mu.Lock()
	s := q.pods[uid]
	if s != nil {
		s.patch = nil
		if s.sending != nil {
			s.then = then
			q.mu.Unlock()
			return
		}
	}
	q.mu.Unlock()
	then()
}

// next sends the pod's patch, if there still is one.
func (q *statusQueue) next(ctx context.Context, uid types.UID) {
	q.mu.Lock()
	s := q.pods[uid]
	patch := s.patch
	s.patch, s.queued, s.sending = nil, false, patch
	q.mu.Unlock()

	done := patch == nil || q.send(ctx, *patch)

	q.mu.Lock()
	then := s.then
	s.then, s.sending = nil, nil
	if !done && then == nil && s.tries < statusTries {
		q.again(ctx, uid, s, *patch)
	} else if s.tries = 0; s.patch != nil {
		q.enqueue(uid, s)
	} else if !s.queued {
		delete(q.pods, uid)
	}
	q.mu.Unlock()
	if then != nil {
		then()
	}
}

// again puts back a patch that failed, under what came meanwhile, and queues it
// after a while.
func (q *statusQueue) again(ctx context.Context, uid types.UID, s *podStatus, failed machine.PatchStatus) {
	if s.patch != nil {
		failed = *merged(&failed, *s.patch)
	}
	s.patch, s.queued = &failed, true
	wait := min(statusBackoff<<s.tries, statusWait)
	s.tries++
	time.AfterFunc(wait, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		s.queued = false
		q.enqueue(uid, s)
	})
}
