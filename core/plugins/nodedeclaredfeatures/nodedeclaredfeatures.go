package nodedeclaredfeatures

import (
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// reason is kube-scheduler's text for rejected nodes.
const reason = "node(s) didn't match Pod's required features"

// missing is the verdict on a node that lacks a required feature.
const missing framework.Verdict = 1

// New returns the plugin. Without its feature gate it rejects nothing, even if a
// configuration enables it.
func New(f feature.Features) framework.Plugin {
	if !f.NodeDeclaredFeatures {
		skip := func(*table.Table, *object.Pod) framework.PreFilterResult {
			return framework.PreFilterResult{Skip: true}
		}
		return framework.Plugin{
			Name:         names.NodeDeclaredFeatures,
			PreFilter:    skip,
			FilterPlugin: framework.FilterPlugin{Filter: filter, Explain: explain},
		}
	}
	return framework.Plugin{
		Name: names.NodeDeclaredFeatures,
		EventsToRegister: []framework.ClusterEventWithHint{
			{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeDeclaredFeature, QueueingHintFn: nodeDeclares},
			{Resource: framework.TargetPod, ActionType: framework.UpdatePod, QueueingHintFn: needsOthers},
		},
		SignPlugin: framework.SignPlugin{
			Locality: framework.NodeOnly,
			Sign: func(key []byte, _ *table.Table, p *object.Pod) []byte {
				for _, f := range p.Features {
					key = append(append(key, f...), ',')
				}
				return key
			},
		},
		PreFilter: func(_ *table.Table, p *object.Pod) framework.PreFilterResult {
			return framework.PreFilterResult{Skip: len(p.Features) == 0}
		},
		FilterPlugin: framework.FilterPlugin{Filter: filter, Explain: explain},
	}
}

// nodeDeclares reports whether the node is new, or declares other features than before.
func nodeDeclares(_ *object.Pod, e *framework.Event) bool {
	return e.OldNode == nil || !slices.Equal(e.OldNode.Features, e.NewNode.Features)
}

// needsOthers reports whether the pod now requires other features than before.
func needsOthers(_ *object.Pod, e *framework.Event) bool {
	return !slices.Equal(e.OldPod.Features, e.NewPod.Features)
}

// filter rejects nodes that do not declare all features that the pod requires.
func filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	for i := range rows {
		out[i] = framework.Fits
		if n := in.Table.Node(rows[i]); n != nil && !n.Declares(in.Pod.Features) {
			out[i] = missing
		}
	}
}

// explain returns the code and reason of missing.
func explain(*framework.Input, table.Row, framework.Verdict) decision.Blocker {
	return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{reason}}
}
