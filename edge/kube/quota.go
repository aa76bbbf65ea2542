package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/resource"
)

// anyQuota is patches.rewords for quotas. It is true, so that each patch of a quota's status
// waits for statusPause after the one before: what a queue uses changes with each of its pods.
func anyQuota(_, _ machine.PatchQuotaStatus) bool { return true }

// quotaStatusOf returns the JSON merge patch that sets status.used for a PatchQuotaStatus
// effect. It removes the resources that the status shows and that the effect does not name. It
// has the UID: the API server then rejects it if another ElasticQuota has the name by then.
func quotaStatusOf(e machine.PatchQuotaStatus) []byte {
	used := map[string]any{}
	for _, a := range e.Quota.Used {
		used[string(a.Name)] = nil
	}
	for _, a := range e.Used {
		used[string(a.Name)] = resource.Quantity(a.Name, a.Value)
	}
	return objectPatch(&e.Quota.Meta, map[string]any{"used": used})
}

// patchQuota carries out a PatchQuotaStatus effect. It returns false if the effect is to be
// tried again.
func (x *Executor) patchQuota(ctx context.Context, e machine.PatchQuotaStatus) bool {
	return x.patchObject(ctx, "PatchQuotaStatus", x.clients.CustomStatus.Patch(types.MergePatchType), &e.Quota.Meta, quotaStatusOf(e))
}
