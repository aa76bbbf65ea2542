package foresight_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/foresight"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/recovered"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// A pod of 3 CPUs waits for room. A small pod leaves one node, then a large one another. Fit, which
// rejected the pod, registered for both events. But on the first node it still rejects the pod.
func Example() {
	t := table.New()
	for _, name := range []string{"n1", "n2"} {
		n := &object.Node{Name: name}
		n.Allocatable.MilliCPU = 4000
		t.SetNode(n)
	}
	small, medium, large := podOf("small", 1, "n1"), podOf("medium", 3, "n1"), podOf("large", 4, "n2")
	for _, p := range []*object.Pod{small, medium, large} {
		t.AddPod(p, p.NodeName)
	}

	q := newQueue(t)
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	web := q.Add(now, podOf("web", 3, ""))
	q.Pop(now)
	q.Requeue(now, web, []string{"Fit"}, nil)
	q.Listen(&queue.Listener{
		Moved: func(e *queue.Entry, from queue.Place, event string) {
			fmt.Println(event, "moves", e.Pod.Name, "to", e.Place())
		},
		WouldFailAgain: func(p *object.Pod, event string) { fmt.Println(event, "could not help", p.Name) },
	})
	for _, gone := range []*object.Pod{small, large} {
		t.RemovePod(gone.UID)
		fmt.Println(gone.Name, "left", gone.NodeName)
		q.MoveAllToActiveOrBackoff(now, &framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: gone, Table: t}, nil)
	}

	// Output:
	// small left n1
	// AssignedPodDelete could not help web
	// large left n2
	// AssignedPodDelete moves web to active
}

// newQueue returns a queue with foresight, for a profile with one plugin, which compares CPU.
func newQueue(t *table.Table) *queue.Queue {
	fit := &framework.Plugin{
		Name:             "Fit",
		EventsToRegister: []framework.ClusterEventWithHint{{Resource: framework.AssignedPod, ActionType: framework.Delete}},
		SignPlugin:       framework.SignPlugin{Locality: framework.NodeAndPods},
		FilterPlugin: framework.FilterPlugin{Filter: func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
			for i, row := range rows {
				if out[i] = framework.Fits; t.Used(table.CPU)[row]+in.Pod.Demand.Requests.MilliCPU > t.Allocatable(table.CPU)[row] {
					out[i] = 1
				}
			}
		}},
	}
	p := &profile.Profile{Name: "default", Filter: []*framework.Plugin{fit}, Plugins: map[string]*framework.Plugin{"Fit": fit}}
	no := func(*object.Pod) bool { return false }
	return queue.New(queue.Options{
		EventsToRegister: func(_, plugin string) ([]framework.ClusterEventWithHint, bool) {
			return p.Plugins[plugin].EventsToRegister, true
		},
		Foresight: &foresight.Foresight{
			Table: t, Profiles: map[string]*profile.Profile{"default": p}, Extended: no, Grouped: no, FoundNoVictims: no,
			NominatedTo: func(string) []*object.Pod { return nil }, Panicked: func(p *recovered.Panic) { panic(p) },
		},
	})
}

func podOf(name string, cpus int64, node string) *object.Pod {
	u := resource.Vector{MilliCPU: cpus * 1000}
	return &object.Pod{UID: types.UID(name), Name: name, SchedulerName: "default", NodeName: node, Demand: resource.Demand{Requests: u, Usage: u}}
}
