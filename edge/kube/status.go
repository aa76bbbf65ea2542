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

// statusClient is the part of a client that patches.
type statusClient interface {
	Patch(types.PatchType) *rest.Request
}

// condition is a pod condition as a patch writes it. Fields left out stay as they are in
// the API, which identifies conditions by type.
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

// statusQueue holds at most one patch a pod: a later one is merged into the one
// that waits. Patches of one pod are sent one after the other.
type statusQueue struct{ *patches[machine.PatchStatus] }

func newStatusQueue(p *pool, send func(context.Context, machine.PatchStatus) bool) *statusQueue {
	return &statusQueue{newPatches(p, merged, rewords, send)}
}

// add queues a patch, or merges it into the one that waits.
func (q *statusQueue) add(e machine.PatchStatus) { q.patches.add(e.Pod.UID, e) }

// merged returns the patch that does what both do, the later one last.
func merged(earlier, later machine.PatchStatus) machine.PatchStatus {
	if later.Condition == nil {
		later.Condition = earlier.Condition
	}
	if later.Nominated == nil {
		later.Nominated = earlier.Nominated
	}
	return later
}

// rewords reports whether the later patch writes the earlier condition with another message.
func rewords(earlier, later machine.PatchStatus) bool {
	was, is := earlier.Condition, later.Condition
	return later.Nominated == nil && was != nil && is != nil && was.Status == is.Status && was.Reason == is.Reason
}

// nominations returns the number of pods of which a nomination is still to be written.
func (q *statusQueue) nominations() int { return q.count(nominates) }

func nominates(p *machine.PatchStatus) bool { return p.Nominated != nil }
