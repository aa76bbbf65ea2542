package compat

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// podInfo is the fwk.PodInfo of a pod. Its affinity terms are parsed at the first use.
type podInfo struct {
	pod    *v1.Pod
	object *object.Pod // core's pod of which it was made

	resources fwk.PodResource
	parse     sync.Once
	affinity  terms
}

// terms are a pod's parsed affinity and anti-affinity terms.
type terms struct {
	required, requiredAnti   []fwk.AffinityTerm
	preferred, preferredAnti []fwk.WeightedAffinityTerm
}

// newPodInfo returns the pod's PodInfo with the node in its spec; "" leaves the spec as it is. The
// status has the resources of devices that are assumed for the pod and not written yet.
func newPodInfo(p *object.Pod, node string) *podInfo {
	pod := APIPod(p)
	if node != "" {
		pod = onNode(pod, node)
	}
	if p.FromDevices != nil && len(pod.Status.NodeAllocatableResourceClaimStatuses) == 0 { // assumed, and not written yet
		assumed := *pod
		assumed.Status.NodeAllocatableResourceClaimStatuses = p.FromDevices
		pod = &assumed
	}
	usage := amountsOf(p.Demand.Usage)
	return &podInfo{pod: pod, object: p, resources: fwk.PodResource{
		Resource: &usage, Non0CPU: p.Demand.NonZero.MilliCPU, Non0Mem: p.Demand.NonZero.Memory,
	}}
}

// GetPod returns the API object. It is shared and must not be changed.
func (p *podInfo) GetPod() *v1.Pod { return p.pod }

// CalculateResource returns the pod's requests.
func (p *podInfo) CalculateResource() fwk.PodResource { return p.resources }

// GetRequiredAffinityTerms returns the terms; none if one cannot be parsed.
func (p *podInfo) GetRequiredAffinityTerms() []fwk.AffinityTerm {
	return p.terms().required
}

// GetRequiredAntiAffinityTerms returns the terms; none if one cannot be parsed.
func (p *podInfo) GetRequiredAntiAffinityTerms() []fwk.AffinityTerm {
	return p.terms().requiredAnti
}

// GetPreferredAffinityTerms returns the terms; none if one cannot be parsed.
func (p *podInfo) GetPreferredAffinityTerms() []fwk.WeightedAffinityTerm {
	return p.terms().preferred
}

// GetPreferredAntiAffinityTerms returns the terms; none if one cannot be parsed.
func (p *podInfo) GetPreferredAntiAffinityTerms() []fwk.WeightedAffinityTerm {
	return p.terms().preferredAnti
}

// terms returns the pod's parsed terms. A list of which one term cannot be parsed is empty.
func (p *podInfo) terms() *terms {
	p.parse.Do(func() {
		a := p.pod.Spec.Affinity
		if a == nil {
			return
		}
		p.affinity.required, _ = fwk.GetAffinityTerms(p.pod, fwk.GetPodAffinityTerms(a))
		p.affinity.requiredAnti, _ = fwk.GetAffinityTerms(p.pod, fwk.GetPodAntiAffinityTerms(a))
		if a.PodAffinity != nil {
			p.affinity.preferred, _ = fwk.GetWeightedAffinityTerms(p.pod, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
		if a.PodAntiAffinity != nil {
			p.affinity.preferredAnti, _ = fwk.GetWeightedAffinityTerms(p.pod, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		}
	})
	return &p.affinity
}

// hasAffinity reports whether the pod has pod affinity or anti-affinity.
func hasAffinity(p *v1.Pod) bool {
	return p.Spec.Affinity != nil && (p.Spec.Affinity.PodAffinity != nil || p.Spec.Affinity.PodAntiAffinity != nil)
}

// hasRequiredAntiAffinity reports whether the pod has required pod anti-affinity.
func hasRequiredAntiAffinity(p *v1.Pod) bool {
	return p.Spec.Affinity != nil && len(fwk.GetPodAntiAffinityTerms(p.Spec.Affinity)) > 0
}

// queuedPod is the fwk.QueuedEntityInfo that QueueSort plugins get: a pod, or one that stands
// for its pod group. What the queue does not record is zero.
type queuedPod struct{ entry *framework.QueuedPodInfo }

// GetPodInfo returns the pod. It is not part of the interface: plugins assert that the
// entity has it, as kube-scheduler's pods in the queue do.
func (q *queuedPod) GetPodInfo() fwk.PodInfo { return newPodInfo(q.entry.Pod, "") }

// Type returns PodKeyType, or PodGroupKeyType for a pod group.
func (q *queuedPod) Type() fwk.EntityKeyType {
	if q.entry.Group != nil {
		return fwk.PodGroupKeyType
	}
	return fwk.PodKeyType
}

// GetPriority returns the priority of the pod, or that of the pod group.
func (q *queuedPod) GetPriority() int32 { return q.entry.Priority() }

// GetTimestamp returns when the pod was last added to the queue.
func (q *queuedPod) GetTimestamp() time.Time { return q.entry.Timestamp }

// GetAttempts returns the number of attempts, including one under way.
func (q *queuedPod) GetAttempts() int { return q.entry.Tries }

// GetBackoffExpiration returns the zero time: the queue's entry does not record it.
func (q *queuedPod) GetBackoffExpiration() time.Time { return time.Time{} }

// GetUnschedulableCount returns 0.
func (q *queuedPod) GetUnschedulableCount() int { return 0 }

// GetConsecutiveErrorsCount returns 0.
func (q *queuedPod) GetConsecutiveErrorsCount() int { return 0 }

// GetUnschedulablePlugins returns an empty set.
func (q *queuedPod) GetUnschedulablePlugins() sets.Set[string] { return sets.New[string]() }

// GetPendingPlugins returns an empty set.
func (q *queuedPod) GetPendingPlugins() sets.Set[string] { return sets.New[string]() }

// GetGatingPlugin returns "".
func (q *queuedPod) GetGatingPlugin() string { return "" }

// GetGatingPluginEvents returns nil.
func (q *queuedPod) GetGatingPluginEvents() []fwk.ClusterEvent { return nil }

// GetInitialAttemptTimestamp returns when the pod first entered the active queue; nil if it
// did not yet.
func (q *queuedPod) GetInitialAttemptTimestamp() *time.Time {
	if q.entry.FirstActive.IsZero() {
		return nil
	}
	return &q.entry.FirstActive
}
