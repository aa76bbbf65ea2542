package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// groupCondition is a PodGroup's condition in the JSON of a patch.
type groupCondition struct {
	Type               string       `json:"type"`
	Status             string       `json:"status"`
	Reason             string       `json:"reason"`
	Message            string       `json:"message"`
	ObservedGeneration int64        `json:"observedGeneration,omitempty"`
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// groupStatusOf returns the strategic merge patch for a PatchGroupStatus effect. The
// transition time is set only if the condition's status changes. The patch has the UID: the
// API server then rejects it if another PodGroup has the name by then.
func groupStatusOf(e machine.PatchGroupStatus, now time.Time) []byte {
	c := e.Condition
	written := groupCondition{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
		ObservedGeneration: c.ObservedGeneration}
	if c.Status != e.Group.Scheduled.Status {
		written.LastTransitionTime = &metav1.Time{Time: now}
	}
	return objectPatch(&e.Group.Meta, map[string]any{"conditions": []groupCondition{written}})
}

// latest returns the later of two patches of a status, which alone is to be sent: each patch
// sets all that the machine writes there.
func latest[T machine.PatchGroupStatus | machine.PatchGroupPhase | machine.PatchQuotaStatus](_, later T) T {
	return later
}

// rewordsGroup reports whether the later patch changes at most the message of the condition
// in the earlier one.
func rewordsGroup(earlier, later machine.PatchGroupStatus) bool {
	later.Condition.Message = earlier.Condition.Message
	return later.Condition == earlier.Condition
}

// patchGroup carries out a PatchGroupStatus effect, for Kubernetes' own PodGroup. It returns
// false if the effect is to be tried again.
func (x *Executor) patchGroup(ctx context.Context, e machine.PatchGroupStatus) bool {
	return x.patchObject(ctx, "PatchGroupStatus", x.clients.GroupStatus.Patch(types.StrategicMergePatchType), &e.Group.Meta, groupStatusOf(e, time.Now()))
}

// phaseOf returns the JSON merge patch for a PatchGroupPhase effect. The patch has the UID: the
// API server then rejects it if another PodGroup has the name by then.
func phaseOf(e machine.PatchGroupPhase) []byte {
	s := e.Status
	return objectPatch(&e.Group.Meta, map[string]any{
		"phase": s.Phase, "occupiedBy": s.OccupiedBy, "running": s.Running, "succeeded": s.Succeeded, "failed": s.Failed,
	})
}

// rewordsPhase reports whether the later patch leaves the phase as the earlier one sets it. The
// numbers of pods change with each pod, so such a patch waits for statusPause.
func rewordsPhase(earlier, later machine.PatchGroupPhase) bool {
	return earlier.Status.Phase == later.Status.Phase
}

// patchPhase carries out a PatchGroupPhase effect, for a PodGroup of scheduler-plugins. It
// returns false if the effect is to be tried again.
func (x *Executor) patchPhase(ctx context.Context, e machine.PatchGroupPhase) bool {
	return x.patchObject(ctx, "PatchGroupPhase", x.clients.CustomStatus.Patch(types.MergePatchType), &e.Group.Meta, phaseOf(e))
}

// objectPatch returns a patch that sets these fields of the object's status, with its UID.
func objectPatch(m *object.Meta, status map[string]any) []byte {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": m.UID}, "status": status})
	if err != nil {
		panic(fmt.Sprintf("patch of %s %s: %v", m.Kind, m.Key(), err)) // strings and numbers only
	}
	return body
}

// patchObject sends body, a patch of the object's status, by r for the effect of that name. It
// returns false if the patch failed and is to be tried again, even if the API server refuses
// it: a missing right, or a missing field of the CustomResourceDefinition, may be added later.
// An object that is gone counts as done.
func (x *Executor) patchObject(ctx context.Context, effect string, r *rest.Request, m *object.Meta, body []byte) bool {
	err := contained(effect, func() error {
		return r.Namespace(m.Namespace).Resource(m.Kind.Resource()).Name(m.Name).SubResource("status").Body(body).Do(ctx).Error()
	})
	if err == nil || !transient(err) && gone(err) {
		return true
	}
	x.patchFailed.Add(1)
	message, ref := "Failed to update "+m.Kind.ManifestName()+" status", klog.KRef(m.Namespace, m.Name)
	if transient(err) {
		x.logger.V(2).Info(message+", retrying", "object", ref, "err", err)
	} else {
		x.logger.Error(err, message, "object", ref)
	}
	return false
}
