package nodevolumelimits

import (
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// eventsToRegister are the events that may help a rejected pod. v1.37 misses nodes that
// are added without a CSINode, CSINodes that are deleted, limits that are removed, and
// changes after which a volume of the pod is one that is attached already.
var eventsToRegister = []framework.ClusterEventWithHint{
	{Resource: framework.ResourceOf(object.CSINodes), ActionType: framework.Add | framework.Delete},
	{Resource: framework.ResourceOf(object.CSINodes), ActionType: framework.UpdateOther, QueueingHintFn: limitRaised},
	{Resource: framework.AssignedPod, ActionType: framework.Delete, QueueingHintFn: volumeDetached},
	{Resource: framework.Node, ActionType: framework.Add},
	{Resource: framework.ResourceOf(object.PersistentVolumeClaims), ActionType: framework.Delete},
	framework.OwnClaimChanged(true),
	{Resource: framework.ResourceOf(object.PersistentVolumes), ActionType: framework.Add | framework.UpdateOther | framework.Delete, QueueingHintFn: volumeChanged},
	{Resource: framework.ResourceOf(object.StorageClasses), ActionType: framework.Delete},
	{Resource: framework.ResourceOf(object.VolumeAttachments), ActionType: framework.Delete, QueueingHintFn: attachmentGone},
}

// installedEvents are the events for pods that were rejected because a driver is missing:
// it was installed, or is not required any more.
var installedEvents = []framework.ClusterEventWithHint{
	{Resource: framework.ResourceOf(object.CSINodes), ActionType: framework.UpdateOther, QueueingHintFn: driverAdded},
	{Resource: framework.ResourceOf(object.CSIDrivers), ActionType: framework.Delete},
	{Resource: framework.ResourceOf(object.CSIDrivers), ActionType: framework.UpdateOther, QueueingHintFn: limitLifted},
}

// driverAdded reports whether the CSINode lists a driver that it did not list before.
func driverAdded(_ *object.Pod, e *framework.Event) bool {
	old, now := e.OldObject.(*object.CSINode), e.NewObject.(*object.CSINode)
	return slices.ContainsFunc(now.Drivers, func(d object.CSINodeDriver) bool { return !old.Has(d.Name) })
}

// limitLifted reports whether the CSIDriver no longer keeps pods off nodes without the
// driver.
func limitLifted(_ *object.Pod, e *framework.Event) bool {
	return e.OldObject.(*object.CSIDriver).PreventIfMissing && !e.NewObject.(*object.CSIDriver).PreventIfMissing
}

// limitRaised reports whether a driver of the CSINode can attach more volumes than before, or any
// number. A driver that got its first limit counts, too, unless that is 0.
func limitRaised(_ *object.Pod, e *framework.Event) bool {
	old, now := e.OldObject.(*object.CSINode), e.NewObject.(*object.CSINode)
	for _, was := range old.Drivers {
		if i := slices.IndexFunc(now.Drivers, func(d object.CSINodeDriver) bool { return d.Name == was.Name }); was.Limited &&
			(i < 0 || !now.Drivers[i].Limited || now.Drivers[i].Limit > was.Limit) {
			return true
		}
	}
	return slices.ContainsFunc(now.Drivers, func(d object.CSINodeDriver) bool {
		return d.Limited && d.Limit > 0 && !slices.ContainsFunc(old.Drivers, func(was object.CSINodeDriver) bool { return was.Name == d.Name && was.Limited })
	})
}

// volumeDetached reports whether the deleted pod had, or was nominated to, a node and has volumes
// that may be attached.
func volumeDetached(_ *object.Pod, e *framework.Event) bool {
	return (e.OldPod.NodeName != "" || e.OldPod.NominatedNode != "") && attaches(e.OldPod)
}

// volumeChanged reports whether the volume is, or was, reserved (by claimRef) for a claim of the
// pod.
func volumeChanged(p *object.Pod, e *framework.Event) bool {
	ours := func(o object.Object) bool {
		v, ok := o.(*object.PersistentVolume)
		return ok && v.Claim != nil && v.Claim.Namespace == p.Namespace && p.UsesPVC(v.Claim.Name, true)
	}
	return ours(e.OldObject) || ours(e.NewObject)
}

// attachmentGone reports whether a pod may fit after a VolumeAttachment was deleted: it has
// an inline volume of that attachment's driver, or a claim, whose driver is unknown.
func attachmentGone(p *object.Pod, e *framework.Event) bool {
	driver := e.OldObject.(*object.VolumeAttachment).Attacher
	return slices.ContainsFunc(p.Volumes, func(v object.Volume) bool {
		return v.Claimed || v.Migrated != nil && v.Migrated.Source.Driver == driver
	})
}
