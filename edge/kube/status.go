package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// statusClient is the method of rest.Interface by which a pod's status is patched.
type statusClient interface {
	Patch(types.PatchType) *rest.Request
}

// condition is a pod condition in the JSON of a patch. Fields left out keep their value in
// the API, which identifies conditions by type.
type condition struct {
	Type               v1.PodConditionType `json:"type"`
	Status             v1.ConditionStatus  `json:"status"`
	Reason             string              `json:"reason"`
	Message            string              `json:"message"`
	ObservedGeneration int64               `json:"observedGeneration,omitempty"`
	LastTransitionTime *metav1.Time        `json:"lastTransitionTime,omitempty"`
}

// podPatch returns a strategic merge patch that sets these fields of the pod's status. The
// UID makes the API server reject it if another pod has the name by then.
func podPatch(p *object.Pod, status map[string]any) []byte {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": status})
	if err != nil {
		panic(fmt.Sprintf("patch of pod %s: %v", p.Key(), err)) // strings and numbers only
	}
	return body
}

// statusOf returns the strategic merge patch for a PatchStatus effect. The transition time
// is set only if the condition's status changes.
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

// disruption returns the patch that sets a preemption victim's DisruptionTarget condition.
func disruption(victim *object.Pod, message string, now time.Time) []byte {
	return podPatch(victim, map[string]any{"conditions": []condition{{
		Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler,
		Message: message, ObservedGeneration: victim.Generation, LastTransitionTime: &metav1.Time{Time: now},
	}}})
}

// statusQueue is the queue of pod status patches, at most one waiting for each pod.
type statusQueue struct{ *patches[machine.PatchStatus] }

// newStatusQueue returns an empty queue whose patches are sent by jobs of the pool.
func newStatusQueue(p *pool, send func(context.Context, machine.PatchStatus) bool) *statusQueue {
	return &statusQueue{newPatches(p, merged, rewords, send)}
}

// add queues a pod's patch, or merges it into the one that waits.
func (q *statusQueue) add(e machine.PatchStatus) { q.patches.add(e.Pod.UID, e) }

// merged returns the patch that has the effect of both: condition and nomination are each that
// of the later patch if it sets one, else that of the earlier.
func merged(earlier, later machine.PatchStatus) machine.PatchStatus {
	if later.Condition == nil {
		later.Condition = earlier.Condition
	}
	if later.Nominated == nil {
		later.Nominated = earlier.Nominated
	}
	return later
}

// rewords reports whether the later patch changes at most the message of the condition in the
// earlier one.
func rewords(earlier, later machine.PatchStatus) bool {
	was, is := earlier.Condition, later.Condition
	return later.Nominated == nil && was != nil && is != nil && was.Status == is.Status && was.Reason == is.Reason
}

// nominations returns the number of pods whose nominatedNodeName is still to be written.
func (q *statusQueue) nominations() int { return q.count(nominates) }

// nominates reports whether the patch sets or clears the nominatedNodeName.
func nominates(p *machine.PatchStatus) bool { return p.Nominated != nil }
