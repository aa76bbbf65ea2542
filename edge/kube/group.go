package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
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
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": e.Group.UID},
		"status":   map[string]any{"conditions": []groupCondition{written}},
	})
	if err != nil {
		panic(fmt.Sprintf("patch of pod group %s: %v", e.Group.Key(), err)) // strings and numbers only
	}
	return body
}

// latest returns the one of two patches of a status that is to be sent: the later, since each
// patch sets all that the machine writes there.
func latest[T machine.PatchGroupStatus | machine.PatchQuotaStatus](_, later T) T { return later }

// rewordsGroup reports whether the later patch changes only the message of the condition
// in the earlier one.
func rewordsGroup(earlier, later machine.PatchGroupStatus) bool {
	later.Condition.Message = earlier.Condition.Message
	return later.Condition == earlier.Condition
}

// patchGroup carries out a PatchGroupStatus effect. It returns false if it failed,
// also if the API server refuses the patch: it may do so for want of a right. A group
// that is gone counts as done.
func (x *Executor) patchGroup(ctx context.Context, e machine.PatchGroupStatus) bool {
	err := contained("PatchGroupStatus", func() error {
		return x.clients.GroupStatus.Patch(types.StrategicMergePatchType).Namespace(e.Group.Namespace).Resource("podgroups").Name(e.Group.Name).
			SubResource("status").Body(groupStatusOf(e, time.Now())).Do(ctx).Error()
	})
	if err == nil || !transient(err) && gone(err) {
		return true
	}
	x.patchFailed.Add(1)
	group := klog.KRef(e.Group.Namespace, e.Group.Name)
	if transient(err) {
		x.logger.V(2).Info("Failed to update PodGroup status, retrying", "podGroup", group, "err", err)
	} else {
		x.logger.Error(err, "Failed to update PodGroup status", "podGroup", group)
	}
	return false
}
