package machine_test

import (
	"testing"

	"github.com/berth-scheduler/berth/sim/scenario"
)

// A preemption ends the nominations of pods of lower priority to its node.
func TestPreemptionEndsNominations(t *testing.T) {
	story, err := scenario.Parse("nominations", `
node a cpu=4 label:zone=a
pod low cpu=4 bound=a
pod mid cpu=4 priority=10 selector:zone=b
schedule
update pod mid nominated=a
pod urgent cpu=4 priority=100
schedule
expect urgent -> a
expect mid nominated none`)
	if err == nil {
		err = story.Play(scenario.Engine{Seed: 1, Workers: 1})
	}
	if err != nil {
		t.Error(err)
	}
}
