package preemption

import (
	"slices"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/plugins"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/decode"
)

// berth is Berth's answer for the case.
func berth(t *testing.T, c *testCase) *outcome {
	cfg, err := config.Decode([]byte(configuration), "configuration")
	if err != nil {
		t.Fatal(err)
	}
	registry := plugins.Registry(features.Plugins(features.New()))
	registry["PrioritySort"] = func(any) (*framework.Plugin, error) {
		return &framework.Plugin{Name: "PrioritySort", Less: func(a, b *framework.QueuedPodInfo) bool {
			return a.Pod.Name == c.pod.Name && b.Pod.Name != c.pod.Name // the pod that it is about, whatever its rank
		}}, nil
	}
	profiles, err := profile.BuildAll(config.Profiles(cfg), registry)
	if err != nil {
		t.Fatal(err)
	}
	m := machine.New(machine.Options{Profiles: profiles, Workers: 1, Check: true})
	for _, n := range c.nodes {
		m.Step(epoch, machine.NodeSet{Node: decode.Node(n)})
	}
	for _, b := range c.budgets {
		m.Step(epoch, machine.BudgetSet{Budget: decode.Budget(b)})
	}
	for _, p := range slices.Concat(c.placed, c.nominated) {
		m.Step(epoch, machine.PodSet{Pod: decode.Pod(p)})
	}
	m.Step(epoch, machine.PodSet{Pod: decode.Pod(c.pod)})
	out := &outcome{}
	for _, e := range m.Step(epoch.Add(time.Second), machine.ScheduleOne{}) {
		switch e := e.(type) {
		case machine.AttemptDone:
			out.fits = e.Decision.NodesFeasible > 0
			out.message = explain.Message(e.Decision)
			for _, v := range e.Decision.Victims {
				out.victims = append(out.victims, v.Name)
			}
		case machine.Evict:
			out.evicted = append(out.evicted, e.Victim.Name)
		case machine.PatchStatus:
			if e.Pod.Name != c.pod.Name {
				out.cleared = append(out.cleared, e.Pod.Name)
			}
		}
	}
	out.nominated = m.Entry(c.pod.UID).NominatedNode()
	slices.Sort(out.cleared)
	slices.Sort(out.evicted)
	slices.Sort(out.victims) // by namespace first, as they come
	return out
}
