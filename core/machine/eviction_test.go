package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/table"
)

// evictionTest is a machine in which a pod fits on a node where it is alone, and in
// which all that are on node "n" are victims of whoever comes. It writes down
// what the machine asks for.
type evictionTest struct {
	*Machine
	t    *testing.T
	call *framework.PostFilterCall // the last one, valid for its values only
	said []string
}

func newEvictions(t *testing.T, edits ...func(*framework.Plugin)) *evictionTest {
	p := &evictionTest{t: t}
	alone := &framework.Plugin{
		Name:             "Alone",
		EventsToRegister: []framework.ClusterEventWithHint{{Resource: framework.AssignedPod, ActionType: framework.Delete}, {Resource: framework.Node, ActionType: framework.Add}},
		SignPlugin:       framework.SignPlugin{Locality: framework.NodeAndPods},
		Less:             func(a, b *framework.QueuedPodInfo) bool { return a.Pod.Priority > b.Pod.Priority },
		FilterPlugin: framework.FilterPlugin{
			Filter: func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
				for i := range out {
					out[i] = framework.Verdict(len(in.Table.Pods(rows[i])))
				}
			},
			Explain: func(*framework.Input, table.Row, framework.Verdict) decision.Blocker {
				return decision.Blocker{Code: decision.Unschedulable, Reasons: []string{"taken"}}
			},
		},
		PostFilter: func(c *framework.PostFilterCall) framework.PostFilterResult {
			p.call = c
			out := framework.PostFilterResult{NominatedNodeName: "n", Resolved: true}
			row, _ := c.Table.Find("n")
			for _, pl := range c.Table.Pods(row) {
				out.Victims = append(out.Victims, pl.Pod.UID)
			}
			return out
		},
		Bind: func(*object.Pod, string) bool { return true },
	}
	for _, edit := range edits {
		edit(alone)
	}
	p.Machine = New(Options{Workers: 1, Check: true, Profiles: []*profile.Profile{{
		Name: "s", QueueSort: alone, Filter: []*framework.Plugin{alone}, PostFilter: []*framework.Plugin{alone},
		Bind: []*framework.Plugin{alone}, Plugins: map[string]*framework.Plugin{"Alone": alone},
	}}})
	p.do(NodeSet{&object.Node{UID: "n", Name: "n"}})
	return p
}

func (p *evictionTest) do(events ...Event) {
	for _, e := range events {
		for _, effect := range p.Step(time.Unix(0, 0), e) {
			switch e := effect.(type) {
			case Evict:
				p.said = append(p.said, fmt.Sprintf("evict %s for %s", e.Victim.Name, e.Preemptor.Name))
			case PublishEvent:
				if e.Reason == "Preempted" {
					p.said = append(p.said, fmt.Sprintf("%s: %s (%s)", e.Pod.Name, e.Note, e.Related.Name))
				}
			}
		}
	}
}

func (p *evictionTest) expect(said ...string) {
	p.t.Helper()
	if !slices.Equal(p.said, said) {
		p.t.Errorf("got\n%s\nwant\n%s", strings.Join(p.said, "\n"), strings.Join(said, "\n"))
	}
	p.said = nil
}

func preemptible(name string, priority int32, node string) PodSet {
	return PodSet{&object.Pod{UID: types.UID(name), Namespace: "d", Name: name, SchedulerName: "s", Priority: priority, NodeName: node}}
}

type noHost struct{}

func (noHost) Begin(*table.Table, *object.Pod) {}
func (noHost) Show(*table.Table)               {}
func (noHost) Sign(*object.Pod) (string, bool) { return "", false }
func (noHost) Attempt(types.UID) any           { return nil }
func (noHost) ActivatePods(*object.Pod)        {}
func (noHost) End(types.UID)                   {}

// A hosted filter may say something else when it is asked once more: it may count its
// calls. A search for victims is compared with another search only without one.
func TestHostedFiltersAreNotAskedForAComparison(t *testing.T) {
	for _, hosted := range []bool{false, true} {
		p := newEvictions(t, func(alone *framework.Plugin) {
			if hosted {
				alone.Hosted, alone.Locality = &framework.HostedPlugin{Host: noHost{}}, framework.Anything
			}
		})
		p.do(preemptible("v", 0, "n"), preemptible("a", 1, ""), ScheduleOne{})
		if p.call.Check == hosted {
			t.Errorf("a filter is hosted: %t; the search is compared: %t", hosted, p.call.Check)
		}
	}
}

// A victim is evicted once, counts as gone until it is gone, and is forgotten then.
func TestEviction(t *testing.T) {
	p := newEvictions(t)
	p.do(preemptible("v", 0, "n"), preemptible("a", 1, ""), ScheduleOne{})
	p.expect("evict v for a")
	if !p.preemptors.evicting("v") || p.Entry("a").NominatedNode() != "n" {
		t.Errorf("evicting %v, nominated to %q", p.preemptors.evicting("v"), p.Entry("a").NominatedNode())
	}
	p.do(preemptible("b", 2, ""), ScheduleOne{})
	p.expect() // on its way already
	p.do(EvictReply{Victim: "v", Preemptor: "a"}, EvictReply{Victim: "v", Preemptor: "a"})
	p.expect("v: Preempted by pod a on node n (a)")
	if !p.preemptors.evicting("v") {
		t.Error("a victim that is there still counts as gone")
	}
	p.do(PodGone{UID: "v", Namespace: "d", Name: "v"})
	if p.pods.byUID["v"] != nil {
		t.Error("the victim is remembered")
	}
}

// The eviction of a victim that is gone already is reported, and the victim is not
// remembered.
func TestEvictionAnsweredLate(t *testing.T) {
	p := newEvictions(t)
	p.do(preemptible("v", 0, "n"), preemptible("a", 1, ""), ScheduleOne{}, PodGone{Namespace: "d", Name: "v"})
	p.expect("evict v for a")
	p.do(EvictReply{Victim: "v", Preemptor: "a"})
	p.expect("v: Preempted by pod a on node n (a)")
	if p.pods.byUID["v"] != nil {
		t.Error("the victim is remembered")
	}
}

// Where evictions are waited for, no pod is decided on before each has its answer, good or
// bad.
func TestEvictionsAreWaitedFor(t *testing.T) {
	for _, waits := range []bool{false, true} {
		for _, answer := range []error{nil, errors.New("no")} {
			p := newEvictions(t)
			p.options.WaitForEvictions = waits
			p.do(preemptible("v", 0, "n"), preemptible("w", 0, "n"), preemptible("a", 1, ""), preemptible("b", 1, ""), ScheduleOne{})
			p.expect("evict v for a", "evict w for a")
			for _, victim := range []types.UID{"v", "w"} {
				if p.Ready() == waits || (p.First() == nil) != waits {
					t.Errorf("evictions are waited for: %t; ready: %t, first %v", waits, p.Ready(), p.First())
				}
				if waits {
					p.do(ScheduleOne{})
					if p.Entry("b").Attempts() != 0 {
						t.Errorf("%s is decided on before %s's eviction is answered", "b", victim)
					}
				}
				p.do(EvictReply{Victim: victim, Preemptor: "a", Err: answer})
			}
			if p.do(ScheduleOne{}); p.Entry("b").Attempts() == 0 && p.Entry("a").Attempts() < 2 {
				t.Error("nobody is decided on after the answers")
			}
		}
	}
}

// TestEvictionFails: all who counted on it are tried again, and may ask again.
func TestEvictionFails(t *testing.T) {
	p := newEvictions(t)
	p.do(preemptible("v", 0, "n"), preemptible("a", 1, ""), ScheduleOne{}, preemptible("b", 1, ""), ScheduleOne{})
	p.expect("evict v for a")
	if p.Ready() {
		t.Fatal("somebody is tried again before the answer")
	}
	p.do(EvictReply{Victim: "v", Preemptor: "a", Err: errors.New("no")})
	if n := p.queue.Counts().Active; n != 2 {
		t.Errorf("%d pods are active, want 2", n)
	}
	p.do(ScheduleOne{}, ScheduleOne{})
	p.expect("evict v for a")
}

// A victim that is terminating is not evicted again.
func TestNoEvictionOfTerminatingVictims(t *testing.T) {
	p := newEvictions(t)
	v := preemptible("v", 0, "n")
	v.Pod.Terminating = true
	p.do(v, preemptible("a", 1, ""), ScheduleOne{})
	p.expect()
}

// Preemption sees the disruption budgets as they are now, in the order of namespaces
// and names.
func TestBudgetEvents(t *testing.T) {
	p := newEvictions(t)
	p.do(preemptible("v", 0, "n"))
	set := func(namespace, name string, allowed int32) BudgetSet {
		return BudgetSet{&object.Budget{Namespace: namespace, Name: name, Allowed: allowed}}
	}
	p.do(set("b", "x", 1), set("a", "y", 2), set("a", "x", 3), set("b", "x", 4), set("a", "z", 5),
		BudgetGone{"a", "z"}, BudgetGone{"c", "x"}, preemptible("a", 1, ""), ScheduleOne{})
	var got []string
	for _, b := range p.call.Disruption.Budgets {
		got = append(got, fmt.Sprint(b.Namespace, "/", b.Name, "=", b.Allowed))
	}
	if want := "a/x=3 a/y=2 b/x=4"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestBudgetsAreNotChanged: a list that was handed out stays as it was.
func TestBudgetsAreNotChanged(t *testing.T) {
	x, y := &object.Budget{Name: "x"}, &object.Budget{Name: "y"}
	b := budgets{}
	b.set(x)
	b.set(y)
	list, strict := b.list, b.strict
	b.set(&object.Budget{Name: "x", Allowed: 1})
	b.remove("", "x")
	if list[0] != x || list[1] != y || strict[0].Allowed != 0 || strict[1].Name != "y" {
		t.Error("the list changed")
	}
}

// The API has shown all that it was told when the victim is shown on its way out.
func TestEvictionIsShown(t *testing.T) {
	p := newEvictions(t)
	unshown := func(want int, when string) {
		t.Helper()
		if n := p.Unshown(); n != want {
			t.Errorf("%s: %d pods are not shown as told, want %d", when, n, want)
		}
	}
	v, a := preemptible("v", 0, "n"), preemptible("a", 1, "")
	p.do(v, a, ScheduleOne{})
	nominated := *a.Pod
	nominated.NominatedNode = "n"
	p.do(PodSet{&nominated})
	unshown(1, "before the reply")
	p.do(EvictReply{Victim: "v", Preemptor: "a"})
	unshown(1, "after the reply")
	going := *v.Pod
	going.Terminating = true
	p.do(PodSet{&going})
	unshown(0, "on its way out")
}

// A nomination that is taken back before it was written is never shown, and nobody
// waits for that.
func TestNominationTakenBackUnwritten(t *testing.T) {
	p := newEvictions(t)
	v, a := preemptible("v", 0, "n"), preemptible("a", 1, "")
	p.do(v, a, ScheduleOne{}, EvictReply{Victim: "v", Preemptor: "a", Err: errors.New("no")})
	if n := p.Unshown(); n != 1 {
		t.Fatalf("%d pods are not shown as told, want 1", n)
	}
	p.do(NodeGone{"n"}, ScheduleOne{})
	if n := p.Unshown(); n != 0 {
		t.Errorf("%d pods are not shown as told, want 0", n)
	}
}
