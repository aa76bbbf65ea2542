package plugintest_test

import (
	"testing"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// Scores of a plugin that only scores, and reads nothing of the pod, are kept and compared, too.
func TestKeptScores(t *testing.T) {
	tb := table.New()
	tb.SetNode(&object.Node{Name: "a"})
	k := plugintest.Kept{Table: tb, Plugin: framework.Plugin{
		Name: "Labels", SignPlugin: framework.SignPlugin{Locality: framework.NodeOnly},
		ScorePlugin: framework.ScorePlugin{Score: func(in *framework.Input, rows []table.Row, scores []int64) {
			for i, r := range rows {
				scores[i] = int64(len(in.Table.Node(r).Labels))
			}
		}},
	}}
	k.Check(t, &object.Pod{UID: "p"})
	tb.SetNode(&object.Node{Name: "a", Labels: map[string]string{"pool": "x"}})
	k.Check(t, &object.Pod{UID: "q"})
	if k.Shared != 1 {
		t.Errorf("%d pods shared their scores, want 1", k.Shared)
	}
}
