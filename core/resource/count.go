package resource

import (
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"
)

// Indexes of amounts.slot. The filled ones are CPU and memory with kube-scheduler's default
// for each container that requests none.
const (
	cpu = iota
	memory
	ephemeralStorage
	filledCPU
	filledMemory
	firstScalar
	fastPathScalars = 8 // pods with more take the slow path
	slots           = firstScalar + fastPathScalars
)

// amounts is what a container, or several together, request: one int64 for each resource,
// so that sums and maxima are loops over an array. None is negative.
type amounts struct {
	slot  [slots]int64
	named [2]bool // CPU and memory: a list names it, be it with 0
}

// add adds b, saturating.
func (a *amounts) add(b *amounts) {
	for i, n := range &b.slot {
		if a.slot[i] += n; a.slot[i] < 0 {
			a.slot[i] = math.MaxInt64
		}
	}
	a.name(b)
}

// max sets each amount of a to the larger of those of a and b, resource by resource.
func (a *amounts) max(b *amounts) {
	for i, n := range &b.slot {
		a.slot[i] = max(a.slot[i], n)
	}
	a.name(b)
}

// name marks as named what b names.
func (a *amounts) name(b *amounts) {
	a.named[cpu] = a.named[cpu] || b.named[cpu]
	a.named[memory] = a.named[memory] || b.named[memory]
}

// fill sets the filled slots: to what is requested, or to the defaults given for CPU and
// memory that are not named.
func (a *amounts) fill(milliCPU, bytes int64) {
	if a.named[cpu] {
		milliCPU = a.slot[cpu]
	}
	if a.named[memory] {
		bytes = a.slot[memory]
	}
	a.slot[filledCPU], a.slot[filledMemory] = milliCPU, bytes
}

// count computes the demand of one pod in int64s, the fast way.
type count struct {
	pod     *v1.Pod
	scalars [fastPathScalars]v1.ResourceName // names of the slots from firstScalar
	known   int                              // number of scalars
	limits  bool                             // limits are counted instead of requests
	// inexact is set if a quantity was negative or not a whole number of its unit, or there
	// were more than fastPathScalars named resources. The result is then wrong.
	inexact bool
}

// containers returns what the pod's containers need together (KEP-753): containers run
// together with the sidecars (restartable init containers); the other init containers run
// one after another, each beside the sidecars before it; the larger counts, resource by
// resource. It adds up requests, or limits if c.limits is set. With status, a container or
// sidecar with resources in its status counts with the largest of what is requested, in
// force and allocated (see effective), for what a pod uses during an in-place resize.
func (c *count) containers(status bool) amounts {
	var running, sidecars, peak amounts
	for i := range c.pod.Spec.Containers {
		a := c.container(&c.pod.Spec.Containers[i], status)
		running.add(&a)
	}
	for i := range c.pod.Spec.InitContainers {
		init := &c.pod.Spec.InitContainers[i]
		if p := init.RestartPolicy; p != nil && *p == v1.ContainerRestartPolicyAlways {
			a := c.container(init, status)
			running.add(&a)
			sidecars.add(&a)
			peak.max(&sidecars)
			continue
		}
		a := c.container(init, false)
		a.add(&sidecars)
		peak.max(&a)
	}
	running.max(&peak)
	return running
}

// container returns what one container requests, filled with defaults; with status what
// counts during an in-place resize.
func (c *count) container(spec *v1.Container, status bool) amounts {
	var a amounts
	if cs := c.status(spec.Name, status); cs != nil && cs.Resources != nil {
		a = c.effective(spec.Resources.Requests, cs.Resources.Requests, cs.AllocatedResources)
	} else {
		a = c.read(c.listOf(&spec.Resources))
	}
	a.fill(DefaultMilliCPU, DefaultMemory)
	return a
}

// listOf returns the limits or the requests, whichever are counted.
func (c *count) listOf(r *v1.ResourceRequirements) v1.ResourceList {
	if c.limits {
		return r.Limits
	}
	return r.Requests
}

// effective returns what counts of a container, or of a pod with requests of its own,
// while a resize may be under way: the largest of what is requested, in force and
// allocated. The request is left out if the node can never grant it (Infeasible).
func (c *count) effective(requested, inForce, allocated v1.ResourceList) amounts {
	a, b := c.read(inForce), c.read(allocated)
	a.max(&b)
	if !helper.IsPodResizeInfeasible(c.pod) {
		b = c.read(requested)
		a.max(&b)
	}
	return a
}

// override replaces, in requests and usage, the resources for which the pod states requests
// as a whole (spec.resources). requests gets these. usage gets what counts while the pod is
// resized in place (effective), if the pod's status has resources, else the same.
func (c *count) override(requests, usage *amounts) {
	requested := c.pod.Spec.Resources.Requests
	own := c.read(requested)
	now := own
	if s := c.pod.Status.Resources; s != nil {
		now = c.effective(requested, s.Requests, c.pod.Status.AllocatedResources)
	}
	for name := range requested { // any order: each name has a slot of its own
		if !helper.IsSupportedPodLevelResource(name) {
			continue
		}
		if i, ok := c.slot(name); ok {
			requests.set(i, own.slot[i])
			usage.set(i, now.slot[i])
		}
	}
}

// set sets the amount of one resource, by its index in slot; for CPU and memory also the
// amount with defaults, as one that is named has none.
func (a *amounts) set(slot int, n int64) {
	a.slot[slot] = n
	switch slot {
	case cpu:
		a.slot[filledCPU], a.named[cpu] = n, true
	case memory:
		a.slot[filledMemory], a.named[memory] = n, true
	}
}

// read returns the amounts of a list. It sets inexact if one is not exact.
func (c *count) read(list v1.ResourceList) amounts {
	var a amounts
	for name, q := range list { // any order: each name has a slot of its own; vectors are sorted at the end
		i, ok := c.slot(name)
		if !ok {
			continue
		}
		if i <= memory {
			a.named[i] = true
		}
		n, f := units(&q, scaleOf(name))
		c.inexact = c.inexact || f == rounded || n < 0
		a.slot[i] = max(n, 0)
	}
	return a
}

// scaleOf returns the power of ten of the unit in which the resource is counted.
func scaleOf(name v1.ResourceName) resource.Scale {
	if name == v1.ResourceCPU {
		return resource.Milli
	}
	return 0
}

// slot returns the index of the resource in amounts.slot, a new one for a new named
// resource. It returns false for a resource that no scheduler counts, and, with inexact
// set, if there are too many.
func (c *count) slot(name v1.ResourceName) (int, bool) {
	switch name {
	case v1.ResourceCPU:
		return cpu, true
	case v1.ResourceMemory:
		return memory, true
	case v1.ResourceEphemeralStorage:
		return ephemeralStorage, true
	}
	for i, known := range c.scalars[:c.known] {
		if known == name {
			return firstScalar + i, true
		}
	}
	if !IsScalar(name) {
		return 0, false
	}
	if c.known == fastPathScalars {
		c.inexact = true
		return 0, false
	}
	c.scalars[c.known] = name
	c.known++
	return firstScalar + c.known - 1, true
}

// vector returns the amounts, without the filled slots, as a Vector.
func (c *count) vector(a *amounts) Vector {
	v := Vector{MilliCPU: a.slot[cpu], Memory: a.slot[memory], EphemeralStorage: a.slot[ephemeralStorage]}
	for i, name := range c.scalars[:c.known] {
		if n := a.slot[firstScalar+i]; n != 0 {
			v.Scalars = append(v.Scalars, Scalar{name, n})
		}
	}
	sortScalars(v.Scalars)
	return v
}

// hasStatusResources reports whether the pod's status has resources of a container.
func hasStatusResources(pod *v1.Pod) bool {
	for _, list := range [2][]v1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Resources != nil {
				return true
			}
		}
	}
	return false
}

// status returns the status of the container with that name; nil if wanted is false or
// there is none.
func (c *count) status(name string, wanted bool) *v1.ContainerStatus {
	if !wanted {
		return nil
	}
	for _, list := range [2][]v1.ContainerStatus{c.pod.Status.InitContainerStatuses, c.pod.Status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
