package preempt

import (
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/quota"
	"github.com/berth-scheduler/berth/core/table"
)

// call is the input of a search for the victims of one pod, with what the ElasticQuotas let the
// pod preempt.
type call struct {
	*framework.PostFilterCall
	// reclaim is nil if the profile does not follow ElasticQuotas, or there are none.
	reclaim *quota.Reclaim
	// entitled is set if the pod may preempt pods of other queues.
	entitled bool
	// spared holds, by row, the reason why the plan of findAcross was refused: a strict budget
	// that keeps victims, on whatever node. planFor then returns that reason for the row.
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

// quotas returns a number that grows whenever an ElasticQuota changed in more than its status, so
// that other pods may be victims; 0 if no ElasticQuotas are followed, or there are none.
func (c *call) quotas() uint64 {
	if c.reclaim == nil {
		return 0
	}
	return quota.Of(c.Table).Revision()
}

// lowerPods returns the pods on the row that the pod at hand may preempt together. These are those
// of lower priority; if ElasticQuotas are followed, only those of its own queue. A pod that is
// entitled may also preempt pods of other queues, whatever their priority (Reclaim.Preemptible).
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

// keptBack returns the pods of lower priority on the row that the pod at hand may not preempt, as
// they have another queue; none if no ElasticQuotas are followed. The pod must not be entitled.
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
