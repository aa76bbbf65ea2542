package framework_test

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// A plugin is a value. This one keeps each pod on the nodes of its team. Pods of
// one team have equal signatures, so the engine asks about each node once for
// all of them.
func Example() {
	const otherTeam framework.Verdict = 1
	team := framework.Plugin{
		Name: "Team",
		EventsToRegister: []framework.ClusterEventWithHint{
			{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeLabel},
		},
		SignPlugin: framework.SignPlugin{
			Locality: framework.NodeOnly,
			Sign: func(key []byte, _ *table.Table, p *object.Pod) []byte {
				return append(key, p.Labels["team"]...)
			},
		},
		FilterPlugin: framework.FilterPlugin{
			Filter: func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
				for i, row := range rows {
					out[i] = framework.Fits
					node := in.Table.Node(row) // nil: the row has no node
					if node == nil || node.Labels["team"] != in.Pod.Labels["team"] {
						out[i] = otherTeam
					}
				}
			},
			Explain: func(*framework.Input, table.Row, framework.Verdict) decision.Blocker {
				return decision.Blocker{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{"node(s) belong to another team"}}
			},
		},
	}

	t := table.New()
	t.SetNode(&object.Node{Name: "a", Labels: map[string]string{"team": "red"}})
	t.SetNode(&object.Node{Name: "b", Labels: map[string]string{"team": "blue"}})
	in := &framework.Input{Table: t, Pod: &object.Pod{Name: "p", Labels: map[string]string{"team": "blue"}}}
	verdicts := make([]framework.Verdict, t.Rows())
	team.Filter(in, t.All(), verdicts)
	for _, row := range t.All() {
		if verdicts[row] == framework.Fits {
			fmt.Println(t.Name(row), "fits")
			continue
		}
		why := team.Explain(in, row, verdicts[row])
		fmt.Println(t.Name(row), why.Code, why.Reasons)
	}
	// Output:
	// a UnschedulableAndUnresolvable [node(s) belong to another team]
	// b fits
}
