package machine_test

import (
	"os"
	"testing"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/sim"
)

// The way of a pod from its watch event to its binding is four steps. Another pod of its class
// has gone it before. tools/way counts through how many files of core the steps lead, and past
// how many returns: it compares what this test covers with what it covers up to there.
func TestWayOfAPod(t *testing.T) {
	options, err := sim.Options(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	options.Check = false // checks are no part of the way
	m := machine.New(options)
	for _, name := range []string{"large", "medium", "small"} {
		m.Step(sim.Epoch, machine.NodeSet{Node: node(name, "8", false)})
	}
	first, second := pod("web-0", "2"), pod("web-1", "2")
	walkToBinding(t, m, first, bound(first, ""))
	if os.Getenv("BERTH_WAY") != "setup" {
		walkToBinding(t, m, second, bound(second, ""))
	}
}

// walkToBinding takes the pod from its watch event to its binding, which shown shows.
func walkToBinding(t *testing.T, m *machine.Machine, p, shown *object.Pod) {
	t.Helper()
	m.Step(sim.Epoch, machine.PodSet{Pod: p})
	for _, e := range m.Step(sim.Epoch, machine.ScheduleOne{}) {
		if bind, is := e.(machine.Bind); is {
			shown.NodeName = bind.Node
		}
	}
	m.Step(sim.Epoch, machine.BindReply{UID: p.UID, Result: machine.BindDone})
	m.Step(sim.Epoch, machine.PodSet{Pod: shown})
	if m.Table().Pod(p.UID) == nil || m.Assumed() != 0 {
		t.Errorf("%s is not bound to %q, and %d pods are assumed", p.Name, shown.NodeName, m.Assumed())
	}
}
