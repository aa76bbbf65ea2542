package deferredpodscheduling

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// New returns the plugin, which rejects no pod and no node.
func New() framework.Plugin {
	return framework.Plugin{
		Name:       names.DeferredPodScheduling,
		SignPlugin: framework.SignPlugin{Locality: framework.NodeOnly},
		PreFilter: func(*table.Table, *object.Pod) framework.PreFilterResult {
			return framework.PreFilterResult{Skip: true}
		},
		FilterPlugin: framework.FilterPlugin{
			Filter: func(_ *framework.Input, _ []table.Row, out []framework.Verdict) {
				for i := range out {
					out[i] = framework.Fits
				}
			},
			Explain: func(*framework.Input, table.Row, framework.Verdict) decision.Blocker { return decision.Blocker{} },
		},
		Permit: func(*table.Table, *object.Pod, string) framework.PermitResult { return framework.PermitResult{} },
	}
}
