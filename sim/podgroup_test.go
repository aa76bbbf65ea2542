package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/index/priorities"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
)

// gangs is a cluster to which gangs and other pods come at random.
type gangs struct {
	*World
	*rand.Rand
	t      *testing.T
	min    map[string]int
	deaths map[string]bool // gangs of which a pod was deleted, or evicted
	made   int
	// told is what was told of the groups' cycles in this step.
	told []machine.PodGroupDone
}

func newGangs(t *testing.T, seed uint64) *gangs {
	gates := features.New()
	if err := gates.Set("GenericWorkload=true"); err != nil {
		t.Fatal(err)
	}
	o, err := OptionsUnder(config.With(gates).Default(), gates)
	if err != nil {
		t.Fatal(err)
	}
	o.Check, o.Seed = true, seed
	w := &gangs{World: NewWorld(o, Epoch), Rand: rand.New(rand.NewPCG(seed, 1)), t: t, min: map[string]int{}, deaths: map[string]bool{}}
	w.Observe = func(e machine.Effect) {
		switch e := e.(type) {
		case machine.PodGroupDone:
			w.told = append(w.told, e)
		case machine.Evict:
			w.deaths[e.Victim.PodGroup()] = true
		}
	}
	return w
}

func (w *gangs) name(kind string) string {
	w.made++
	return fmt.Sprintf("%s%d", kind, w.made)
}

func (w *gangs) addNode() {
	w.Cluster.SetNode(&object.Node{Name: w.name("n"), AllowedPods: 10,
		Allocatable: resource.Vector{MilliCPU: int64(1+w.IntN(4)) * 1000, Memory: 1 << 30}})
}

func (w *gangs) addPod(group string, priority int32) {
	name := w.name("p")
	p := &object.Pod{UID: types.UID(name), Namespace: "d", Name: name, SchedulingGroup: object.InPodGroup(group), SchedulerName: "default-scheduler", Priority: priority}
	p.Demand.Usage.MilliCPU = int64(1+w.IntN(3)) * 500
	p.Demand.Requests, p.Demand.NonZero, p.Demand.Scoring = p.Demand.Usage, p.Demand.Usage, p.Demand.Usage
	w.Cluster.SetPod(p)
}

func (w *gangs) addGang() {
	name := w.name("g")
	pods := 1 + w.IntN(6)
	g := &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "d", Name: name, UID: types.UID(name)}, Gang: true, MinCount: 1 + w.IntN(pods),
		Priority: int32(w.IntN(3)) * 100, PreemptedWhole: w.IntN(2) == 0}
	w.min[name] = g.MinCount
	w.Cluster.SetObject(g)
	for range pods {
		w.addPod(name, g.Priority)
	}
}

// Of a gang no pod is bound before enough of its pods are, as long as nobody deletes its
// pods; and whatever happens, the machine's checks hold after each step, those of the groups
// among them.
func TestGangsAreAllOrNothing(t *testing.T) {
	placed, failed, preempted := 0, 0, 0
	for seed := range uint64(60) {
		w := newGangs(t, seed)
		w.addNode()
		for range 40 {
			switch w.IntN(8) {
			case 0:
				w.addNode()
			case 1, 2, 3:
				w.addGang()
			case 4:
				w.addPod("", int32(w.IntN(3))*100)
			case 5:
				w.deletePod()
			default:
				w.Advance(2e9)
			}
			w.Deliver()
			for w.told = nil; w.Cycle(); w.told = nil {
				w.checkGangs()
				for _, done := range w.told {
					switch {
					case done.Result == decision.ResultScheduled:
						placed++
					case len(done.Victims) > 0:
						preempted++
					default:
						failed++
					}
				}
			}
		}
	}
	if placed < 100 || failed < 100 || preempted < 20 {
		t.Errorf("only %d gangs were placed, %d tried in vain, and %d preempted others", placed, failed, preempted)
	}
}

func (w *gangs) deletePod() {
	pods := w.Cluster.Pods()
	if len(pods) == 0 {
		return
	}
	p := pods[w.IntN(len(pods))]
	w.deaths[p.PodGroup()] = true
	if err := w.Cluster.DeletePod(p.Key()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *gangs) checkGangs() {
	bound := map[string]int{}
	for _, p := range w.Cluster.Pods() {
		if p.NodeName != "" {
			bound[p.PodGroup()]++
		}
	}
	for g, min := range w.min {
		if n := bound[g]; n > 0 && n < min && !w.deaths[g] {
			w.t.Fatalf("gang %s has %d pods bound, and needs %d", g, n, min)
		}
	}
}

// The cycle of a group that does not fit leaves the table as it was, and no nomination.
func TestAGroupThatDoesNotFitLeavesNothing(t *testing.T) {
	compared := 0
	for seed := range uint64(60) {
		w := newGangs(t, seed)
		for range 4 {
			w.addNode()
		}
		for range 10 {
			w.addPod("", int32(w.IntN(3))*100)
		}
		w.Settle()
		for range 12 {
			w.addGang()
			w.Deliver()
			for {
				before := contents(w.Machine)
				w.told = nil
				if !w.Machine.Ready() {
					break
				}
				w.step(machine.ScheduleOne{})
				if len(w.told) == 1 && w.told[0].Result == decision.ResultUnschedulable {
					compared++
					if after := contents(w.Machine); after != before {
						t.Fatalf("seed %d: before\n%s\nafter\n%s", seed, before, after)
					}
				}
				w.Deliver()
			}
		}
	}
	if compared < 100 {
		t.Errorf("only %d groups did not fit", compared)
	}
}

// contents is what a try could change: what takes room, and what is kept for whom.
func contents(m *machine.Machine) string {
	var b strings.Builder
	tb := m.Table()
	for _, r := range tb.All() {
		fmt.Fprintf(&b, "%s %d %d %d:", tb.Name(r), tb.Used(table.CPU)[r], tb.PodCount()[r], priorities.Of(tb).Lowest(r))
		var pods []string
		for _, pl := range tb.Pods(r) {
			pods = append(pods, string(pl.Pod.UID))
		}
		slices.Sort(pods) // they are in no order
		fmt.Fprintf(&b, " %v", pods)
		for _, p := range m.NominatedTo(tb.Name(r)) {
			fmt.Fprintf(&b, " (%s)", p.UID)
		}
		b.WriteByte('\n')
	}
	for _, name := range tb.Groups().Names() {
		fmt.Fprintf(&b, "%s %d\n", name, tb.Groups().Named(name).Scheduled())
	}
	return b.String()
}

// patches are the effects of the steps that show something in the API.
func (w *gangs) patches(events ...machine.Event) (nominated []string, conditions []object.GroupCondition) {
	for _, e := range events {
		for _, effect := range w.Machine.Step(w.Now, e) {
			switch effect := effect.(type) {
			case machine.PatchStatus:
				if effect.Nominated != nil {
					nominated = append(nominated, effect.Pod.Name)
				}
			case machine.PatchGroupStatus:
				conditions = append(conditions, effect.Condition)
			}
		}
	}
	return nominated, conditions
}

func groupOf(min int) *object.PodGroup {
	return &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "d", Name: "g", UID: "g"}, Gang: true, MinCount: min}
}

func (w *gangs) event(name string, milliCPU int64) machine.Event {
	p := &object.Pod{UID: types.UID(name), Namespace: "d", Name: name, SchedulingGroup: object.InPodGroup("g"), SchedulerName: "default-scheduler"}
	p.Demand.Usage.MilliCPU = milliCPU
	p.Demand.Requests, p.Demand.NonZero, p.Demand.Scoring = p.Demand.Usage, p.Demand.Usage, p.Demand.Usage
	return machine.PodSet{Pod: p}
}

func fourCores() machine.Event {
	return machine.NodeSet{Node: &object.Node{Name: "n", AllowedPods: 10, Allocatable: resource.Vector{MilliCPU: 4000}}}
}

// Pods that wait for others of their gang, and are let go in the same cycle, are not shown
// as nominated.
func TestNoNominationOfAGang(t *testing.T) {
	w := newGangs(t, 1)
	nominated, conditions := w.patches(fourCores(), machine.ObjectSet{Object: groupOf(3)},
		w.event("a", 1000), w.event("b", 1000), w.event("c", 1000), machine.ScheduleOne{})
	if len(nominated) > 0 || len(conditions) != 1 || conditions[0].Reason != "Scheduled" {
		t.Errorf("nominated %v, conditions %+v", nominated, conditions)
	}
}

// A group that was scheduled is not shown as anything else, though the watch has not shown
// yet that it was, and does not hear of it twice.
func TestGroupConditionStaysTrue(t *testing.T) {
	w := newGangs(t, 1)
	_, conditions := w.patches(fourCores(), machine.ObjectSet{Object: groupOf(1)}, w.event("a", 1000), machine.ScheduleOne{})
	if len(conditions) != 1 || conditions[0].Status != "True" {
		t.Fatalf("got %+v", conditions)
	}
	if _, again := w.patches(w.event("big", 9000), machine.ScheduleOne{}); len(again) > 0 {
		t.Errorf("a pod that does not fit: got %+v", again)
	}
	shown := groupOf(1)
	shown.Scheduled = conditions[0]
	if _, again := w.patches(machine.ObjectSet{Object: shown}, w.event("b", 1000), machine.ScheduleOne{}); len(again) > 0 {
		t.Errorf("shown: got %+v", again)
	}
}

// A group that cannot be placed is shown so once, and again when its object was changed.
func TestGroupConditionIsWrittenOnce(t *testing.T) {
	w := newGangs(t, 1)
	_, conditions := w.patches(fourCores(), machine.ObjectSet{Object: groupOf(1)}, w.event("a", 9000), machine.ScheduleOne{})
	if len(conditions) != 1 || conditions[0].Status != "False" || conditions[0].Reason != "Unschedulable" {
		t.Fatalf("got %+v", conditions)
	}
	shown := groupOf(1)
	shown.Scheduled = conditions[0]
	w.Now = w.Now.Add(time.Minute)
	if _, again := w.patches(machine.ObjectSet{Object: shown}, machine.Tick{}, machine.ScheduleOne{}); len(again) > 0 {
		t.Errorf("got %+v", again)
	}
	changed := *shown
	changed.Generation = 5
	w.Now = w.Now.Add(time.Minute)
	if _, again := w.patches(machine.ObjectSet{Object: &changed}, machine.KindListed{Kind: object.PodGroups}, machine.ScheduleOne{}); len(again) != 1 || again[0].ObservedGeneration != 5 {
		t.Errorf("a new generation: got %+v", again)
	}
}
