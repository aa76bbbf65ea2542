package machine

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
)

// A group that fits and whose pods a Permit plugin then rejects backs off. Tried again at
// once, it would be tried without end.
func TestGroupWhosePodsAreRejected(t *testing.T) {
	p := newGroupPreemption(t, func(alone *framework.Plugin) {
		alone.Permit = func(*table.Table, *object.Pod, string) framework.PermitResult {
			return framework.PermitResult{Status: &decision.Status{Code: decision.Unschedulable, Reasons: []string{"not today"}}}
		}
	})
	of := p.profiles["s"]
	of.Permit = []*framework.Plugin{of.QueueSort}
	p.do(grouped("a", 5), NodeSet{&object.Node{UID: "m", Name: "m"}}, grouped("b", 5))
	p.queue.Reconfigure(p.now, queue.Backoffs{Initial: time.Second, Max: time.Second}, nil)
	if done := p.ended(); done.Scheduled != 0 {
		t.Errorf("got %+v", done)
	}
	for _, pod := range []types.UID{"a", "b"} {
		if at := p.pods.byUID[pod].entry.Place(); at != queue.ErrorBackoff {
			t.Errorf("%s is %s", pod, at)
		}
	}
}

// After a panic in the middle of a group's cycle no group is in flight, wherever it was.
func TestRepairEndsGroups(t *testing.T) {
	popped := func(p *evictionTest) []*queue.Entry { return slices.Clone(p.queue.Pop(p.now).Group()) }
	for at, half := range map[string]func(p *evictionTest){
		"popped": func(p *evictionTest) { popped(p) },
		"tried": func(p *evictionTest) {
			c := &groupCycle{name: popped(p)[0].Pod.GroupKey(), profile: p.profiles["s"]}
			c.members = []*groupMember{p.groups.newMember(p.pods.byUID["a"], 1), p.groups.newMember(p.pods.byUID["b"], 1)}
			c.members[0].row, _ = p.table.Find("n")
			p.groups.underway = c
			p.groups.tryAssume(c.members[0])
		},
		"in part submitted": func(p *evictionTest) {
			mb := p.groups.newMember(popped(p)[0].Owner.(*podState), 1)
			mb.row, _ = p.table.Find("n")
			p.groups.commitMember(mb)
		},
	} {
		t.Run(at, func(t *testing.T) {
			p := newGroupPreemption(t)
			p.do(grouped("a", 5), grouped("b", 5))
			half(p)
			p.Repair()
			if err := p.Verify(); err != nil {
				t.Fatal(err)
			}
			if at := p.pods.byUID["b"].entry.Place(); at != queue.Active { // there are no backoffs
				t.Errorf("the pod is %s", at)
			}
			if g := p.queue.Pop(p.now).Group(); !slices.Contains(g, p.pods.byUID["b"].entry) {
				t.Errorf("popped %v", g)
			}
		})
	}
}

// A group whose pods differ waits its backoff out while those that it preempted leave, and is
// tried at once when they are gone. Rejected again, it waits.
func TestGroupIsTriedOnceItsVictimsAreGone(t *testing.T) {
	p := newGroupPreemption(t)
	p.queue.Reconfigure(p.now, queue.Backoffs{Initial: time.Hour, Max: time.Hour}, nil)
	other := grouped("b", 5)
	other.Pod.Labels = map[string]string{"app": "other"}
	p.do(NodeSet{&object.Node{UID: "m", Name: "m"}}, preemptible("low", 0, "n"), preemptible("lower", 0, "m"), grouped("a", 5), other)
	entry := p.pods.byUID["a"].entry
	if done := p.ended(); len(done.Victims) != 2 || entry.Place() != queue.ErrorBackoff {
		t.Fatalf("got %+v; the group is %s while its victims leave", done, entry.Place())
	}
	for _, victim := range []types.UID{"low", "lower"} {
		p.do(EvictReply{Victim: victim, Preemptor: "a"})
	}
	p.do(PodGone{UID: "low"}, PodGone{UID: "lower"}, preemptible("high", 9, "n"), preemptible("higher", 9, "m"))
	if !p.Ready() {
		t.Fatalf("the group is %s once its victims are gone", entry.Place())
	}
	for range 3 {
		if !p.Ready() {
			return
		}
		p.ended()
	}
	t.Errorf("the group is %s, and tried without end", entry.Place())
}

// An assessment of a group places nobody, and leaves out a placement in which it was told to stop.
func TestAssessGroup(t *testing.T) {
	p := newPlacements(t)
	p.do(NodeSet{&object.Node{UID: "m", Name: "m"}}, grouped("a", 1), grouped("b", 1))
	name := types.NamespacedName{Namespace: "d", Name: "g"}
	fit := func(node string) GroupFit {
		return GroupFit{Placement: node, Nodes: 1, Scheduled: 1, Feasible: true, Message: "0/1 nodes are available: 1 taken."}
	}
	for tries, want := range map[int][]GroupFit{
		9: {fit("n"), fit("m")},
		3: {fit("n")},
		0: nil,
	} {
		got, err := p.AssessGroup(name, func() bool { tries--; return tries >= 0 })
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
		if err := p.Verify(); err != nil || p.table.PlacedPods() != 0 {
			t.Errorf("%d pods are placed, %v", p.table.PlacedPods(), err)
		}
	}
}
