package noderesources

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/sums"
)

// eventsToRegister returns the events that may help a rejected pod: pods are deleted, a pod or the
// rejected one itself is scaled down, nodes are added or grow, and DeviceClasses begin to provide a
// resource.
func eventsToRegister(ig ignored) []framework.ClusterEventWithHint {
	list := []framework.ClusterEventWithHint{
		{Resource: framework.AssignedPod, ActionType: framework.Delete},
		{Resource: framework.AssignedPod, ActionType: framework.UpdatePodScaleDown, QueueingHintFn: ig.shrunk},
		{Resource: framework.TargetPod, ActionType: framework.UpdatePodScaleDown},
		{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeAllocatable, QueueingHintFn: ig.grown},
	}
	if ig.classes {
		list = append(list, framework.ClusterEventWithHint{Resource: framework.ResourceOf(object.DeviceClasses), ActionType: framework.Add | framework.UpdateOther, QueueingHintFn: deviceClassChanged})
	}
	return list
}

// deviceClassChanged reports whether a DeviceClass now provides an extended resource that it did
// not provide before, and a container of the pod names it. A new class also provides the resource
// that is named after it (deviceclass.resource.kubernetes.io/NAME).
func deviceClassChanged(p *object.Pod, e *framework.Event) bool {
	now := e.NewObject.(*object.DeviceClass)
	resource := extendedName(now)
	if old, _ := e.OldObject.(*object.DeviceClass); old == nil {
		if mentions(p, v1.ResourceName(resourcev1.ResourceDeviceClassPrefix+now.Name)) {
			return true
		}
	} else if extendedName(old) == resource {
		return false
	}
	return mentions(p, resource)
}

// extendedName returns the class's extendedResourceName; "" for none.
func extendedName(c *object.DeviceClass) v1.ResourceName {
	if c.API.Spec.ExtendedResourceName == nil {
		return ""
	}
	return v1.ResourceName(*c.API.Spec.ExtendedResourceName)
}

// mentions reports whether a container of the pod names the extended resource, even with a request
// of 0. It is false for resources for which no DeviceClass may stand, such as cpu.
func mentions(p *object.Pod, resource v1.ResourceName) bool {
	return slices.ContainsFunc(p.Extended, func(r object.ExtendedRequest) bool { return r.Resource == resource })
}

// shrunk reports whether a placed pod requests less than before of a resource that the
// rejected pod requests.
func (ig ignored) shrunk(p *object.Pod, e *framework.Event) bool {
	was, is := &e.OldPod.Demand.Usage, &e.NewPod.Demand.Usage
	return ig.any(p, func(name v1.ResourceName, _ int64) bool { return was.Of(name) > is.Of(name) })
}

// grown reports whether the node, if it were empty, would fit the pod, and is new or has more
// allocatable than before of a resource that the pod requests, or of pods. A resource that the node
// lacks and a DeviceClass provides counts as more.
func (ig ignored) grown(p *object.Pod, e *framework.Event) bool {
	is := &e.NewNode.Allocatable
	delegated := func(name v1.ResourceName) bool { return is.Of(name) <= 0 && ig.delegates(e.Table, name) }
	tooSmall := ig.any(p, func(name v1.ResourceName, request int64) bool {
		return sums.Compare(request, is.Of(name), 0) == sums.Never && !delegated(name)
	})
	if tooSmall || e.NewNode.AllowedPods < 1 {
		return false
	}
	if e.OldNode == nil || e.NewNode.AllowedPods > e.OldNode.AllowedPods {
		return true
	}
	was := &e.OldNode.Allocatable
	// kube-scheduler does not except the ignored resources here.
	return ignored{}.any(p, func(name v1.ResourceName, _ int64) bool { return is.Of(name) > was.Of(name) || delegated(name) })
}

// any calls f with the name of each resource that the filter checks and the pod's request for it,
// until f returns true. It reports whether f did. The number of pods is not among them.
func (ig ignored) any(p *object.Pod, f func(name v1.ResourceName, request int64) bool) bool {
	r := &p.Demand.Requests
	for _, name := range [...]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage} {
		if n := r.Of(name); n > 0 && f(name, n) {
			return true
		}
	}
	for _, s := range r.Scalars {
		if s.Value > 0 && !ig.has(s.Name) && f(s.Name, s.Value) {
			return true
		}
	}
	return false
}
