package coscheduling

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/sums"
	"github.com/berth-scheduler/berth/core/table"
)

// lacking returns the reason if one of the group's MinResources is not free on all nodes together,
// or if these have no room for the group's minimum of pods. It returns "" if all is free, and for a
// group without MinResources. What the group's own placed pods use counts as free. A node whose
// pods use more than it has counts as full.
func lacking(t *table.Table, g *object.PodGroup) string {
	if len(g.Needs()) == 0 {
		return ""
	}
	short := func(name v1.ResourceName, wants, free int64) string {
		return fmt.Sprintf("minResources cannot be satisfied: of %s %s free on all nodes together, %s needed", name, resource.Quantity(name, free), resource.Quantity(name, wants))
	}
	for _, a := range g.Needs() {
		if free := free(t, g, a.Name); free < a.Value {
			return short(a.Name, a.Value, free)
		}
	}
	pods := resource.Add(sums.FreeOnAll(t, v1.ResourcePods), int64(t.Groups().Named(g.GroupKey()).Scheduled()))
	if pods < int64(g.MinCount) {
		return short(v1.ResourcePods, int64(g.MinCount), pods)
	}
	return ""
}

// free returns how much of the resource is free for the group on all nodes together, with what its
// own placed pods use.
func free(t *table.Table, g *object.PodGroup, name v1.ResourceName) (sum int64) {
	sum = sums.FreeOnAll(t, name)
	for uid := range t.Groups().Named(g.GroupKey()).Placed() {
		sum = resource.Add(sum, t.Pod(uid).Pod.Demand.Usage.Of(name))
	}
	return sum
}

// freed reports whether the MinResources of the pod's group are free now; false if it has none.
func freed(p *object.Pod, e *framework.Event) bool {
	if !ours(p) || e.Table == nil {
		return false
	}
	g := table.PodGroup(e.Table, p.GroupKey())
	return g != nil && len(g.Needs()) > 0 && lacking(e.Table, g) == ""
}
