package resource

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"
)

// What counts, for scores, for a container that requests no CPU or memory (kube-scheduler
// v1.37, pkg/scheduler/util/pod_resources.go).
const (
	DefaultMilliCPU = 100               // 0.1 core
	DefaultMemory   = 200 * 1024 * 1024 // 200 MiB
)

// Demand is all amounts that a scheduler computes for a pod, computed once. None is
// negative.
type Demand struct {
	// Requests is what must fit on the node (NodeResourcesFit's filter): the
	// larger of the init sequence and the running containers, plus overhead;
	// pod-level resources override.
	Requests Vector
	// Usage is what the pod uses up of its node once placed. It differs from Requests while
	// an in-place resize is under way, and if devices take some of the node's resources for
	// the pod.
	Usage Vector
	// NonZero is Usage with a default for each container that requests no CPU or memory. Only
	// MilliCPU and Memory are set.
	NonZero Vector
	// Scoring is what NodeResourcesFit's score counts for the pod: its requests with the defaults
	// of NonZero, and without pod-level resources (as v1.37 does).
	Scoring Vector
}

// OfPod computes the pod's demand under v1.37's default feature gates. It
// agrees with component-helpers on every pod that the API accepts. Sums
// saturate, and a total below zero is zero.
func OfPod(pod *v1.Pod) Demand {
	c := count{pod: pod, infeasible: helper.IsPodResizeInfeasible(pod)}
	d := c.demand()
	if c.inexact {
		return exactly(saturate(pod))
	}
	return d
}

// demand returns the pod's demand, computed the fast way. The caller then checks
// c.inexact: if it is set the result is wrong, and the demand is to be computed in
// Quantities.
func (c *count) demand() Demand {
	requests := c.containers(specified)
	scoring, usage := requests, c.used(requests)
	podLevel := helper.IsPodLevelRequestsSet(c.pod)
	if podLevel {
		c.override(&requests, &usage)
	}
	overhead := c.read(c.pod.Spec.Overhead)
	overhead.fill(0, 0)
	for _, a := range []*amounts{&requests, &usage, &scoring} {
		a.add(&overhead)
	}

	d := Demand{
		Requests: c.vector(&requests),
		NonZero:  Vector{MilliCPU: usage.slot[filledCPU], Memory: usage.slot[filledMemory]},
		Scoring:  c.vector(&scoring),
	}
	d.Scoring.MilliCPU, d.Scoring.Memory = scoring.slot[filledCPU], scoring.slot[filledMemory]
	d.Usage = d.Requests
	if usage.slot != requests.slot {
		d.Usage = c.vector(&usage)
	}
	if podLevel { // then defaults stand only for what nothing in the pod names
		if usage.named[cpu] {
			d.NonZero.MilliCPU = d.Usage.MilliCPU
		}
		if usage.named[memory] {
			d.NonZero.Memory = d.Usage.Memory
		}
	}
	return d
}

// exactly computes the demand in Quantities, without loss, and rounds at the end as kube-scheduler
// does. It is many times slower, for pods whose amounts the fast way cannot represent. pod must
// come from saturate.
func exactly(pod *v1.Pod) Demand {
	placed := helper.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
		UseDRANodeAllocatableResourceClaimStatus: true}
	usage := podRequests(pod, placed)
	defaults := v1.ResourceList{
		v1.ResourceCPU:    at(DefaultMilliCPU, scaleOf(v1.ResourceCPU)),
		v1.ResourceMemory: at(DefaultMemory, scaleOf(v1.ResourceMemory)),
	}
	scoring := podRequests(pod, helper.PodResourcesOptions{
		SkipPodLevelResources: true, NonMissingContainerRequests: defaults,
	})
	if helper.IsPodLevelRequestsSet(pod) {
		for name := range usage { // any order: deletes
			delete(defaults, name)
		}
	}
	placed.NonMissingContainerRequests = defaults
	nonZero := fromPod(podRequests(pod, placed))
	return Demand{
		Requests: fromPod(podRequests(pod, helper.PodResourcesOptions{})),
		Usage:    fromPod(usage),
		NonZero:  Vector{MilliCPU: nonZero.MilliCPU, Memory: nonZero.Memory},
		Scoring:  fromPod(scoring),
	}
}

// podRequests returns component-helpers' PodRequests of the pod. It does not change the pod, whose
// quantities PodRequests itself may add the overhead to.
func podRequests(pod *v1.Pod, opts helper.PodResourcesOptions) v1.ResourceList {
	if helper.IsPodLevelRequestsSet(pod) {
		pod = pod.DeepCopy()
	}
	return helper.PodRequests(pod, opts)
}

// saturate returns a deep copy of the pod in which quantities beyond int64 are replaced by the
// largest or smallest one in range: some have exponents with which exact arithmetic would never
// end.
func saturate(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	lists := []v1.ResourceList{pod.Spec.Overhead, pod.Status.AllocatedResources}
	add := func(r *v1.ResourceRequirements) {
		if r != nil {
			lists = append(lists, r.Requests, r.Limits)
		}
	}
	add(pod.Spec.Resources)
	add(pod.Status.Resources)
	for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			add(&list[i].Resources)
		}
	}
	for _, list := range [][]v1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			add(list[i].Resources)
			lists = append(lists, list[i].AllocatedResources)
		}
	}
	for _, list := range lists {
		for name, q := range list { // any order: each value by itself
			bound(name, &q)
			list[name] = q
		}
	}
	for i := range pod.Status.NodeAllocatableResourceClaimStatuses {
		s := &pod.Status.NodeAllocatableResourceClaimStatuses[i]
		for j := range s.Mapping {
			bound(s.Mapping[j].Name, s.Mapping[j].Quantity)
		}
		for j := range s.Overhead {
			bound(s.Overhead[j].Name, s.Overhead[j].PerPod)
			bound(s.Overhead[j].Name, s.Overhead[j].PerContainer)
		}
	}
	return pod
}

// bound replaces *q, an amount of the named resource, by the largest or smallest amount in int64 if
// it is beyond. It does nothing if q is nil.
func bound(name v1.ResourceName, q *resource.Quantity) {
	if q == nil {
		return
	}
	if n, f := units(q, scaleOf(name)); f == saturated {
		*q = at(n, scaleOf(name))
	}
}

// fromPod converts the list of resources that podRequests returned to a Vector, for the slow way of
// computing a demand. Negative amounts count as 0: it deletes them from the list.
func fromPod(list v1.ResourceList) Vector {
	for name, q := range list { // any order: deletes
		if q.Sign() < 0 {
			delete(list, name)
		}
	}
	return FromList(list)
}
