package group

import (
	"testing"

	"github.com/berth-scheduler/berth/core/object"
)

// A group of which three are needed goes through its phases as its pods come, run and end. Who
// came first has it for good, and so have Failed and Finished.
func TestStatus(t *testing.T) {
	g := &object.PodGroup{MinCount: 3}
	for _, c := range []struct {
		was  object.GroupStatus
		pods Census
		want object.GroupStatus
	}{
		{object.GroupStatus{}, Census{}, object.GroupStatus{Phase: "Pending"}},
		{object.GroupStatus{}, Census{Present: 2, Running: 2, Owners: "d/a"}, object.GroupStatus{Phase: "Pending", Running: 2}},
		{object.GroupStatus{Phase: "Pending"}, Census{Present: 3, Owners: "d/a"}, object.GroupStatus{Phase: "Scheduling", OccupiedBy: "d/a"}},
		{object.GroupStatus{}, Census{Present: 3, Running: 3, Owners: "d/a"}, object.GroupStatus{Phase: "Running", OccupiedBy: "d/a", Running: 3}},
		{object.GroupStatus{OccupiedBy: "d/a"}, Census{Present: 3, Running: 2, Owners: "d/b"}, object.GroupStatus{Phase: "Scheduling", OccupiedBy: "d/a", Running: 2}},
		{object.GroupStatus{Phase: "Running"}, Census{Present: 2, Running: 2, Succeeded: 1}, object.GroupStatus{Phase: "Running", Running: 2, Succeeded: 1}},
		{object.GroupStatus{Phase: "Running"}, Census{Present: 2, Running: 1, Succeeded: 1}, object.GroupStatus{Phase: "Scheduling", Running: 1, Succeeded: 1}},
		{object.GroupStatus{Phase: "Running"}, Census{Present: 2, Running: 1}, object.GroupStatus{Phase: "Pending", Running: 1}},
		{object.GroupStatus{Phase: "Running"}, Census{Present: 2, Running: 1, Failed: 1}, object.GroupStatus{Phase: "Scheduling", Running: 1, Failed: 1}},
		{object.GroupStatus{Phase: "Running"}, Census{Present: 2, Running: 2, Failed: 1}, object.GroupStatus{Phase: "Failed", Running: 2, Failed: 1}},
		{object.GroupStatus{Phase: "Running"}, Census{Succeeded: 3}, object.GroupStatus{Phase: "Finished", Succeeded: 3}},
		{object.GroupStatus{Phase: "Running"}, Census{Succeeded: 3, Failed: 1}, object.GroupStatus{Phase: "Finished", Succeeded: 3, Failed: 1}},
		{object.GroupStatus{Phase: "Failed"}, Census{Present: 1, Succeeded: 3, Failed: 1}, object.GroupStatus{Phase: "Failed", Succeeded: 3, Failed: 1}},
		{object.GroupStatus{Phase: "Finished"}, Census{Present: 1, Running: 1, Succeeded: 3}, object.GroupStatus{Phase: "Finished", Running: 1, Succeeded: 3}},
		{object.GroupStatus{Phase: "Unknown"}, Census{Present: 3}, object.GroupStatus{Phase: "Scheduling"}},
	} {
		if got := Status(g, c.was, c.pods); got != c.want {
			t.Errorf("%+v with %+v: %+v, want %+v", c.was, c.pods, got, c.want)
		}
	}
	if got := Status(&object.PodGroup{Fault: "no number"}, object.GroupStatus{}, Census{Present: 5, Succeeded: 5}); got.Phase != object.GroupPending {
		t.Errorf("a group that says no number: %+v", got)
	}
}
