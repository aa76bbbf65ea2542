package nodeunschedulable

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// reason is kube-scheduler's text for rejected nodes.
const reason = "node(s) were unschedulable"

// cordoned is the verdict on a node with spec.unschedulable.
const cordoned framework.Verdict = 1

// taint is the taint that the control plane puts on nodes that are marked unschedulable.
var taint = v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}

// New returns the plugin.
func New(f feature.Features) framework.Plugin {
	comparisons := f.TaintTolerationComparisonOperators
	exempt := func(p *object.Pod) bool { return p.Tolerations.Tolerates(&taint, comparisons) }
	return framework.Plugin{
		Name: names.NodeUnschedulable,
		EventsToRegister: []framework.ClusterEventWithHint{
			{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeTaint, QueueingHintFn: nodeSchedulable},
			{
				Resource:       framework.TargetPod,
				ActionType:     framework.UpdatePodToleration,
				QueueingHintFn: func(_ *object.Pod, e *framework.Event) bool { return exempt(e.NewPod) },
			},
		},
		SignPlugin: framework.SignPlugin{
			Locality: framework.NodeOnly,
			Sign: func(key []byte, _ *table.Table, p *object.Pod) []byte {
				if exempt(p) {
					return append(key, "exempt"...)
				}
				return key
			},
		},
		PreFilter: func(_ *table.Table, p *object.Pod) framework.PreFilterResult {
			return framework.PreFilterResult{Skip: exempt(p)}
		},
		FilterPlugin: framework.FilterPlugin{
			Filter: filter,
			Explain: func(*framework.Input, table.Row, framework.Verdict) decision.Blocker {
				return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reason}}
			},
		},
	}
}

// nodeSchedulable reports whether the node is schedulable now and is new or was
// unschedulable before.
func nodeSchedulable(_ *object.Pod, e *framework.Event) bool {
	return !e.NewNode.Unschedulable && (e.OldNode == nil || e.OldNode.Unschedulable)
}

// filter rejects nodes with spec.unschedulable. It is not asked for pods that tolerate the taint:
// PreFilter skips these.
func filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	column := cordons.Of(in.Table).rows
	for i, r := range rows {
		out[i] = framework.Fits
		if column[r] {
			out[i] = cordoned
		}
	}
}

// cordonedRows is spec.unschedulable of the nodes, by row.
type cordonedRows struct{ rows []bool }

// cordons returns the cordonedRows of a table, which the table keeps up to date.
var cordons = table.Follow(func(*table.Table) table.Follower[*cordonedRows] {
	c := &cordonedRows{}
	return table.Follower[*cordonedRows]{Index: c, NodeChanged: c.follow, Check: c.check}
})

// follow updates the row for its node n, nil for none. The table calls it when the row's node
// changes.
func (c *cordonedRows) follow(r table.Row, _, n *object.Node) {
	c.rows = table.Reach(c.rows, r)
	c.rows[r] = n != nil && n.Unschedulable
}

// check returns an error if fresh, built anew, differs.
func (c *cordonedRows) check(fresh *cordonedRows) error {
	if !slices.Equal(c.rows, fresh.rows) {
		return fmt.Errorf("cordoned %v, rebuilt %v", c.rows, fresh.rows)
	}
	return nil
}
