package nodename

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// reason is v1.37's text for rejected nodes.
const reason = "node(s) didn't match the requested node name"

// otherNode is the verdict on a node that the pod does not name.
const otherNode framework.Verdict = 1

// New returns the plugin.
func New() framework.Plugin {
	return framework.Plugin{
		Name:             names.NodeName,
		EventsToRegister: []framework.ClusterEventWithHint{{Resource: framework.Node, ActionType: framework.Add}},
		SignPlugin: framework.SignPlugin{
			Locality: framework.NodeOnly,
			Sign:     func(key []byte, _ *table.Table, p *object.Pod) []byte { return append(key, p.NodeName...) },
		},
		PreFilter: preFilter,
		FilterPlugin: framework.FilterPlugin{
			Filter: filter,
			Explain: func(*framework.Input, table.Row, framework.Verdict) decision.Blocker {
				return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reason}}
			},
		},
	}
}

// preFilter returns the node that the pod names as the only one to look at. It skips pods that name
// none.
func preFilter(_ *table.Table, p *object.Pod) framework.PreFilterResult {
	if p.NodeName == "" {
		return framework.PreFilterResult{Skip: true}
	}
	return framework.PreFilterResult{NodeNames: []string{p.NodeName}}
}

// filter rejects every node but the one that the pod names.
func filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	for i := range rows {
		out[i] = framework.Fits
		if in.Table.Name(rows[i]) != in.Pod.NodeName {
			out[i] = otherNode
		}
	}
}
