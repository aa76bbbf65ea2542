package schedulinggates

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/table"
)

// New returns the plugin.
func New() framework.Plugin {
	return framework.Plugin{
		Name: names.SchedulingGates,
		EventsToRegister: []framework.ClusterEventWithHint{
			{Resource: framework.TargetPod, ActionType: framework.UpdatePodSchedulingGatesEliminated},
		},
		PreEnqueue: preEnqueue,
	}
}

// preEnqueue rejects the pod while it has scheduling gates, so that it is not queued.
func preEnqueue(_ *table.Table, p *object.Pod) *decision.Status {
	if len(p.Gates) == 0 {
		return nil
	}
	return &decision.Status{
		Code:    decision.UnschedulableAndUnresolvable,
		Reasons: []string{fmt.Sprintf("waiting for scheduling gates: %v", p.Gates)},
	}
}
