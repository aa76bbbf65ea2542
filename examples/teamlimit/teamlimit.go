// Package teamlimit is an example of a native plugin: no node gets more pods of
// one team than the profile allows, and nodes with fewer of them are preferred.
// docs/plugins.md explains it line by line.
package teamlimit

import (
	"encoding/json"
	"fmt"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Name is what configuration files, events and metrics call the plugin.
const Name = "TeamLimit"

// label names a pod's team.
const label = "example.com/team"

// Args are the plugin's arguments in a KubeSchedulerConfiguration.
type Args struct {
	// MaxPods is how many pods of a team a node may have.
	MaxPods int `json:"maxPods"`
}

// New makes the plugin for one profile.
func New(raw json.RawMessage) (*framework.Plugin, error) {
	args := Args{MaxPods: 10}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &args); err != nil {
			return nil, err
		}
	}
	if args.MaxPods < 1 {
		return nil, fmt.Errorf("maxPods: Invalid value: %d: must be at least 1", args.MaxPods)
	}
	pl := plugin{args}
	return &framework.Plugin{
		Name: Name,
		EventsToRegister: []framework.ClusterEventWithHint{
			{Resource: framework.Node, ActionType: framework.Add},
			{Resource: framework.AssignedPod, ActionType: framework.Delete | framework.UpdatePodLabel, QueueingHintFn: leftTeam},
			{Resource: framework.TargetPod, ActionType: framework.UpdatePodLabel, QueueingHintFn: changedTeam},
		},
		SignPlugin:   framework.SignPlugin{Sign: sign, Locality: framework.NodeAndPods},
		PreFilter:    preFilter,
		FilterPlugin: framework.FilterPlugin{Filter: pl.filter, Explain: explain},
		PreScore:     preScore,
		ScorePlugin:  framework.ScorePlugin{Score: score, NormalizeScore: normalize},
	}, nil
}

type plugin struct{ args Args }

// sign appends all that the plugin reads of the pod. The zero byte keeps the two
// parts apart.
func sign(key []byte, _ *table.Table, p *object.Pod) []byte {
	return append(append(append(key, p.Namespace...), 0), p.Labels[label]...)
}

// preFilter skips pods without a team.
func preFilter(_ *table.Table, p *object.Pod) framework.PreFilterResult {
	return framework.PreFilterResult{Skip: p.Labels[label] == ""}
}

// full is the verdict on a node that has enough pods of the team.
const full framework.Verdict = 1

func (pl plugin) filter(in *framework.Input, rows []table.Row, out []framework.Verdict) {
	for i, row := range rows {
		out[i] = framework.Fits
		if count(in, row) >= pl.args.MaxPods {
			out[i] = full
		}
	}
}

// explain says why a node was rejected. Unschedulable: the pod would fit if
// others left, so preemption may help.
func explain(*framework.Input, table.Row, framework.Verdict) decision.Blocker {
	return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{"node(s) had too many pods of the team"}}
}

func preScore(_ *table.Table, p *object.Pod) framework.PreScoreResult {
	return framework.PreScoreResult{Skip: p.Labels[label] == ""}
}

// score writes how many pods of the team each node has.
func score(in *framework.Input, rows []table.Row, out []int64) {
	for i, row := range rows {
		out[i] = int64(count(in, row))
	}
}

// normalize makes 100 of the fewest pods, and 0 of the most.
func normalize(raw, fewest, most int64) int64 {
	if fewest == most {
		return 100
	}
	return 100 * (most - raw) / (most - fewest)
}

// count is how many pods of the team are on the node. They are there from the
// moment that they are assumed.
func count(in *framework.Input, row table.Row) int {
	n := 0
	for _, placed := range in.Table.Pods(row) {
		if placed.Pod.Namespace == in.Pod.Namespace && placed.Pod.Labels[label] == in.Pod.Labels[label] {
			n++
		}
	}
	return n
}

// leftTeam: a pod of the rejected pod's team is gone, or has another team now.
func leftTeam(rejected *object.Pod, e *framework.Event) bool {
	return e.OldPod.Namespace == rejected.Namespace && e.OldPod.Labels[label] == rejected.Labels[label]
}

// changedTeam: the rejected pod itself has another team now.
func changedTeam(rejected *object.Pod, e *framework.Event) bool {
	return e.NewPod.UID == rejected.UID && e.OldPod.Labels[label] != e.NewPod.Labels[label]
}
