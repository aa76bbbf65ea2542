package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// simulation is the part of the simulation's result that the test looks at.
type simulation struct {
	APIVersion, Kind string
	Decisions        []struct {
		Pod, Result string
		NodesTotal  int
	}
	Placements, Unplaced map[string]string
}

// What `berth simulate` says of the live cluster is what Berth then does there.
func TestSimulateLive(t *testing.T) {
	f := newField(t, "simulate")
	f.sameNodes(3, "4", 110)
	f.priority("last", -1)
	late := f.pod("one-too-many", "1") // it would fit if the others did not come first
	late.Spec.PriorityClassName = f.name + "-last"
	f.create(append(f.podsOf("one", 12, "1"), f.pod("giant", "64"), late)...)

	said := f.simulate(1)
	if said.APIVersion != "berth.dev/v1alpha1" || said.Kind != "SimulationResult" || len(said.Decisions) < 14 {
		t.Errorf("%s %s with %d decisions, want 14 or more", said.APIVersion, said.Kind, len(said.Decisions))
	}
	for _, decision := range said.Decisions {
		if decision.NodesTotal != 3 {
			t.Errorf("decision on %s looked at %d nodes, want 3", decision.Pod, decision.NodesTotal)
		}
	}
	if len(said.Placements) != 12 || len(said.Unplaced) != 2 {
		t.Errorf("%d placed, %d not, want 12 and 2", len(said.Placements), len(said.Unplaced))
	}

	f.berth(cluster.SchedulerOptions{})
	f.await("the pods to be placed or rejected", func() string {
		return missing(bound(f.seen(""))+rejected(f.seen("")), 14)
	})
	for _, pod := range f.seen("") {
		key := f.name + "/" + pod.Name
		if _, placed := said.Placements[key]; placed != (pod.Spec.NodeName != "") {
			t.Errorf("%s: node %q, the simulation placed it: %t", key, pod.Spec.NodeName, placed)
		}
		if c := condition(pod, corev1.PodScheduled); pod.Spec.NodeName == "" && c.Message != said.Unplaced[key] {
			t.Errorf("%s: the condition says %q, the simulation %q", key, c.Message, said.Unplaced[key])
		}
	}

	// With all of it in place the simulation has only the two left to try.
	said = f.simulate(1)
	if len(said.Decisions) < 2 || len(said.Placements) != 0 || len(said.Unplaced) != 2 {
		t.Errorf("afterwards: %d decisions, %d placed, %d not", len(said.Decisions), len(said.Placements), len(said.Unplaced))
	}
}

// simulate runs berth simulate on the live cluster, which has to end with a status.
func (f *field) simulate(status int) simulation {
	f.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(f.Context(), filepath.Join(programs(f.T), "berth"),
		"simulate", "--kubeconfig", f.cluster.Kubeconfig(cluster.Admin), "-o", "json")
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || command.ProcessState.ExitCode() != status {
		f.Fatalf("berth simulate: %v, want exit status %d\n%s", err, status, &stderr)
	}
	var said simulation
	if err := json.Unmarshal(stdout.Bytes(), &said); err != nil {
		f.Fatalf("berth simulate: %v\n%s", err, &stdout)
	}
	return said
}
