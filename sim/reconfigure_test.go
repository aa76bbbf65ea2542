package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim/generate"
)

// A machine that is given another configuration decides from then on as one that
// began with it, for every pod that waits: whatever happened before, and while
// bindings are under way.
func TestReconfiguredIsFresh(t *testing.T) {
	for _, mix := range generate.Mixes() {
		t.Run(mix, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(4) {
				compareReconfigured(t, mix, seed)
			}
		})
	}
}

func compareReconfigured(t *testing.T, mix string, seed uint64) {
	world, err := generate.Cluster(mix, seed)
	if err != nil {
		t.Fatal(err)
	}
	donor, err := generate.Cluster("all", seed+1<<32)
	if err != nil {
		t.Fatal(err)
	}
	before, in := optionsOf(t, world.Config), inputOf(world)
	if before.Extenders = nil; len(before.Profiles) != 1 {
		t.Fatal("a world has one profile")
	}
	before.Seed, in.Machine = seed, before
	w, err := Load(in)
	if err != nil {
		t.Fatal(err)
	}
	w.Deliver()
	random := rand.New(rand.NewPCG(seed, 1))
	for range random.IntN(len(world.Pending) + 1) {
		w.Cycle()
	}
	if random.IntN(2) == 0 {
		w.Advance(time.Duration(random.IntN(20)) * time.Second)
	}
	var held []machine.Effect // a decision whose binding is under way
	if random.IntN(2) == 0 && w.Machine.Ready() {
		held = w.Machine.Step(w.Now, machine.ScheduleOne{})
	}
	after := optionsOf(t, donor.Config)
	w.step(machine.Reconfigured{Profiles: after.Profiles, Workers: 1, InitialBackoff: after.InitialBackoff, MaxBackoff: after.MaxBackoff})
	for _, effect := range held {
		if outcome := w.carryOut(effect); outcome != nil {
			w.step(outcome)
		}
	}
	w.Deliver()
	if c := w.Machine.Queue().Counts(); c.Backoff+c.Unschedulable > 0 {
		t.Errorf("%s %d: pods are not tried again: %+v", mix, seed, c)
	}
	for range 3 {
		compareWithFresh(t, fmt.Sprintf("%s %d", mix, seed), w, in, donor.Config)
		if !w.Cycle() {
			return
		}
	}
}

// compareWithFresh compares what the machine says of each pod that waits with what
// one says that begins with the cluster as it is.
func compareWithFresh(t *testing.T, name string, w *World, in Input, configuration string) {
	in.Machine, in.Start = optionsOf(t, configuration), w.Now
	in.Nodes, in.Pods, in.Objects = w.Cluster.Nodes(), w.Cluster.Pods(), w.Cluster.Objects()
	fresh, err := Load(in)
	if err != nil {
		t.Fatal(err)
	}
	fresh.Deliver()
	for _, p := range w.Cluster.Pods() {
		if p.NodeName != "" || p.Terminating {
			continue
		}
		got, want := described(w.Machine.Assess(p)), described(fresh.Machine.Assess(p))
		if got != want {
			t.Errorf("%s, pod %s:\nreconfigured %s\nfresh        %s", name, p.Key(), got, want)
		}
	}
}

// described is a decision except for the draw among equals, which goes by the seed.
func described(d *decision.Decision) string {
	nodes := slices.Clone(d.Nodes)
	for i := range nodes {
		if nodes[i].Total == d.Score && d.Ties > 1 {
			nodes[i].Name += " (best)"
		}
	}
	return fmt.Sprint(d.Result, d.Score, d.Ties, d.NodesFeasible, d.Tallies, d.RejectedBy, d.PreEnqueueStatus, d.PreFilter, d.Victims, nodes)
}

func optionsOf(t *testing.T, configuration string) machine.Options {
	t.Helper()
	c := config.Default()
	if configuration != "" {
		var err error
		if c, err = config.Decode([]byte(configuration), "world"); err != nil {
			t.Fatal(err)
		}
	}
	o, err := OptionsUnder(c, features.New())
	if err != nil {
		t.Fatal(err)
	}
	o.Check = true
	return o
}

func inputOf(w generate.World) Input {
	in := Input{Start: Epoch}
	for _, n := range w.Nodes {
		in.Nodes = append(in.Nodes, decode.Node(n))
	}
	for _, p := range slices.Concat(w.Bound, w.Pending) {
		in.Pods = append(in.Pods, decode.Pod(p))
	}
	for _, b := range w.Budgets {
		in.Budgets = append(in.Budgets, decode.Budget(b))
	}
	for _, n := range w.Namespaces {
		in.Namespaces = append(in.Namespaces, decode.Namespace(n))
	}
	for _, o := range w.SelectorOwners {
		in.SelectorOwners = append(in.SelectorOwners, decode.SelectorOwner(o))
	}
	for _, o := range w.Objects {
		in.Objects = append(in.Objects, decode.Object(o))
	}
	return in
}
