package preempt

import (
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/table"
)

// call is what a search was called with, and what ElasticQuotas say of it.
type call struct {
	*framework.PostFilterCall
	// reclaim is nil if the profile does not follow ElasticQuotas, or there are none.
	reclaim *quota.Reclaim
	// entitled is set if the pod may preempt pods of other queues.
	entitled bool
	// spared says which budget kept the victims, on other nodes too, for the rows where the pod
	// has no plan for that reason.
	spared map[table.Row]*decision.Blocker
}

// newCall returns a call that serves one search.
func newCall(c *framework.PostFilterCall) *call {
	if c.Quotas == nil || !quota.Of(c.Table).Any() {
		return &call{PostFilterCall: c}
	}
	r := quota.Of(c.Table).Reclaim(&quota.Ask{Pod: c.Pod, Nominated: c.Nominations.All, UnlistedZero: c.Quotas.UnlistedZero}, c.Disruption.Evicting)
	return &call{PostFilterCall: c, reclaim: r, entitled: r.Entitled()}
}

// quotas returns a number that changes whenever other pods may become victims because the
// namespaces that have queues changed; 0 if no quotas are followed.
func (c *call) quotas() uint64 {
	if c.reclaim == nil {
		return 0
	}
	return quota.Of(c.Table).Revision()
}

// lowerPods returns the pods on the row that the pod at hand may preempt together: those of
// lower priority and, if ElasticQuotas are followed, those that these allow.
func lowerPods(c *call, row table.Row) []*object.Pod {
	return appendLowerPods(nil, c, row)
}

// appendLowerPods appends what lowerPods returns.
func appendLowerPods(pods []*object.Pod, c *call, row table.Row) []*object.Pod {
	if c.entitled {
		var all []*object.Pod
		for _, pl := range c.Table.Pods(row) {
			all = append(all, pl.Pod)
		}
		slices.SortFunc(all, byImportance(c.Now))
		return c.reclaim.Preemptible(pods, all)
	}
	for pl := range c.Table.Lower(row, c.Pod.Priority) {
		if c.reclaim == nil || c.reclaim.SharesQueue(pl.Pod) {
			pods = append(pods, pl.Pod)
		}
	}
	return pods
}

// keptBack returns the pods of lower priority on the row that the pod at hand may not
// preempt, as they have another queue. It must not be entitled.
func keptBack(c *call, row table.Row) (pods []*object.Pod) {
	if c.reclaim == nil {
		return nil
	}
	for pl := range c.Table.Lower(row, c.Pod.Priority) {
		if !c.reclaim.SharesQueue(pl.Pod) {
			pods = append(pods, pl.Pod)
		}
	}
	return pods
}
