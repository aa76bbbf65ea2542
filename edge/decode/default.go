package decode

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"
)

// DefaultPod gives a pod from a file those defaults of the API server
// that matter to a scheduler. It leaves out what only admission plugins add
// (default tolerations, RuntimeClass overhead). For the priority see
// PriorityClasses.Resolve.
func DefaultPod(p *v1.Pod) {
	if p.Namespace == "" {
		p.Namespace = v1.NamespaceDefault
	}
	spec := &p.Spec
	if spec.SchedulerName == "" {
		spec.SchedulerName = v1.DefaultSchedulerName
	}
	if spec.RestartPolicy == "" {
		spec.RestartPolicy = v1.RestartPolicyAlways
	}
	mergeLabelKeys(p)
	if p.Status.Phase == "" {
		p.Status.Phase = v1.PodPending
	}
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			defaultContainer(&list[i], spec.HostNetwork)
		}
	}
	if spec.Resources != nil {
		defaultHugePages(p)
		defaultPodRequests(p)
	}
	roundPod(spec)
}

// roundPod comes last: sums are of what was written.
func roundPod(spec *v1.PodSpec) {
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			roundUp(list[i].Resources.Requests)
			roundUp(list[i].Resources.Limits)
		}
	}
	if spec.Resources != nil {
		roundUp(spec.Resources.Requests)
		roundUp(spec.Resources.Limits)
	}
	roundUp(spec.Overhead)
}

func defaultContainer(c *v1.Container, hostNetwork bool) {
	for name, limit := range c.Resources.Limits {
		setMissing(&c.Resources.Requests, name, limit)
	}
	for i := range c.Ports {
		port := &c.Ports[i]
		if port.Protocol == "" {
			port.Protocol = v1.ProtocolTCP
		}
		if hostNetwork && port.HostPort == 0 {
			port.HostPort = port.ContainerPort
		}
	}
}

// defaultHugePages makes the sum of the containers' huge page limits the
// pod's, where the pod names other resources and not this one.
func defaultHugePages(p *v1.Pod) {
	r := p.Spec.Resources
	if len(r.Limits) == 0 && len(r.Requests) == 0 {
		return
	}
	for name, sum := range helper.AggregateContainerLimits(p, helper.PodResourcesOptions{}) {
		if _, requested := r.Requests[name]; helper.IsSupportedPodLevelResource(name) && hugePages(name) && !requested {
			setMissing(&r.Limits, name, sum)
		}
	}
}

// defaultPodRequests fills in the requests of a pod that has limits of its
// own: what its containers request together, else the limit.
func defaultPodRequests(p *v1.Pod) {
	r := p.Spec.Resources
	if len(r.Limits) == 0 {
		return
	}
	for name, sum := range helper.AggregateContainerRequests(p, helper.PodResourcesOptions{}) {
		if helper.IsSupportedPodLevelResource(name) && !hugePages(name) {
			setMissing(&r.Requests, name, sum)
		}
	}
	for name, limit := range r.Limits {
		if helper.IsSupportedPodLevelResource(name) {
			setMissing(&r.Requests, name, limit)
		}
	}
}

// DefaultNode gives a node from a file the API server's defaults: allocatable
// is the capacity unless the file sets it.
func DefaultNode(n *v1.Node) {
	roundUp(n.Status.Capacity)
	roundUp(n.Status.Allocatable)
	if n.Status.Allocatable == nil {
		for name, q := range n.Status.Capacity {
			setMissing(&n.Status.Allocatable, name, q)
		}
	}
}

func setMissing(list *v1.ResourceList, name v1.ResourceName, q resource.Quantity) {
	if _, ok := (*list)[name]; ok {
		return
	}
	if *list == nil {
		*list = v1.ResourceList{}
	}
	(*list)[name] = q.DeepCopy()
}

// roundUp rounds to whole thousandths, the finest that the API keeps.
func roundUp(list v1.ResourceList) {
	for name, q := range list {
		if q.RoundUp(resource.Milli) {
			continue // it is a whole number of thousandths already
		}
		list[name] = q
	}
}

func hugePages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}

// DefaultStorageClass gives a class from a file the API server's defaults.
func DefaultStorageClass(c *storagev1.StorageClass) {
	if c.VolumeBindingMode == nil {
		mode := storagev1.VolumeBindingImmediate
		c.VolumeBindingMode = &mode
	}
}

// DefaultResourceClaim gives a claim for devices from a file the API server's
// defaults: one device, unless it says otherwise.
func DefaultResourceClaim(c *resourcev1.ResourceClaimSpec) {
	for i := range c.Devices.Requests {
		r := &c.Devices.Requests[i]
		if r.Exactly != nil {
			defaultCount(&r.Exactly.AllocationMode, &r.Exactly.Count)
			defaultTolerations(r.Exactly.Tolerations)
		}
		for j := range r.FirstAvailable {
			defaultCount(&r.FirstAvailable[j].AllocationMode, &r.FirstAvailable[j].Count)
			defaultTolerations(r.FirstAvailable[j].Tolerations)
		}
	}
}

func defaultCount(mode *resourcev1.DeviceAllocationMode, count *int64) {
	if *mode == "" {
		*mode = resourcev1.DeviceAllocationModeExactCount
	}
	if *mode == resourcev1.DeviceAllocationModeExactCount && *count == 0 {
		*count = 1
	}
}

func defaultTolerations(list []resourcev1.DeviceToleration) {
	for i := range list {
		if list[i].Operator == "" {
			list[i].Operator = resourcev1.DeviceTolerationOpEqual
		}
	}
}
