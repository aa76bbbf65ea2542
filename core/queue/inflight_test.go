package queue

import (
	"testing"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
)

// However many events pass while a pod is in flight, one that may help is not
// missed, and the log stays as small as it is.
func TestLongFlight(t *testing.T) {
	noise := on(framework.UpdateNodeTaint)
	for _, c := range []struct {
		name    string
		before  int // noise before the event
		event   *framework.Event
		after   int // noise after it
		outcome outcome
		want    Place
	}{
		{"kept", inFlightEventsKept, on(framework.Add), inFlightEventsKept - 1, by("Room"), Backoff},
		{"kept, the hint says no", inFlightEventsKept, gone(pod("x", app("other"))), inFlightEventsKept - 1, by("Room"), Unschedulable},
		{"not kept", 0, on(framework.Add), 100_000, by("Room"), Backoff},
		{"not kept, the hint unasked", 0, gone(pod("x", app("other"))), inFlightEventsKept, by("Room"), Backoff},
		{"not kept, no rule", 0, on(framework.UpdateNodeLabel), inFlightEventsKept, by("Room"), Unschedulable},
		{"not kept, a pending plugin's", 0, on(framework.UpdateNodeAnnotation), inFlightEventsKept, outcome{rejectedBy: []string{"Taints"}, pendingBy: []string{"Claims"}}, Active},
		{"not kept, a rule for any resource", 0, on(framework.UpdateNodeLabel), inFlightEventsKept, by("Any"), Backoff},
		{"not kept, on any resource", 0, &framework.Event{Resource: framework.WildCard, ActionType: framework.All}, inFlightEventsKept, by("Gates"), Backoff},
		{"not kept, about the last kind of objects", 0, &framework.Event{Resource: framework.ResourceOf(object.DeviceClasses), ActionType: framework.UpdateNodeLabel}, inFlightEventsKept, by("Any"), Backoff},
		{"one of two actions", 0, on(framework.UpdateNodeLabel | framework.Add), inFlightEventsKept, by("Room"), Backoff},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.Add(start, pod("first"))
			b.Add(start, pod("p"))
			b.pop(start, "first")
			b.Move(start, on(framework.All)) // before p's Pop: not p's business
			b.pop(start, "p")
			for range c.before {
				b.Move(start, noise)
			}
			b.Move(start, c.event)
			for range c.after {
				b.Move(start, noise)
			}
			b.Requeue(start, uid("p"), c.outcome)
			b.want("p", c.want)
			b.Requeue(start, uid("first"), c.outcome)
			b.want("first", map[bool]Place{true: Active, false: Backoff}[c.outcome.pendingBy != nil])
		})
	}
}

// Events from before a pod was popped do not requeue it.
func TestEventsBeforePopAreOver(t *testing.T) {
	b := newBench(t)
	b.Add(start, pod("long"))
	b.Add(start, pod("p"))
	b.pop(start, "long")
	for range 3 * inFlightEventsKept {
		b.Move(start, on(framework.Add))
	}
	b.reject(start, "p", by("Room"))
	b.want("p", Unschedulable)
	b.Delete(uid("long"))
	b.want("p", Unschedulable) // and the log is empty, says Check
}

// What the scheduler writes about a pod in flight does not call it, a change that comes with
// it does.
func TestWrittenInFlight(t *testing.T) {
	for _, c := range []struct {
		name string
		then []func(*object.Pod) // states
		want Place
	}{
		{"only the scheduler wrote", []func(*object.Pod){stated("full"), stated("too full")}, Unschedulable},
		{"a change, and then the scheduler wrote", []func(*object.Pod){stated("", annotated), stated("full", annotated)}, Backoff},
		{"the scheduler wrote, and then a change", []func(*object.Pod){stated("full"), stated("full", annotated)}, Backoff},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.Add(start, pod("p", stated("")))
			b.pop(start, "p")
			for _, state := range c.then {
				b.Update(start, pod("p", state))
			}
			b.Requeue(start, uid("p"), by("Curious"))
			b.want("p", c.want)
		})
	}
}

// A pod that changes to and fro while in flight is judged by its last state.
func TestChangesInFlight(t *testing.T) {
	for _, c := range []struct {
		name string
		apps []string
		want Place
	}{
		{"once", []string{"a"}, Backoff},
		{"to and fro", []string{"a", "b"}, Unschedulable},
		{"and then otherwise", []string{"a", "a"}, Backoff},
		{"there in the end", []string{"b", "c", "a"}, Backoff},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.Add(start, pod("p"))
			b.pop(start, "p")
			for _, name := range c.apps {
				b.Update(start, pod("p", app(name)))
			}
			b.Requeue(start, uid("p"), by("Labels"))
			b.want("p", c.want)
		})
	}
}
