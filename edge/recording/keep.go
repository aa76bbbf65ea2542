package recording

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storage "k8s.io/component-helpers/storage/volume"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// keep returns a copy of the object without what edge/decode does not read: commands,
// environments and most annotations do not belong in a record.
func keep(o metav1.Object) api {
	switch o := o.(type) {
	case *v1.Pod:
		return keepPod(o)
	case *v1.Node:
		return keepNode(o)
	case *v1.Namespace:
		return &v1.Namespace{ObjectMeta: keepMeta(&o.ObjectMeta)}
	case *policyv1.PodDisruptionBudget:
		return &policyv1.PodDisruptionBudget{ObjectMeta: keepMeta(&o.ObjectMeta), Spec: policyv1.PodDisruptionBudgetSpec{Selector: o.Spec.Selector},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: o.Status.DisruptionsAllowed, DisruptedPods: o.Status.DisruptedPods}}
	case *v1.Service:
		return &v1.Service{ObjectMeta: keepMeta(&o.ObjectMeta), Spec: v1.ServiceSpec{Selector: o.Spec.Selector}}
	case *v1.ReplicationController:
		return &v1.ReplicationController{ObjectMeta: keepMeta(&o.ObjectMeta), Spec: v1.ReplicationControllerSpec{Selector: o.Spec.Selector}}
	case *appsv1.ReplicaSet:
		return &appsv1.ReplicaSet{ObjectMeta: keepMeta(&o.ObjectMeta), Spec: appsv1.ReplicaSetSpec{Selector: o.Spec.Selector}}
	case *appsv1.StatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: keepMeta(&o.ObjectMeta), Spec: appsv1.StatefulSetSpec{Selector: o.Spec.Selector}}
	}
	return keepObject(o)
}

// keepObject returns a copy of an object of a kind that only some plugins read; nil for
// an unknown kind. The specs of these kinds are small, and kept whole.
func keepObject(o metav1.Object) api {
	if k := decode.Of(o); k == nil || !k.HasObject() {
		return nil
	}
	kept := o.(api).DeepCopyObject().(api)
	kept.SetManagedFields(nil)
	kept.SetFinalizers(keepFinalizers(kept.GetFinalizers()))
	kept.SetAnnotations(keepAnnotations(kept.GetAnnotations()))
	switch o := kept.(type) {
	case *storagev1.StorageClass:
		o.Parameters, o.MountOptions = nil, nil
	case *storagev1.CSINode:
		for i := range o.Spec.Drivers {
			o.Spec.Drivers[i].NodeID = ""
		}
	}
	return kept
}

// keepFinalizers keeps the one that the scheduler writes where it is missing.
func keepFinalizers(all []string) []string {
	if slices.Contains(all, resourcev1.Finalizer) {
		return []string{resourcev1.Finalizer}
	}
	return nil
}

// annotations are those that decisions depend on.
var annotations = []string{
	storage.AnnBindCompleted, storage.AnnBoundByController, storage.AnnSelectedNode, v1.BetaStorageClassAnnotation,
	v1.MigratedPluginsAnnotationKey, resourcev1.ExtendedResourceClaimAnnotation, object.ParentAnnotation, object.PartsAnnotation,
	object.RequiredTopology, object.PreferredTopology,
}

func keepAnnotations(all map[string]string) map[string]string {
	var kept map[string]string
	for _, key := range annotations {
		if value, has := all[key]; has {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

func keepMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, Labels: m.Labels, Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp, OwnerReferences: m.OwnerReferences,
	}
}

func keepPod(p *v1.Pod) *v1.Pod {
	s, t := &p.Spec, &p.Status
	return &v1.Pod{
		ObjectMeta: keepMeta(&p.ObjectMeta),
		Spec: v1.PodSpec{
			Volumes: keepVolumes(s.Volumes), InitContainers: keepContainers(s.InitContainers), Containers: keepContainers(s.Containers),
			EphemeralContainers: keepEphemeral(s.EphemeralContainers),
			NodeSelector:        s.NodeSelector, NodeName: s.NodeName, HostNetwork: s.HostNetwork, HostUsers: s.HostUsers,
			Affinity: s.Affinity, SchedulerName: s.SchedulerName, Tolerations: s.Tolerations, Priority: s.Priority,
			PreemptionPolicy: s.PreemptionPolicy, Overhead: s.Overhead, TopologySpreadConstraints: s.TopologySpreadConstraints,
			SchedulingGates: s.SchedulingGates, SchedulingGroup: s.SchedulingGroup, ResourceClaims: s.ResourceClaims, Resources: s.Resources,
		},
		Status: v1.PodStatus{
			Phase: t.Phase, NominatedNodeName: t.NominatedNodeName, StartTime: t.StartTime, Conditions: keepConditions(t.Conditions),
			InitContainerStatuses: keepStatuses(t.InitContainerStatuses), ContainerStatuses: keepStatuses(t.ContainerStatuses),
			Resize: t.Resize, AllocatedResources: t.AllocatedResources, Resources: t.Resources,
			ResourceClaimStatuses: t.ResourceClaimStatuses, ExtendedResourceClaimStatus: t.ExtendedResourceClaimStatus,
			NodeAllocatableResourceClaimStatuses: t.NodeAllocatableResourceClaimStatuses,
		},
	}
}

func keepContainers(list []v1.Container) []v1.Container {
	if list == nil {
		return nil
	}
	kept := make([]v1.Container, len(list))
	for i := range list {
		c := &list[i]
		kept[i] = v1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources, RestartPolicy: c.RestartPolicy, RestartPolicyRules: c.RestartPolicyRules, VolumeMounts: keepMounts(c.VolumeMounts)}
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				kept[i].Ports = append(kept[i].Ports, p)
			}
		}
	}
	return kept
}

// keepEphemeral keeps the containers with options for mounts.
func keepEphemeral(list []v1.EphemeralContainer) []v1.EphemeralContainer {
	var kept []v1.EphemeralContainer
	for i := range list {
		if mounts := keepMounts(list[i].VolumeMounts); mounts != nil {
			kept = append(kept, v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{VolumeMounts: mounts}})
		}
	}
	return kept
}

// keepMounts keeps the options that a mount has: not every node knows of them.
func keepMounts(list []v1.VolumeMount) []v1.VolumeMount {
	var kept []v1.VolumeMount
	for i := range list {
		if o := list[i].BindMountOptions; len(o) > 0 {
			kept = append(kept, v1.VolumeMount{BindMountOptions: o})
		}
	}
	return kept
}

// keepStatuses keeps the state of a resize in place.
func keepStatuses(list []v1.ContainerStatus) []v1.ContainerStatus {
	var kept []v1.ContainerStatus
	for i := range list {
		if c := &list[i]; c.Resources != nil || c.AllocatedResources != nil {
			kept = append(kept, v1.ContainerStatus{Name: c.Name, Resources: c.Resources, AllocatedResources: c.AllocatedResources})
		}
	}
	return kept
}

func keepConditions(list []v1.PodCondition) []v1.PodCondition {
	var kept []v1.PodCondition
	for i := range list {
		switch c := &list[i]; c.Type {
		case v1.PodScheduled, v1.DisruptionTarget, v1.PodResizePending:
			kept = append(kept, v1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	return kept
}

// keepVolumes leaves out those that any node can provide.
func keepVolumes(list []v1.Volume) []v1.Volume {
	var kept []v1.Volume
	for i := range list {
		v := &list[i].VolumeSource
		if *v != (v1.VolumeSource{Projected: v.Projected, Secret: v.Secret, ConfigMap: v.ConfigMap, EmptyDir: v.EmptyDir, DownwardAPI: v.DownwardAPI, HostPath: v.HostPath}) {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// digestOf is a map that differs when the annotations do: nothing else is asked of
// them.
func digestOf(annotations map[string]string) map[string]string {
	if len(annotations) == 0 {
		return nil
	}
	h := fnv.New64a()
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		fmt.Fprintf(h, "%q%q", key, annotations[key])
	}
	return map[string]string{"digest": strconv.FormatUint(h.Sum64(), 36)}
}

func keepNode(n *v1.Node) *v1.Node {
	kept := &v1.Node{
		ObjectMeta: keepMeta(&n.ObjectMeta),
		Spec:       v1.NodeSpec{Unschedulable: n.Spec.Unschedulable, Taints: n.Spec.Taints, PodPreemptionPolicy: n.Spec.PodPreemptionPolicy},
		Status:     v1.NodeStatus{Allocatable: n.Status.Allocatable, Images: n.Status.Images, DeclaredFeatures: n.Status.DeclaredFeatures},
	}
	kept.Annotations = digestOf(n.Annotations)
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		kept.Status.Conditions = append(kept.Status.Conditions, v1.NodeCondition{Type: c.Type, Status: c.Status})
	}
	return kept
}
