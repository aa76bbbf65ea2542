package sim_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/sim"
)

// A run goes on until all pods of a gang were tried on all nodes: those that were rejected in the
// cycle that placed the others were tried in the rack of these alone. The group's condition may
// be what it was before.
func TestRestOfAGangIsTried(t *testing.T) {
	gates := features.New()
	if err := gates.Set("GenericWorkload=true"); err != nil {
		t.Fatal(err)
	}
	once := object.GroupCondition{Status: v1.ConditionTrue, Reason: "Scheduled", Message: "placed in rack n0"}
	group := &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "default", Name: "g", UID: "g"}, Gang: true, MinCount: 1, Preferred: "rack"}
	for _, condition := range []object.GroupCondition{{}, once} {
		group.Scheduled = condition
		options, err := sim.OptionsUnder(config.With(gates).Default(), gates)
		if err != nil {
			t.Fatal(err)
		}
		options.Profiles[0].Levels = []string{"rack"}
		in := sim.Input{Machine: options, Objects: []object.Object{group}}
		for i, cpu := range []string{"3", "2"} {
			n := *exampleNode(fmt.Sprint("n", i), cpu)
			n.Labels = map[string]string{"rack": n.Name}
			in.Nodes = append(in.Nodes, &n)
		}
		for i := range 5 {
			p := *examplePod(fmt.Sprint("g-", i), "1")
			p.SchedulingGroup = object.InPodGroup("g")
			in.Pods = append(in.Pods, &p)
		}
		r, err := sim.Run(in)
		if err != nil || len(r.Placed) != 5 {
			t.Errorf("%q: placed %v, pending %v, %v", condition.Message, r.Placed, r.Unplaced, err)
		}
	}
}
