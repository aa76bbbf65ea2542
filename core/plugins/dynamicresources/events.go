package dynamicresources

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// eventsToRegister returns kube-scheduler's events, and deleted ResourceSlices, which may have made
// their pool invalid. If nodeResources is set (devices may consume node resources), it adds pods
// that are deleted or scaled down, which may help pods that need devices.
func eventsToRegister(nodeResources bool) []framework.ClusterEventWithHint {
	const changed = framework.Add | framework.UpdateOther
	list := []framework.ClusterEventWithHint{
		{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeLabel | framework.UpdateNodeAllocatable},
		{Resource: framework.ResourceOf(object.ResourceClaims), ActionType: changed | framework.Delete, QueueingHintFn: claimHelps},
		{Resource: framework.TargetPod, ActionType: framework.UpdatePodGeneratedResourceClaim, QueueingHintFn: podChanged},
		{Resource: framework.ResourceOf(object.DeviceClasses), ActionType: changed},
		{Resource: framework.ResourceOf(object.ResourceSlices), ActionType: changed | framework.Delete},
	}
	if nodeResources {
		list = append(list, framework.ClusterEventWithHint{Resource: framework.AssignedPod, ActionType: framework.Delete | framework.UpdatePodScaleDown,
			QueueingHintFn: func(p *object.Pod, _ *framework.Event) bool { return p.Claiming != nil }})
	}
	return list
}

// claimHelps reports whether a change of a claim may help the rejected pod p: devices became free,
// or a claim of p came or changed its status. Like kube-scheduler it is false, but for deleted
// claims, if p's status lacks the name of a generated claim, or if the changed claim of p is being
// deleted or was made for another pod. Unlike kube-scheduler it reacts to deleted claims that an
// earlier attempt made for p, whatever they have.
func claimHelps(p *object.Pod, e *framework.Event) bool {
	old, _ := e.OldObject.(*object.ResourceClaim)
	if e.ActionType == framework.Delete {
		return old.Allocation() != nil || old.IndexKey() == string(p.UID)
	}
	now := e.NewObject.(*object.ResourceClaim)
	uses := false
	for i := range p.Claims {
		c := &p.Claims[i]
		if c.Error != "" {
			return false
		}
		if now.Namespace == p.Namespace && now.Name == c.Claim {
			if now.API.DeletionTimestamp != nil || c.Owned && !ownedBy(now, p) {
				return false
			}
			uses = true
		}
	}
	switch {
	case old != nil && old.Allocation() != nil && now.Allocation() == nil:
		return true
	case !uses:
		return false
	}
	return old == nil || old.UID != now.UID || !equality.Semantic.DeepEqual(&old.API.Status, &now.API.Status)
}

// podChanged reports whether the names of all generated claims of the pod itself are in
// its status now.
func podChanged(_ *object.Pod, e *framework.Event) bool {
	for i := range e.NewPod.Claims {
		if e.NewPod.Claims[i].Error != "" {
			return false
		}
	}
	return true
}
