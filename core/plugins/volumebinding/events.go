package volumebinding

import (
	"reflect"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// eventsToRegister are the events that may help a rejected pod. v1.37 misses deleted
// volumes that were reserved for a claim of the pod, deleted CSINodes, and drivers of
// claimed volumes.
var eventsToRegister = []framework.ClusterEventWithHint{
	{Resource: framework.ResourceOf(object.StorageClasses), ActionType: framework.Add | framework.UpdateOther, QueueingHintFn: classChanged},
	framework.OwnClaimChanged(true),
	{Resource: framework.ResourceOf(object.PersistentVolumes), ActionType: framework.Add | framework.UpdateOther},
	{Resource: framework.ResourceOf(object.PersistentVolumes), ActionType: framework.Delete, QueueingHintFn: preBoundGone},
	{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeLabel},
	{Resource: framework.ResourceOf(object.CSINodes), ActionType: framework.Add | framework.Delete},
	{Resource: framework.ResourceOf(object.CSINodes), ActionType: framework.UpdateOther, QueueingHintFn: migrationChanged},
	{Resource: framework.ResourceOf(object.CSIDrivers), ActionType: framework.Delete},
	{Resource: framework.ResourceOf(object.CSIDrivers), ActionType: framework.UpdateOther, QueueingHintFn: capacityIgnored},
	{Resource: framework.ResourceOf(object.CSIStorageCapacities), ActionType: framework.Add | framework.UpdateOther, QueueingHintFn: capacityGrew},
}

// classChanged reports whether the StorageClass is new, or its topologies, provisioner
// or binding mode changed.
func classChanged(_ *object.Pod, e *framework.Event) bool {
	if e.OldObject == nil {
		return true
	}
	old, now := e.OldObject.(*object.StorageClass), e.NewObject.(*object.StorageClass)
	return !reflect.DeepEqual(old.Topologies, now.Topologies) || old.Provisioner != now.Provisioner || old.WaitForFirstConsumer != now.WaitForFirstConsumer
}

// preBoundGone reports whether the deleted volume was reserved for a claim of the pod,
// and so kept other volumes from it.
func preBoundGone(p *object.Pod, e *framework.Event) bool {
	r := e.OldObject.(*object.PersistentVolume).Claim
	return r != nil && r.Namespace == p.Namespace && p.UsesPVC(r.Name, true)
}

// migrationChanged reports whether the node's CSI drivers serve other in-tree plugins
// than before.
func migrationChanged(_ *object.Pod, e *framework.Event) bool {
	return e.OldObject.(*object.CSINode).Migrated != e.NewObject.(*object.CSINode).Migrated
}

// capacityIgnored reports whether the capacity that the driver reports no longer limits
// volumes.
func capacityIgnored(_ *object.Pod, e *framework.Event) bool {
	return e.OldObject.(*object.CSIDriver).StorageCapacity && !e.NewObject.(*object.CSIDriver).StorageCapacity
}

// capacityGrew reports whether a CSIStorageCapacity is new, larger, or for other nodes or another
// class than before. An update after which it reports no capacity does not count.
func capacityGrew(_ *object.Pod, e *framework.Event) bool {
	if e.OldObject == nil {
		return true
	}
	old, now := e.OldObject.(*object.CSIStorageCapacity), e.NewObject.(*object.CSIStorageCapacity)
	return now.Known && (!old.Known || now.Bytes > old.Bytes || now.Class != old.Class || !reflect.DeepEqual(old.Nodes, now.Nodes))
}
