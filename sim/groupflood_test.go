package sim

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// Groups without pods, and pods whose groups do not exist, cost no attempt, whatever comes and goes,
// and nobody else waits for them. Of each pod it is told once that it is gated.
func TestFloodOfGroups(t *testing.T) {
	const flood = 2000
	gates := features.New()
	if err := gates.Set("GenericWorkload=true"); err != nil {
		t.Fatal(err)
	}
	o, err := OptionsUnder(config.With(gates).Default(), gates)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorld(o, Epoch)
	decided, groups, told := map[string]int{}, 0, 0
	w.Observe = func(e machine.Effect) {
		switch e := e.(type) {
		case machine.AttemptDone:
			if e.Decision.Result == decision.ResultGated {
				told++
			} else {
				decided[e.Decision.Pod.Name]++
			}
		case machine.PodGroupDone, machine.PatchGroupStatus:
			groups++
		}
	}
	pod := func(name, group string) {
		p := &object.Pod{UID: types.UID(name), Namespace: "d", Name: name, SchedulingGroup: object.InPodGroup(group), SchedulerName: "default-scheduler"}
		p.Demand.Usage.MilliCPU = 100
		p.Demand.Requests, p.Demand.NonZero, p.Demand.Scoring = p.Demand.Usage, p.Demand.Usage, p.Demand.Usage
		w.Cluster.SetPod(p)
	}
	for i := range flood {
		name := fmt.Sprintf("g%d", i)
		w.Cluster.SetObject(&object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "d", Name: name, UID: types.UID(name)}, Gang: true, MinCount: 1 + i})
		pod(fmt.Sprintf("p%d", i), "none-"+name)
	}
	for i := range 10 {
		name := fmt.Sprint("n", i)
		w.Cluster.SetNode(&object.Node{Name: name, AllowedPods: 10, Allocatable: resource.Vector{MilliCPU: 4000, Memory: 1 << 30}})
		pod(fmt.Sprint("single", i), "")
		w.Settle()
		w.Advance(10 * time.Minute)
	}
	for i := range 10 {
		if n := decided[fmt.Sprint("single", i)]; n != 1 {
			t.Errorf("pod %d was decided on %d times", i, n)
		}
	}
	if len(decided) != 10 || groups != 0 || told != flood {
		t.Errorf("%d pods were decided on, %d effects of groups, %d pods were told that they are gated", len(decided), groups, told)
	}
}
