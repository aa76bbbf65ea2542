package sim

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/config"
)

// Decisions do not depend on the number of workers.
func TestWorkersDoNotMatter(t *testing.T) {
	placed := func(workers int) map[string]string {
		o, err := Options(config.Default())
		if err != nil {
			t.Fatal(err)
		}
		o.Check, o.Workers, o.Seed = false, workers, 7
		m, nodes := machine.New(o), map[string]string{}
		for i := range 300 {
			m.Step(time.Unix(0, 0), machine.NodeSet{Node: benchNode(i)})
		}
		for i := range 900 {
			k := int64(i % (1 + i/2)) // classes that come back, and ever more that do not
			m.Step(time.Unix(0, 0), machine.PodSet{Pod: benchPod(i, 10+k%300, (64+k)<<20)})
		}
		for m.Ready() {
			for _, e := range m.Step(time.Unix(1, 0), machine.ScheduleOne{}) {
				if d, ok := e.(machine.AttemptDone); ok {
					d := d.Decision
					nodes[d.Pod.String()] = fmt.Sprint(d.Node, d.Score, d.Ties, d.NodesFeasible, d.Result == decision.ResultScheduled)
				}
			}
		}
		if err := m.Verify(); err != nil {
			t.Fatal(err)
		}
		return nodes
	}
	one := placed(1)
	for _, workers := range []int{2, 3} {
		if many := placed(workers); !maps.Equal(one, many) {
			t.Errorf("with %d workers: %v\nwith one: %v", workers, many, one)
		}
	}
}
