package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// anyQuota makes every patch of a quota's status wait for statusPause after the one before:
// what a queue uses changes with each of its pods.
func anyQuota(_, _ machine.PatchQuotaStatus) bool { return true }

// quotaStatusOf returns the JSON merge patch for a PatchQuotaStatus effect. It removes the
// resources that the status shows and that do not belong there. It has the UID: the API
// server then rejects it if another ElasticQuota has the name by then.
func quotaStatusOf(e machine.PatchQuotaStatus) []byte {
	used := map[string]any{}
	for _, a := range e.Quota.Used {
		used[string(a.Name)] = nil
	}
	for _, a := range e.Used {
		used[string(a.Name)] = resource.Quantity(a.Name, a.Value)
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": e.Quota.UID},
		"status":   map[string]any{"used": used},
	})
	if err != nil {
		panic(fmt.Sprintf("patch of ElasticQuota %s: %v", e.Quota.Key(), err)) // strings and numbers only
	}
	return body
}

// patchQuota carries out a PatchQuotaStatus effect. It returns false if it failed,
// also if the API server refuses the patch: it may do so for want of a right, or of a field
// of the CustomResourceDefinition. An ElasticQuota that is gone counts as done.
func (x *Executor) patchQuota(ctx context.Context, e machine.PatchQuotaStatus) bool {
	err := contained("PatchQuotaStatus", func() error {
		return x.clients.CustomStatus.Patch(types.MergePatchType).Namespace(e.Quota.Namespace).Resource(object.ElasticQuotas.Resource()).Name(e.Quota.Name).
			SubResource("status").Body(quotaStatusOf(e)).Do(ctx).Error()
	})
	if err == nil || !transient(err) && gone(err) {
		return true
	}
	x.patchFailed.Add(1)
	quota := klog.KRef(e.Quota.Namespace, e.Quota.Name)
	if transient(err) {
		x.logger.V(2).Info("Failed to update ElasticQuota status, retrying", "elasticQuota", quota, "err", err)
	} else {
		x.logger.Error(err, "Failed to update ElasticQuota status", "elasticQuota", quota)
	}
	return false
}
