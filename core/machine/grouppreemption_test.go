package machine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// newGroupPreemption is a machine with a group "g". Pods take a node for themselves, and
// the group has all pods go whose priority is lower than its own, if it fits then.
func newGroupPreemption(t *testing.T, edits ...func(*framework.Plugin)) *evictionTest {
	p := newEvictions(t, func(alone *framework.Plugin) {
		alone.PostFilter = func(*framework.PostFilterCall) framework.PostFilterResult {
			return framework.PostFilterResult{KeepNomination: true}
		}
		alone.PodGroup = &framework.PodGroupPlugin{}
		alone.PodGroup.PostFilter = func(c *framework.PodGroupPostFilterCall) (out framework.PodGroupPostFilterResult) {
			for _, r := range c.Table.All() {
				for _, pl := range c.Table.Pods(r) {
					out.Victims = append(out.Victims, pl.Pod)
				}
			}
			for _, v := range out.Victims {
				row := c.Table.Pod(v.UID).Row
				c.Table.RemovePod(v.UID)
				defer c.Table.Place(v, row)
			}
			if c.Leaving {
				return framework.PodGroupPostFilterResult{Status: &decision.Status{Reasons: []string{"leaving"}}}
			}
			found, status := c.Try()
			if status != nil {
				return framework.PodGroupPostFilterResult{Status: status}
			}
			for _, a := range found {
				out.Assignments = append(out.Assignments, a.Assignment)
			}
			out.Status = &decision.Status{}
			return out
		}
		for _, edit := range edits {
			edit(alone)
		}
	})
	o := p.options
	o.PodGroups = true
	p.Machine = New(o)
	p.do(NodeSet{&object.Node{UID: "n", Name: "n"}})
	of := p.profiles["s"]
	of.PodGroupPostFilter = []*framework.Plugin{of.QueueSort}
	g := &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "d", Name: "g", UID: "g-uid"}, Priority: 5}
	p.do(ObjectSet{Object: g})
	return p
}

// ended is what the next step says of the group.
func (p *evictionTest) ended() (done PodGroupDone) {
	p.t.Helper()
	for _, effect := range p.Step(p.now, ScheduleOne{}) {
		switch e := effect.(type) {
		case PodGroupDone:
			done = e
		case Evict:
			p.said = append(p.said, "evict "+e.Victim.Name+" for "+e.Group.Name+" on "+e.Node)
		}
	}
	return done
}

// A group has its victims evicted once. While they are on their way out it asks for no
// others; when they are gone it is placed.
func TestGroupWaitsForItsVictims(t *testing.T) {
	p := newGroupPreemption(t)
	p.do(preemptible("low", 0, "n"), grouped("a", 5))
	var steps []string
	p.options.StepDone = func(step string) { steps = append(steps, step) }
	if done := p.ended(); done.Result != decision.ResultPreempting || len(done.Victims) != 1 {
		t.Fatalf("got %+v", done)
	}
	if want := []string{"Computing predicates and prioritizing done", "Running PodGroupPostFilter plugins done"}; !slices.Equal(steps, want) {
		t.Errorf("steps %q", steps)
	}
	p.expect("evict low for g on cluster")

	p.do(NodeSet{&object.Node{UID: "m", Name: "m"}}, preemptible("other", 0, "m"))
	p.now = p.now.Add(time.Minute)
	p.do(Tick{})
	if done := p.ended(); done.Result != decision.ResultPreempting || len(done.Victims) != 0 {
		t.Fatalf("got %+v", done)
	}
	p.expect()
	want := "pod group is unschedulable, leaving"
	if got := p.groups.asked["g-uid"].Message; got != want {
		t.Errorf("the condition says %q", got)
	}

	p.do(EvictReply{Victim: "low", Preemptor: "a"}, PodGone{UID: "low"})
	p.now = p.now.Add(time.Minute)
	p.do(Tick{})
	p.now = p.now.Add(time.Minute)
	if done := p.ended(); done.Result != decision.ResultScheduled || done.Waited != time.Minute {
		t.Fatalf("got %+v", done)
	}
	p.do(grouped("b", 5), NodeSet{&object.Node{UID: "o", Name: "o"}})
	p.now = p.now.Add(time.Minute)
	if done := p.ended(); done.Result != decision.ResultScheduled || done.Waited != 0 {
		t.Fatalf("a pod that comes later: got %+v", done)
	}
}

// What a group waits for is not forgotten with the pod that preempted in its name.
func TestGroupWaitsForVictimsOfADeletedPod(t *testing.T) {
	p := newGroupPreemption(t)
	p.do(preemptible("low", 0, "n"), grouped("a", 5), grouped("b", 5))
	if done := p.ended(); done.Result != decision.ResultPreempting || len(done.Victims) != 1 {
		t.Fatalf("got %+v", done)
	}
	p.expect("evict low for g on cluster")
	p.do(PodGone{UID: "a"}, NodeSet{&object.Node{UID: "m", Name: "m"}}, preemptible("other", 0, "m"))
	p.now = p.now.Add(time.Minute)
	p.do(Tick{})
	if done := p.ended(); done.Result != decision.ResultPreempting || len(done.Victims) != 0 {
		t.Errorf("got %+v", done)
	}
	p.expect()
}

// A group that has preempted ten times and was not placed is held back.
func TestGroupIsHeldBack(t *testing.T) {
	p := newGroupPreemption(t)
	p.do(preemptible("low", 0, "n"), grouped("a", 5))
	p.pods.byUID["a"].preemptionCount = preemptionCount{n: freePreemptions, last: p.now}
	if done := p.ended(); len(done.Victims) != 0 {
		t.Errorf("got %+v", done)
	}
	p.expect()
	if got := p.groups.asked["g-uid"].Message; !strings.Contains(got, heldBack) {
		t.Errorf("the condition says %q", got)
	}
}

// A gang whose minimum is out of reach before a pod of it is tried, as one is being deleted,
// does not fit, and no pod is tried.
func TestGangOutOfReach(t *testing.T) {
	p := newGroupPreemption(t)
	p.profiles["s"].PlacementFeasible = []*framework.Plugin{{Name: "Minimum", PodGroup: &framework.PodGroupPlugin{
		PlacementFeasible: func(_ *table.Table, _ *object.PodGroup, made framework.PlacementProgress) *decision.Status {
			switch {
			case made.Scheduled >= 2:
				return nil
			case made.Scheduled+made.Remaining >= 2:
				return &decision.Status{Code: decision.Wait}
			}
			return &decision.Status{Code: decision.Unschedulable, Reasons: []string{"out of reach"}}
		},
	}}}
	leaves := grouped("leaves", 5)
	leaves.Pod.Terminating = true
	p.do(grouped("stays", 5), leaves)
	if done := p.ended(); done.Result != decision.ResultUnschedulable || done.Scheduled != 0 {
		t.Errorf("got %+v", done)
	}
	if got := p.groups.asked["g-uid"].Message; !strings.Contains(got, "out of reach") {
		t.Errorf("the condition says %q", got)
	}
}

// The nomination of a pod of the group keeps no room from those that are tried before it.
func TestNominationOfAnotherPodOfTheGroup(t *testing.T) {
	p := newGroupPreemption(t)
	nominated := grouped("nominated", 5)
	nominated.Pod.NominatedNode = "n"
	p.do(grouped("first", 5), nominated)
	if done := p.ended(); done.Scheduled != 1 || p.table.Pod("first") == nil {
		t.Errorf("got %+v", done)
	}
}

// A plugin may end the nomination of a pod of the group. Others keep theirs.
func TestGroupPostFilterEndsNominations(t *testing.T) {
	ends := ""
	p := newGroupPreemption(t, func(pl *framework.Plugin) {
		pl.PodGroup.PostFilter = func(c *framework.PodGroupPostFilterCall) (out framework.PodGroupPostFilterResult) {
			for _, pod := range c.Pods {
				if pod.Name == ends {
					out.Unnominated = append(out.Unnominated, pod)
				}
			}
			out.Status = &decision.Status{}
			return out
		}
	})
	nominated := grouped("a", 5)
	nominated.Pod.NominatedNode = "n"
	p.do(preemptible("low", 0, "n"), nominated)
	for _, want := range []string{"n", ""} {
		if done := p.ended(); done.Result != decision.ResultPreempting {
			t.Fatalf("got %+v", done)
		}
		if got := p.pods.entry("a").NominatedNode(); got != want {
			t.Errorf("the pod is nominated to %q, want %q", got, want)
		}
		ends = "a"
		p.do(NodeSet{&object.Node{UID: "m", Name: "m"}}, preemptible("other", 0, "m"))
		p.now = p.now.Add(time.Minute)
		p.do(Tick{})
	}
}

// A preemption that fails leaves everything as it was: a panic is an error of the attempt.
func TestGroupPreemptionFails(t *testing.T) {
	for name, edit := range map[string]func(*framework.Plugin){
		"a panic": func(pl *framework.Plugin) {
			pl.PodGroup.PostFilter = func(*framework.PodGroupPostFilterCall) framework.PodGroupPostFilterResult { panic("broken") }
		},
		"an error": func(pl *framework.Plugin) {
			pl.PodGroup.PostFilter = func(*framework.PodGroupPostFilterCall) framework.PodGroupPostFilterResult {
				return framework.PodGroupPostFilterResult{Status: &decision.Status{Code: decision.Error, Err: errors.New("broken")}}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newGroupPreemption(t, edit)
			p.do(preemptible("low", 0, "n"), grouped("a", 5))
			if done := p.ended(); done.Result != decision.ResultError || done.Err == nil {
				t.Errorf("got %+v", done)
			}
			p.expect()
			if p.table.Pod(types.UID("low")) == nil {
				t.Error("the pod is gone")
			}
		})
	}
}

// An eviction that is asked for again after a restart still says that it is for the group.
func TestSnapshotOfGroupEviction(t *testing.T) {
	p := newGroupPreemption(t)
	p.do(preemptible("low", 0, "n"), grouped("a", 5))
	p.ended()
	saved := p.pods.byUID["low"].saved(p.now)
	p.pods.byUID["low"].eviction = nil
	p.evictions.open = 0
	p.restorePod(p.now, &saved)
	if g := p.pods.byUID["low"].eviction.group; g == nil || g.UID != "g-uid" {
		t.Errorf("got %+v", g)
	}
}

// While PodGroups cannot be listed, pods that name one fail with the reason, also those of
// a group that was known before. All others are placed, and so are these once PodGroups are
// listed again.
func TestUnlistedPodGroups(t *testing.T) {
	p := newGroupPreemption(t)
	p.do(KindUnlisted{object.PodGroups, errors.New("not served")})
	failed := func() (why string) {
		for _, effect := range p.Step(p.now, ScheduleOne{}) {
			if e, is := effect.(AttemptDone); is && e.Decision.Err != nil {
				why += e.Decision.Pod.Name + ": " + e.Decision.Err.Error()
			}
		}
		return why
	}
	p.do(grouped("member", 5))
	if got, want := failed(), "member: the objects of the kind PodGroup cannot be listed: not served"; got != want {
		t.Errorf("failed %q, want %q", got, want)
	}
	p.do(preemptible("other", 9, ""))
	if got := failed(); got != "" || p.Assumed() != 1 {
		t.Errorf("failed %q, %d pods are placed, want the other one", got, p.Assumed())
	}
	p.do(KindListed{object.PodGroups})
	p.now = p.now.Add(time.Minute)
	if done := p.ended(); done.Result != decision.ResultPreempting {
		t.Errorf("the group: %+v", done)
	}
}
