package queue_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// Two plugins reject a pod. It waits until an event that one of them registered for, here that a
// node is added; and then until the second of its backoff is over.
func Example() {
	events := map[string][]framework.ClusterEventWithHint{
		"Fit":    {{Resource: framework.Node, ActionType: framework.Add}, {Resource: framework.AssignedPod, ActionType: framework.Delete}},
		"Taints": {{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeTaint}},
	}
	q := queue.New(queue.Options{
		InitialBackoff: queue.DefaultInitialBackoff, MaxBackoff: queue.DefaultMaxBackoff, WaitOutBackoff: true,
		EventsToRegister: func(_, plugin string) ([]framework.ClusterEventWithHint, bool) {
			list, known := events[plugin]
			return list, known
		},
	})
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	show := func(what string, e *queue.Entry) {
		fmt.Printf("%-24s %v, attempts %d\n", what, e.Place(), e.Attempts())
	}

	web := q.Add(start, &object.Pod{UID: types.UID("1"), Namespace: "default", Name: "web"})
	show("added", web)
	q.Pop(start)
	show("popped", web)
	q.Requeue(at(0.1), web, []string{"Fit", "Taints"}, nil)
	show("rejected", web)
	q.MoveAllToActiveOrBackoff(at(0.2), &framework.Event{Resource: framework.SelectorOwner, ActionType: framework.Add}, nil)
	show("a Service was added", web)
	q.MoveAllToActiveOrBackoff(at(0.3), &framework.Event{Resource: framework.Node, ActionType: framework.Add, NewNode: &object.Node{Name: "n"}}, nil)
	show("a node was added", web)
	timer, _ := q.NextTimer()
	q.Flush(timer)
	show(fmt.Sprint("flushed after ", timer.Sub(start)), web)
	q.Pop(timer)
	show("popped", web)

	// Output:
	// added                    active, attempts 0
	// popped                   in flight, attempts 1
	// rejected                 unschedulable, attempts 1
	// a Service was added      unschedulable, attempts 1
	// a node was added         backoff, attempts 1
	// flushed after 1.1s       active, attempts 1
	// popped                   in flight, attempts 2
}
