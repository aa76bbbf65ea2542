package machine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/sim"
)

// countedWorld is two machines that see the same: one counts the equal pods of gangs that do
// not fit, the other, which keeps no answers, tries all.
type countedWorld struct {
	*rapid.T
	counts, tries *machine.Machine
	now           time.Time
	pods          map[types.UID]*object.Pod
	counted       int // records of pods that were counted to fit
}

func newCountedWorld(t *rapid.T) *countedWorld {
	gates := features.New()
	if err := gates.Set("GenericWorkload=true,TopologyAwareWorkloadScheduling=true"); err != nil {
		t.Fatal(err)
	}
	options, err := sim.OptionsUnder(config.With(gates).Default(), gates)
	if err != nil {
		t.Fatal(err)
	}
	w := &countedWorld{T: t, counts: machine.New(options), now: sim.Epoch, pods: map[types.UID]*object.Pod{}}
	options.ViewsOff = true
	w.tries = machine.New(options)
	return w
}

func (w *countedWorld) draw(name string, from, to int) int {
	return rapid.IntRange(from, to).Draw(w.T, name)
}

// step lets both see the event, compares what they do and where the pods are then, and carries
// it out.
func (w *countedWorld) step(event machine.Event) {
	effects, others := w.counts.Step(w.now, event), w.tries.Step(w.now, event)
	w.counted += named(others) - named(effects)
	counted, tried := w.text(w.counts, effects), w.text(w.tries, others)
	for i := range max(len(counted), len(tried)) {
		if i >= len(counted) || i >= len(tried) || counted[i] != tried[i] {
			w.Fatalf("after %T %+v\ncounted: %s\ntried:   %s", event, event, counted[min(i, len(counted)):], tried[min(i, len(tried)):])
		}
	}
	for _, e := range effects {
		switch e := e.(type) {
		case machine.Bind:
			w.step(machine.BindReply{UID: e.Pod.UID, Result: machine.BindDone})
			w.set(bound(w.pods[e.Pod.UID], e.Node))
		case machine.Evict:
			w.step(machine.EvictReply{Victim: e.Victim.UID, Preemptor: e.Preemptor.UID})
			w.remove(e.Victim.UID)
		}
	}
}

// named returns how many pods fit on a node that is named, though their gang does not fit.
func named(effects []machine.Effect) (n int) {
	for _, e := range effects {
		if done, is := e.(machine.AttemptDone); is && done.Decision.GroupNode != "" {
			n++
		}
	}
	return n
}

func (w *countedWorld) set(p *object.Pod) {
	w.pods[p.UID] = p
	w.step(machine.PodSet{Pod: p})
}

func (w *countedWorld) remove(uid types.UID) {
	p := w.pods[uid]
	delete(w.pods, uid)
	w.step(machine.PodGone{UID: uid, Namespace: p.Namespace, Name: p.Name})
}

// text returns the effects and where the pods wait as text, without the nodes on which pods of a
// gang fit that does not.
func (w *countedWorld) text(m *machine.Machine, effects []machine.Effect) (all []string) {
	for _, e := range effects {
		if done, is := e.(machine.AttemptDone); is {
			d := *done.Decision
			d.GroupNode = ""
			e = machine.AttemptDone{Decision: &d}
		}
		text, err := json.Marshal(e)
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%T %s", e, text))
	}
	for uid := range w.pods { // any order: sorted
		if e := m.Entry(uid); e != nil {
			all = append(all, fmt.Sprint(uid, e.Place(), e.NominatedNode(), e.State().Attempts))
		}
	}
	slices.Sort(all[len(effects):])
	return all
}

// gang creates a gang whose pods are equal, but for those that are nominated to a node, and for
// one in some worlds.
func (w *countedWorld) gang(name string) {
	size := w.draw("size", 2, 6)
	g := &object.PodGroup{
		Meta: object.Meta{Kind: object.PodGroups, Namespace: "default", Name: name, UID: types.UID(name)},
		Gang: w.draw("gang", 0, 3) > 0, MinCount: max(1, size-w.draw("surplus", 0, 3)), Priority: int32(w.draw("priority", 0, 2)),
	}
	if w.draw("constrained", 0, 2) == 0 {
		g.TopologyKey = "zone"
	}
	w.step(machine.ObjectSet{Object: g})
	cpu, port, unequal := fmt.Sprint(w.draw("cpu", 1, 3)), w.draw("port", 0, 3) == 0, w.draw("unequal", 0, 5) == 0
	for i := range size {
		p := pod(fmt.Sprint(name, "-", i), cpu)
		if unequal && i == size-1 {
			p = pod(p.Name, "4")
		}
		if port {
			p.HostPorts = []object.HostPort{{IP: "0.0.0.0", Protocol: v1.ProtocolTCP, Port: 80}}
		}
		if w.draw("nominated", 0, 5) == 0 {
			p.NominatedNode = w.node()
		}
		p.SchedulingGroup, p.Priority = object.InPodGroup(name), g.Priority
		w.set(p)
	}
}

// node returns the name of one of the nodes.
func (w *countedWorld) node() string { return fmt.Sprint("n-", w.draw("node", 0, 3)) }

func (w *countedWorld) setNode(name string) {
	n := node(name, fmt.Sprint(w.draw("cpus", 1, 6)), w.draw("tainted", 0, 5) == 0)
	n.AllowedPods, n.Labels = int64(w.draw("pods", 1, 6)), map[string]string{"zone": fmt.Sprint("z-", w.draw("zone", 0, 1))}
	w.step(machine.NodeSet{Node: n})
}

// single creates a pod of no gang, which waits, is nominated or runs.
func (w *countedWorld) single(name string) {
	p := pod(name, fmt.Sprint(w.draw("cpu", 1, 3)))
	p.Priority = int32(w.draw("priority", 0, 2))
	switch w.draw("where", 0, 2) {
	case 0:
		p.NominatedNode = w.node()
	case 1:
		p.NodeName = w.node()
	}
	w.set(p)
}

// A gang whose pods are counted has the same messages, wake-ups, victims and nodes as one of which
// each pod is tried.
func TestCountedAsTried(t *testing.T) {
	counted := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newCountedWorld(t)
		defer func() { counted += w.counted }()
		for i := range 4 {
			w.setNode(fmt.Sprint("n-", i))
		}
		for i := range w.draw("steps", 1, 20) {
			name := fmt.Sprint("p", i)
			switch w.draw("what", 0, 6) {
			case 0, 1:
				w.gang(name)
			case 2:
				w.single(name)
			case 3:
				w.setNode(w.node())
			case 4:
				if len(w.pods) > 0 {
					w.remove(rapid.SampledFrom(slices.Sorted(maps.Keys(w.pods))).Draw(t, "gone"))
				}
			}
			w.now = w.now.Add(time.Duration(w.draw("seconds", 0, 20)) * time.Second)
			w.step(machine.Tick{})
			for range 3 {
				w.step(machine.ScheduleOne{})
			}
		}
	})
	if counted == 0 {
		t.Error("no gang was counted")
	}
	t.Log(counted, "pods were counted to fit")
}
