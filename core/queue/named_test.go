package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/framework"
)

// An event about a claim looks only at the pods that name it, also by names that an update
// brought.
func TestPodsAreFoundByTheirClaims(t *testing.T) {
	asked := 0
	o := options(&door{})
	o.EventsToRegister = func(_, plugin string) ([]framework.ClusterEventWithHint, bool) {
		events := append([]framework.ClusterEventWithHint{}, rules[plugin]...)
		for i := range events {
			events[i].QueueingHintFn = nil
		}
		return events, true
	}
	o.Foresight = &foreseen{couldHelp: func(*Entry, *framework.Event) bool { asked++; return false }}
	b := newByUID(o)
	for i := range 20 {
		name := fmt.Sprint("p", i)
		b.Add(start, pod(name, claims(name, "shared")))
		b.Pop(start)
		b.Requeue(start, uid(name), by("Volumes"))
	}
	b.Update(start, pod("p3", claims("another")))
	for claim, want := range map[string]int{"p7": 1, "p3": 0, "another": 1, "shared": 19, "nobody's": 0} {
		asked = 0
		b.Move(start.Add(time.Second), onClaim(framework.Add, claim))
		if asked != want {
			t.Errorf("an event about claim %s looks at %d pods, want %d", claim, asked, want)
		}
	}
	asked = 0
	b.Move(start.Add(time.Second), onClaim(framework.Delete, "nobody's"))
	if asked != 20 {
		t.Errorf("an event that is not about names looks at %d pods", asked)
	}
}

// An event about a claim, where 10,000 pods wait for a claim each.
func BenchmarkEventOfAClaim(b *testing.B) {
	q := newByUID(options(&door{}))
	for i := range 10_000 {
		name := fmt.Sprint("p", i)
		q.Add(start, pod(name, claims(name)))
		q.Pop(start)
		q.Requeue(start, uid(name), by("Volumes"))
	}
	e := onClaim(framework.Add, "nobody's")
	for b.Loop() {
		q.Move(start.Add(time.Second), e)
	}
}
