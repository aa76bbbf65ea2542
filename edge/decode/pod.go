package decode

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// Ended reports whether the pod has succeeded or failed. It takes no room and wants none.
func Ended(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
}

// Unfinished is the field selector of the pods that have not ended.
const Unfinished = "status.phase!=Succeeded,status.phase!=Failed"

// Pod decodes a pod. The result shares maps and slices with the API object,
// which must not be changed afterwards.
func Pod(p *v1.Pod) *object.Pod {
	spec := &p.Spec
	pod := &object.Pod{
		UID:             p.UID,
		Namespace:       p.Namespace,
		Name:            p.Name,
		Version:         p.ResourceVersion,
		Labels:          p.Labels,
		SchedulerName:   spec.SchedulerName,
		NodeName:        spec.NodeName,
		NominatedNode:   p.Status.NominatedNodeName,
		NeverPreempts:   spec.PreemptionPolicy != nil && *spec.PreemptionPolicy == v1.PreemptNever,
		Created:         p.CreationTimestamp.Time,
		SchedulingGroup: object.InPodGroup(PodGroupName(spec)),
		Terminating:     p.DeletionTimestamp != nil,
		Terminal:        Ended(p),
		Running:         p.Status.Phase == v1.PodRunning,
		Failed:          p.Status.Phase == v1.PodFailed,
		Generation:      p.Generation,
		Demand:          resource.OfPod(p),
		FromDevices:     p.Status.NodeAllocatableResourceClaimStatuses,
		Limits:          resource.Limits(p),
		Tolerations:     match.NewTolerations(spec.Tolerations),
		Controller:      controller(p),
		HostPorts:       hostPorts(spec),
		Images:          podImages(spec),
		Claims:          podClaims(p),
		Extended:        extendedRequests(spec),
		Volumes:         podVolumes(p),
		Features:        neededFeatures(spec),
	}
	if list := owners(p); list != "" {
		pod.SchedulingGroup = &object.SchedulingGroup{PodGroupName: pod.PodGroup(), Owners: list}
	}
	pod.Claiming = claiming(p, pod.Extended)
	if spec.Priority != nil {
		pod.Priority = *spec.Priority
	}
	if p.Status.StartTime != nil {
		pod.Started = p.Status.StartTime.Time
	}
	for i := range spec.SchedulingGates {
		pod.Gates = append(pod.Gates, spec.SchedulingGates[i].Name)
	}
	var affinity v1.NodeAffinity
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		affinity = *spec.Affinity.NodeAffinity
	}
	pod.RequiredNodes = match.NewNodeSelector(spec.NodeSelector, affinity.RequiredDuringSchedulingIgnoredDuringExecution)
	pod.PreferredNodes = match.NewPreferredNodes(affinity.PreferredDuringSchedulingIgnoredDuringExecution)
	pod.Affinity = match.NewPodAffinity(spec.Affinity, p.Namespace)
	if spec.NodeName == "" {
		pod.Spread = match.NewSpread(spec.TopologySpreadConstraints, p.Labels)
	}
	conditions(pod, p.Status.Conditions)
	return pod
}

func conditions(pod *object.Pod, list []v1.PodCondition) {
	for i := range list {
		switch c := &list[i]; c.Type {
		case v1.PodScheduled:
			pod.Scheduled = object.Condition{Status: c.Status, Reason: c.Reason, Message: c.Message}
		case v1.DisruptionTarget:
			pod.Disrupted = c.Status == v1.ConditionTrue && c.Reason == v1.PodReasonPreemptionByScheduler
		}
	}
}

// hostPorts lists the host ports of the containers that run for as long as
// the pod does: restartable init containers and containers.
func hostPorts(spec *v1.PodSpec) []object.HostPort {
	var ports []object.HostPort
	for i := range spec.InitContainers {
		if restartable(&spec.InitContainers[i]) {
			ports = appendHostPorts(ports, spec.InitContainers[i].Ports)
		}
	}
	for i := range spec.Containers {
		ports = appendHostPorts(ports, spec.Containers[i].Ports)
	}
	return ports
}

func restartable(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}

func appendHostPorts(ports []object.HostPort, list []v1.ContainerPort) []object.HostPort {
	for i := range list {
		p := &list[i]
		if p.HostPort <= 0 {
			continue
		}
		hp := object.HostPort{IP: p.HostIP, Protocol: p.Protocol, Port: p.HostPort}
		if hp.IP == "" {
			hp.IP = "0.0.0.0"
		}
		if hp.Protocol == "" {
			hp.Protocol = v1.ProtocolTCP
		}
		ports = append(ports, hp)
	}
	return ports
}

// podImages lists the images that ImageLocality looks for on nodes.
func podImages(spec *v1.PodSpec) []string {
	images := make([]string, 0, len(spec.InitContainers)+len(spec.Containers))
	for i := range spec.InitContainers {
		images = append(images, Image(spec.InitContainers[i].Image))
	}
	for i := range spec.Containers {
		images = append(images, Image(spec.Containers[i].Image))
	}
	for i := range spec.Volumes {
		if v := spec.Volumes[i].Image; v != nil {
			images = append(images, Image(v.Reference))
		}
	}
	return slices.Clip(images)
}

// Image returns the reference as nodes report it. A reference without tag and
// digest gets the tag "latest".
func Image(reference string) string {
	if strings.LastIndexByte(reference, ':') <= strings.LastIndexByte(reference, '/') {
		return reference + ":latest"
	}
	return reference
}
