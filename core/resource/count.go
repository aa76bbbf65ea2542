package resource

import (
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
)

// Indexes of amounts.slot. The filled ones are CPU and memory with kube-scheduler's default
// for each container that requests none. Those from firstScalar are for count.scalars.
const (
	cpu = iota
	memory
	ephemeralStorage
	filledCPU
	filledMemory
	firstScalar
	fastPathScalars = 8                             // pods with more scalars take the slow path
	slots           = firstScalar + fastPathScalars // the length of amounts.slot
)

// amounts is what a container, or several together, request: one int64 for each resource,
// so that sums and maxima are loops over an array. None is negative.
type amounts struct {
	slot  [slots]int64
	named [2]bool // by cpu and memory: whether some list names the resource, even with 0
}

// add adds b to a, saturating. What b names is named in a, too.
func (a *amounts) add(b *amounts) {
	for i, n := range &b.slot {
		if a.slot[i] += n; a.slot[i] < 0 {
			a.slot[i] = math.MaxInt64
		}
	}
	a.name(b)
}

// max sets each amount of a to the larger of those of a and b, resource by resource. What b names
// is named in a, too.
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

// fill sets the filled slots of CPU and memory: to the requested amount if the resource is named,
// else to milliCPU or bytes.
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
	// infeasible is set if the node can never grant the resize that the pod waits for.
	infeasible bool
	// inexact is set if a quantity was negative or not a whole number of its unit, or there
	// were more than fastPathScalars named resources. The result is then wrong.
	inexact bool
}

// source names the list of a container, or of the pod as a whole, that is counted.
type source uint8

const (
	specified source = iota // in the spec
	allocated               // by the node: status.allocatedResources, else what is specified
	actuated                // in force: status.resources, else what is allocated
)

// containers returns what the pod's containers request together, or their limits if c.limits is set
// (KEP-753). For each resource this is the larger of two amounts: what containers and sidecars
// (restartable init containers) take together, and the most that an init container takes with the
// sidecars before it. from says where a container's amounts are read.
func (c *count) containers(from source) amounts {
	var running, sidecars, peak amounts
	for i := range c.pod.Spec.Containers {
		a := c.container(&c.pod.Spec.Containers[i], from)
		running.add(&a)
	}
	for i := range c.pod.Spec.InitContainers {
		init := &c.pod.Spec.InitContainers[i]
		a := c.container(init, from)
		if p := init.RestartPolicy; p != nil && *p == v1.ContainerRestartPolicyAlways {
			running.add(&a)
			sidecars.add(&a)
			peak.max(&sidecars)
			continue
		}
		a.add(&sidecars)
		peak.max(&a)
	}
	running.max(&peak)
	return running
}

// container returns what one container requests. The filled slots have kube-scheduler's defaults
// for CPU and memory that it does not name.
func (c *count) container(spec *v1.Container, from source) amounts {
	a := c.read(c.listOf(spec, from))
	a.fill(DefaultMilliCPU, DefaultMemory)
	return a
}

// listOf returns the container's list of amounts to count, from the spec or the container's status.
// Where the status lacks the list, what is specified counts, or nothing (nil) if the node can never
// grant that (Infeasible). Limits are counted as specified alone.
func (c *count) listOf(spec *v1.Container, from source) v1.ResourceList {
	if from != specified {
		cs := c.status(spec.Name)
		switch {
		case cs != nil && from == actuated && cs.Resources != nil && cs.Resources.Requests != nil:
			return cs.Resources.Requests
		case cs != nil && cs.AllocatedResources != nil:
			return cs.AllocatedResources
		case c.infeasible:
			return nil
		}
	}
	if c.limits {
		return spec.Resources.Limits
	}
	return spec.Resources.Requests
}

// used returns what the pod's containers and devices use up of its node, given what the containers
// request: the largest of what is specified, allocated and actuated, as an in-place resize may be
// under way. What is specified is left out if the node can never grant it. If the pod's own status
// has allocatedResources and requests in resources, these stand for what is allocated and actuated.
func (c *count) used(requested amounts) amounts {
	taken := c.fromDevices()
	requested.add(&taken)
	if !c.resizes() {
		return requested
	}
	var granted, inForce amounts
	if s := &c.pod.Status; s.AllocatedResources != nil && s.Resources != nil && s.Resources.Requests != nil {
		granted, inForce = c.read(s.AllocatedResources), c.read(s.Resources.Requests)
		granted.fill(0, 0)
		inForce.fill(0, 0)
	} else {
		granted, inForce = c.containers(allocated), c.containers(actuated)
		granted.add(&taken)
	}
	granted.max(&inForce)
	if !c.infeasible {
		granted.max(&requested)
	}
	return granted
}

// resizes reports whether what is allocated or actuated may differ from what is specified, for the
// pod as a whole or one of its containers.
func (c *count) resizes() bool {
	if s := &c.pod.Status; c.infeasible || s.AllocatedResources != nil && s.Resources != nil {
		return true
	}
	for _, list := range [2][]v1.ContainerStatus{c.pod.Status.ContainerStatuses, c.pod.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Resources != nil || list[i].AllocatedResources != nil {
				return true
			}
		}
	}
	return false
}

// fromDevices returns what devices take of the node's resources for the pod, by
// status.nodeAllocatableResourceClaimStatuses. An overhead for each container counts once for each
// container that uses the claim.
func (c *count) fromDevices() amounts {
	var sum amounts
	for i := range c.pod.Status.NodeAllocatableResourceClaimStatuses {
		s := &c.pod.Status.NodeAllocatableResourceClaimStatuses[i]
		for j := range s.Mapping {
			if q := s.Mapping[j].Quantity; q != nil {
				c.addQuantity(&sum, s.Mapping[j].Name, *q, 1)
			}
		}
		for j := range s.Overhead {
			o := &s.Overhead[j]
			c.addQuantity(&sum, o.Name, ptr.Deref(o.PerPod, resource.Quantity{}), 1)
			c.addQuantity(&sum, o.Name, ptr.Deref(o.PerContainer, resource.Quantity{}), len(s.Containers))
		}
	}
	return sum
}

// addQuantity adds n times the quantity of the named resource to sum. If it is 0, no default counts
// in its place.
func (c *count) addQuantity(sum *amounts, name v1.ResourceName, q resource.Quantity, n int) {
	a := c.read(v1.ResourceList{name: q})
	a.fill(0, 0)
	for range n {
		sum.add(&a)
	}
}

// override replaces, in requests and usage, the amounts of resources for which the pod states
// requests as a whole (spec.resources). requests gets the stated amounts. usage gets the largest of
// the stated amounts and those in status.resources and status.allocatedResources of the pod. It
// gets the stated ones alone if there is no status.resources; else those in the status alone if the
// node can never grant the stated ones.
func (c *count) override(requests, usage *amounts) {
	own := c.pod.Spec.Resources.Requests
	c.setPodLevel(requests, own)
	if s := c.pod.Status.Resources; s == nil {
		c.setPodLevel(usage, own)
	} else if c.infeasible {
		c.setPodLevel(usage, s.Requests, c.pod.Status.AllocatedResources)
	} else {
		c.setPodLevel(usage, own, s.Requests, c.pod.Status.AllocatedResources)
	}
}

// setPodLevel sets, for each resource that a pod may state as a whole and a list names, the
// amount to the largest in the lists.
func (c *count) setPodLevel(a *amounts, lists ...v1.ResourceList) {
	var largest amounts
	for _, list := range lists {
		b := c.read(list)
		largest.max(&b)
	}
	for _, list := range lists {
		for name := range list { // any order: each name has a slot of its own
			if !helper.IsSupportedPodLevelResource(name) {
				continue
			}
			if i, ok := c.slot(name); ok {
				a.set(i, largest.slot[i])
			}
		}
	}
}

// set sets the amount of one resource, by its index in slot. CPU and memory are named from then on:
// their filled slots get the same amount, and no default.
func (a *amounts) set(slot int, n int64) {
	a.slot[slot] = n
	switch slot {
	case cpu:
		a.slot[filledCPU], a.named[cpu] = n, true
	case memory:
		a.slot[filledMemory], a.named[memory] = n, true
	}
}

// read returns the amounts of a list, without filled slots. It leaves out resources that no
// scheduler counts. Amounts that are negative count as 0. It sets c.inexact for a negative or
// rounded amount.
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

// slot returns the index of the resource in amounts.slot, a new one for a scalar that is not in
// c.scalars yet. It returns false for a resource that no scheduler counts, and, with c.inexact set,
// if there are too many scalars.
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

// status returns the status of the container or init container with that name; nil if there is
// none.
func (c *count) status(name string) *v1.ContainerStatus {
	for _, list := range [2][]v1.ContainerStatus{c.pod.Status.ContainerStatuses, c.pod.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
