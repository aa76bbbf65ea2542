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

// podInfo is a pod with what plugins want to know parsed. Terms are parsed when
// somebody asks for them.
type podInfo struct {
	pod    *v1.Pod
	object *object.Pod // what it was made of

	resources fwk.PodResource
	parse     sync.Once
	affinity  terms
}

type terms struct {
	required, requiredAnti   []fwk.AffinityTerm
	preferred, preferredAnti []fwk.WeightedAffinityTerm
}

// newPodInfo returns the pod as it is on the node, "" for none.
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

func (p *podInfo) GetPod() *v1.Pod                    { return p.pod }
func (p *podInfo) CalculateResource() fwk.PodResource { return p.resources }

func (p *podInfo) GetRequiredAffinityTerms() []fwk.AffinityTerm {
	return p.terms().required
}

func (p *podInfo) GetRequiredAntiAffinityTerms() []fwk.AffinityTerm {
	return p.terms().requiredAnti
}

func (p *podInfo) GetPreferredAffinityTerms() []fwk.WeightedAffinityTerm {
	return p.terms().preferred
}

func (p *podInfo) GetPreferredAntiAffinityTerms() []fwk.WeightedAffinityTerm {
	return p.terms().preferredAnti
}

// terms parses what can be parsed: a term that cannot be is none.
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

func hasAffinity(p *v1.Pod) bool {
	return p.Spec.Affinity != nil && (p.Spec.Affinity.PodAffinity != nil || p.Spec.Affinity.PodAntiAffinity != nil)
}

func hasRequiredAntiAffinity(p *v1.Pod) bool {
	return p.Spec.Affinity != nil && len(fwk.GetPodAntiAffinityTerms(p.Spec.Affinity)) > 0
}

// queuedPod is a pod in the queue, as QueueSort plugins see it.
type queuedPod struct{ entry *framework.QueuedPodInfo }

func (q *queuedPod) GetPodInfo() fwk.PodInfo                   { return newPodInfo(q.entry.Pod, "") }
func (q *queuedPod) GetTimestamp() time.Time                   { return q.entry.Timestamp }
func (q *queuedPod) GetAttempts() int                          { return q.entry.Tries }
func (q *queuedPod) GetBackoffExpiration() time.Time           { return time.Time{} }
func (q *queuedPod) GetUnschedulableCount() int                { return 0 }
func (q *queuedPod) GetConsecutiveErrorsCount() int            { return 0 }
func (q *queuedPod) GetUnschedulablePlugins() sets.Set[string] { return sets.New[string]() }
func (q *queuedPod) GetPendingPlugins() sets.Set[string]       { return sets.New[string]() }
func (q *queuedPod) GetGatingPlugin() string                   { return "" }
func (q *queuedPod) GetGatingPluginEvents() []fwk.ClusterEvent { return nil }

// GetInitialAttemptTimestamp returns when the pod became active for the first time.
func (q *queuedPod) GetInitialAttemptTimestamp() *time.Time {
	if q.entry.FirstActive.IsZero() {
		return nil
	}
	return &q.entry.FirstActive
}
