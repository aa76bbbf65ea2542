package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"

	"github.com/berth-scheduler/berth/edge/decode"
)

// quota is a ResourceQuota, as far as it is about pods, and what is used of it.
type quota struct {
	name   string
	hard   v1.ResourceList // of what pods use
	used   v1.ResourceList
	others []string // resources that other objects use, sorted
	scopes []v1.ScopedResourceSelectorRequirement
	counts map[v1.ResourceName]bool // resources whose use no status tells: it is counted
}

func newQuota(o *v1.ResourceQuota) *quota {
	q := &quota{name: o.Name, hard: v1.ResourceList{}, used: v1.ResourceList{}, counts: map[v1.ResourceName]bool{}}
	for name, most := range o.Spec.Hard { // any order: each by itself
		if !ofPods(name) {
			q.others = append(q.others, string(name))
			continue
		}
		q.hard[name] = most
		if used, known := o.Status.Used[name]; known {
			q.used[name] = used
		} else {
			q.counts[name] = true
		}
	}
	slices.Sort(q.others)
	for _, s := range o.Spec.Scopes {
		q.scopes = append(q.scopes, v1.ScopedResourceSelectorRequirement{ScopeName: s, Operator: v1.ScopeSelectorOpExists})
	}
	if o.Spec.ScopeSelector != nil {
		q.scopes = append(q.scopes, o.Spec.ScopeSelector.MatchExpressions...)
	}
	return q
}

func (q *quota) clone() *quota {
	c := *q
	c.used, c.counts = maps.Clone(q.used), maps.Clone(q.counts)
	return &c
}

// countPods is the quota's name of the number of pods, ended ones included.
const countPods v1.ResourceName = "count/pods"

// ofPods reports whether pods use the resource of a quota.
func ofPods(name v1.ResourceName) bool {
	switch name {
	case v1.ResourcePods, countPods, v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage,
		v1.ResourceRequestsCPU, v1.ResourceRequestsMemory, v1.ResourceRequestsEphemeralStorage,
		v1.ResourceLimitsCPU, v1.ResourceLimitsMemory, v1.ResourceLimitsEphemeralStorage:
		return true
	}
	rest, requests := strings.CutPrefix(string(name), v1.DefaultResourceRequestsPrefix)
	return strings.HasPrefix(rest, v1.ResourceHugePagesPrefix) || requests && strings.Contains(rest, "/")
}

// Usage returns what the pod uses of quotas.
func Usage(p *v1.Pod) v1.ResourceList {
	one := *resource.NewQuantity(1, resource.DecimalSI)
	all := v1.ResourceList{v1.ResourcePods: one, countPods: one}
	options := helper.PodResourcesOptions{UseStatusResources: true}
	for name, q := range helper.PodRequests(p, options) { // any order: each by itself
		all[v1.DefaultResourceRequestsPrefix+name] = q
		if !strings.Contains(string(name), "/") {
			all[name] = q
		}
	}
	for name, q := range helper.PodLimits(p, options) { // any order: each by itself
		all["limits."+name] = q
	}
	return all
}

// Count counts the use of pods, but for those to leave out, where no status of a quota
// tells it.
func (r *Rules) Count(pods []*v1.Pod, leaveOut map[*v1.Pod]bool) {
	byNamespace := map[string][]*quota{}
	for namespace, list := range r.quotas { // any order: each by itself
		for _, q := range list {
			if len(q.counts) > 0 {
				byNamespace[namespace] = append(byNamespace[namespace], q)
			}
		}
	}
	if len(byNamespace) == 0 {
		return
	}
	for _, p := range pods {
		for _, q := range byNamespace[p.Namespace] {
			if !decode.Ended(p) && !leaveOut[p] && q.covers(p) {
				q.use(p, func(name v1.ResourceName) bool { return q.counts[name] }, false)
			}
		}
	}
	for _, list := range byNamespace { // any order: each by itself
		for _, q := range list {
			clear(q.counts)
		}
	}
}

// Charge charges the pod to the quotas of its namespace. It returns why one of them has no
// room for it, and charges nothing then.
func (r *Rules) Charge(p *v1.Pod) *Refusal {
	var covering []*quota
	for _, q := range r.quotas[p.Namespace] {
		if !q.covers(p) {
			continue
		}
		if refusal := q.refuses(p); refusal != nil {
			return refusal
		}
		covering = append(covering, q)
	}
	for _, q := range covering {
		q.use(p, nil, false)
	}
	return nil
}

// Release takes back what Charge or Count charged for the pod.
func (r *Rules) Release(p *v1.Pod) {
	for _, q := range r.quotas[p.Namespace] {
		if !decode.Ended(p) && q.covers(p) {
			q.use(p, nil, true)
		}
	}
}

// CoveredBy returns the pods that the quota is about; none if the quota is not known.
func (r *Rules) CoveredBy(namespace, quotaName string, pods []*v1.Pod) []*v1.Pod {
	for _, q := range r.quotas[namespace] {
		if q.name == quotaName {
			return without(pods, func(p *v1.Pod) bool { return p.Namespace != namespace || !q.covers(p) })
		}
	}
	return nil
}

// Uncounted names the quotas of whose resources some are not counted, since other objects
// than pods use them, with these resources: sorted.
func (r *Rules) Uncounted() (quotas []string) {
	for namespace, list := range r.quotas { // any order: sorted below
		for _, q := range list {
			if len(q.others) > 0 {
				quotas = append(quotas, fmt.Sprintf("ResourceQuota %s/%s: %s", namespace, q.name, strings.Join(q.others, ", ")))
			}
		}
	}
	slices.Sort(quotas)
	return quotas
}

// use adds the pod's use of the resources that count, or takes it away. A nil count
// means all.
func (q *quota) use(p *v1.Pod, count func(v1.ResourceName) bool, away bool) {
	wants := Usage(p)
	for name := range q.hard { // any order: each by itself
		if count != nil && !count(name) {
			continue
		}
		used := q.used[name].DeepCopy()
		if away {
			used.Sub(wants[name])
		} else {
			used.Add(wants[name])
		}
		q.used[name] = used
	}
}

// refuses returns why the quota has no room for the pod, nil if it has.
func (q *quota) refuses(p *v1.Pod) *Refusal {
	if missing := q.missing(p); missing != "" {
		return &Refusal{Why: fmt.Sprintf("ResourceQuota %s is about %s", q.name, missing)}
	}
	wants := Usage(p)
	for _, name := range slices.Sorted(maps.Keys(q.hard)) {
		want, used, most := wants[name], q.used[name].DeepCopy(), q.hard[name]
		if want.IsZero() {
			continue
		}
		had := used.String()
		if used.Add(want); used.Cmp(most) > 0 {
			return &Refusal{Waits: want.Cmp(most) <= 0,
				Why: fmt.Sprintf("ResourceQuota %s allows %s %s in all; %s is used, and it takes %s more", q.name, name, most.String(), had, want.String())}
		}
	}
	return nil
}

// missing returns a resource of the quota that a container does not name, with the
// container, "" if there is none. Quotas ask this for CPU and memory alone.
func (q *quota) missing(p *v1.Pod) string {
	if r := p.Spec.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		return ""
	}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceRequestsCPU, v1.ResourceRequestsMemory, v1.ResourceLimitsCPU, v1.ResourceLimitsMemory} {
		if _, has := q.hard[name]; !has {
			continue
		}
		plain, limits := strings.CutPrefix(string(name), "limits.")
		plain = strings.TrimPrefix(plain, v1.DefaultResourceRequestsPrefix)
		for _, list := range [][]v1.Container{p.Spec.Containers, p.Spec.InitContainers} {
			for i := range list {
				amounts := list[i].Resources.Requests
				if limits {
					amounts = list[i].Resources.Limits
				}
				if _, has := amounts[v1.ResourceName(plain)]; !has {
					return fmt.Sprintf("%s, and container %s names no such amount", name, list[i].Name)
				}
			}
		}
	}
	return ""
}
