package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/recovered"
	"github.com/berth-scheduler/berth/core/table"
)

// A plugin that panics when it is asked whether an event about one node helps a pod is
// told of, and the pod is tried again.
func TestPanicWhenAskedWhetherANodeHelps(t *testing.T) {
	asked := false // from then on it panics
	picky := &framework.Plugin{
		Name:             "Picky",
		EventsToRegister: []framework.ClusterEventWithHint{{Resource: framework.Node, ActionType: framework.UpdateNodeAllocatable}},
		SignPlugin:       framework.SignPlugin{Locality: framework.NodeOnly, Sign: func(key []byte, _ *table.Table, _ *object.Pod) []byte { return key }},
		FilterPlugin: framework.FilterPlugin{
			Filter: func(_ *framework.Input, _ []table.Row, out []framework.Verdict) {
				if asked {
					panic("cannot say")
				}
				for i := range out {
					out[i] = framework.Fits + 1
				}
			},
			Explain: func(*framework.Input, table.Row, framework.Verdict) decision.Blocker {
				return decision.Blocker{Code: decision.Unschedulable}
			},
		},
	}
	w := newWorld(t)
	o := options(w.moody)
	p := o.Profiles[0]
	p.PostFilter, p.PreEnqueue, p.PreFilter, p.Filter = nil, nil, nil, []*framework.Plugin{picky}
	p.Plugins[picky.Name] = picky
	o.Profiles, o.Extenders = []*profile.Profile{p}, nil
	var panics []string
	o.Panicked = func(p *recovered.Panic) { panics = append(panics, p.Error()) }
	m := New(o)
	node, bigger := w.node("n", 1000), w.node("n", 2000)
	pod := w.pod("p", 100)
	for _, e := range []Event{NodeSet{Node: node}, PodSet{Pod: pod}, ScheduleOne{}} {
		m.Step(w.now, e)
	}
	if m.First() != nil {
		t.Fatal("the pod was not rejected")
	}
	asked = true
	m.Step(w.now.Add(5*time.Second), NodeSet{Node: bigger})
	if len(panics) != 1 || !strings.Contains(panics[0], `asking plugin "Picky" whether a node helps a pod panicked: cannot say (foresight_test.go:`) {
		t.Errorf("told of %q", panics)
	}
	if first := m.First(); first == nil || first.UID != pod.UID {
		t.Errorf("the pod that is tried again is %v", first)
	}
}

// A replay that begins in the middle of a record knows which pods could preempt nobody, and
// so which of those that wait are alike.
func TestNoVictimsIsInTheSnapshot(t *testing.T) {
	p := newEvictions(t)
	p.do(preemptible("a", 1, ""))
	p.pods.byUID["a"].noVictims = true
	s := p.Snapshot()
	waits := &s.Queue.Entries[0]
	waits.Place, waits.RejectedBy = queue.Unschedulable, []queue.Rejector{{Plugin: "Alone"}}
	restored := newEvictions(t)
	if err := restored.Restore(time.Unix(1000, 0), []Event{preemptible("a", 1, "")}, s); err != nil {
		t.Fatal(err)
	}
	if !restored.pods.byUID["a"].noVictims {
		t.Error("it is lost")
	}
}
