package machine

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
)

// Another scheduler takes the room of each victim at once, and would lose a pod
// each time for as long as that goes on. After ten the preemptor waits between two
// preemptions, and it is placed when the room stays free.
func TestPreemptionsInARow(t *testing.T) {
	p := newEvictions(t)
	now, victims := time.Unix(0, 0), 0
	taken := func() PodSet {
		victims++
		name := fmt.Sprint("victim-", victims)
		return PodSet{&object.Pod{UID: types.UID(name), Namespace: "ns", Name: name, NodeName: "n", SchedulerName: "another"}}
	}
	recreated, placed := true, false
	var step func(Event)
	step = func(e Event) {
		for _, effect := range p.Step(now, e) {
			switch e := effect.(type) {
			case Evict:
				step(EvictReply{Victim: e.Victim.UID, Preemptor: e.Preemptor.UID})
				step(PodGone{UID: e.Victim.UID, Namespace: "ns", Name: e.Victim.Name})
				if recreated {
					step(taken())
				}
			case Bind:
				placed = true
			}
		}
	}
	run := func(d time.Duration) (evicted int) {
		before := victims
		for end := now.Add(d); now.Before(end); now = now.Add(time.Second) {
			step(Tick{})
			for p.Ready() {
				step(ScheduleOne{})
			}
		}
		return victims - before
	}
	step(taken())
	step(PodSet{&object.Pod{UID: "high", Namespace: "ns", Name: "high", SchedulerName: "s", Priority: 10}})
	if n := run(time.Minute); n != freePreemptions {
		t.Errorf("%d victims in the first minute, want %d", n, freePreemptions)
	}
	if n := run(2 * time.Hour); n < 12 || n > 26 {
		t.Errorf("%d victims in two more hours, want about one each five minutes", n)
	}
	if p.HeldBack() == 0 || placed {
		t.Errorf("held back %d times; placed: %t", p.HeldBack(), placed)
	}
	recreated = false
	if run(11 * time.Minute); !placed {
		t.Error("not placed, though nobody takes the room any more")
	}
}

// A replay that begins in the middle of a record holds a pod back for as long as the
// scheduler did.
func TestPreemptionsInARowAreInTheSnapshot(t *testing.T) {
	p := newEvictions(t)
	p.do(preemptible("a", 1, ""))
	p.pods.byUID["a"].preemptionCount = preemptionCount{freePreemptions, time.Unix(-20, 0)}
	s := p.Snapshot()
	if s == nil {
		t.Fatal("no snapshot")
	}
	restored, now := newEvictions(t), time.Unix(1000, 0)
	if err := restored.Restore(now, []Event{preemptible("a", 1, "")}, s); err != nil {
		t.Fatal(err)
	}
	if got, want := restored.pods.byUID["a"].preemptionCount, (preemptionCount{freePreemptions, now.Add(-20 * time.Second)}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
