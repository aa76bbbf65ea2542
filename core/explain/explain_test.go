package explain

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
)

func tally(nodes int, reasons ...string) decision.Tally {
	return decision.Tally{Blocker: decision.Blocker{Plugin: "P", Code: decision.Unschedulable, Reasons: reasons}, Nodes: nodes}
}

// The message of an unschedulable pod is the one that kube-scheduler writes.
func TestMessage(t *testing.T) {
	const noRoom = "preemption: 0/5 nodes are available: 5 No preemption victims found for incoming pod."
	for name, c := range map[string]struct {
		d    decision.Decision
		want string
	}{
		"reasons of different plugins": {
			decision.Decision{Result: decision.ResultUnschedulable, NodesTotal: 5, Tallies: []decision.Tally{
				tally(1, "node(s) had untolerated taint(s)"), tally(4, "Insufficient cpu")}},
			"0/5 nodes are available: 1 node(s) had untolerated taint(s), 4 Insufficient cpu.",
		},
		"counts sort as strings": {
			decision.Decision{Result: decision.ResultUnschedulable, NodesTotal: 12, Tallies: []decision.Tally{
				tally(2, "Insufficient cpu"), tally(10, "node(s) were unschedulable")}},
			"0/12 nodes are available: 10 node(s) were unschedulable, 2 Insufficient cpu.",
		},
		"a node with two reasons counts for both": {
			decision.Decision{Result: decision.ResultUnschedulable, NodesTotal: 3, Tallies: []decision.Tally{
				tally(1, "Insufficient cpu", "Insufficient memory"), tally(2, "Insufficient memory")}},
			"0/3 nodes are available: 1 Insufficient cpu, 3 Insufficient memory.",
		},
		"a PreFilter rejection replaces the reasons of nodes": {
			decision.Decision{Result: decision.ResultUnschedulable, NodesTotal: 5, Tallies: []decision.Tally{tally(5, "x")},
				PreFilter: &decision.Status{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{"a", "b"}}, PostFilter: []string{noRoom}},
			"0/5 nodes are available: a, b. " + noRoom,
		},
		"PostFilter parts follow": {
			decision.Decision{Result: decision.ResultUnschedulable, NodesTotal: 5, Tallies: []decision.Tally{tally(5, "Insufficient cpu")},
				PostFilter: []string{noRoom}},
			"0/5 nodes are available: 5 Insufficient cpu. " + noRoom,
		},
		"so does what a preemption found": {
			decision.Decision{Result: decision.ResultPreempting, NodesTotal: 5, Tallies: []decision.Tally{tally(5, "Insufficient cpu")},
				PostFilter: []string{"preemption: found"}},
			"0/5 nodes are available: 5 Insufficient cpu. preemption: found",
		},
		"rejected by Reserve or Permit on its node": {
			decision.Decision{Result: decision.ResultUnschedulable, NodesTotal: 5, NodesFeasible: 2, Tallies: []decision.Tally{tally(1, "lost the race")}},
			"0/1 nodes are available: 1 lost the race.",
		},
		"no nodes": {
			decision.Decision{Result: decision.ResultUnschedulable}, "no nodes available to schedule pods",
		},
		"gated": {
			decision.Decision{Result: decision.ResultGated, PreEnqueueStatus: &decision.Status{Reasons: []string{"waiting for scheduling gates: [a b]"}}},
			"waiting for scheduling gates: [a b]",
		},
		"failed": {
			decision.Decision{Result: decision.ResultError, Err: errors.New(`running PreFilter plugin "X": lost`)},
			`running PreFilter plugin "X": lost`,
		},
		"placed": {
			decision.Decision{Result: decision.ResultScheduled, Node: "a", NodesTotal: 3, NodesFeasible: 3}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Message(&c.d); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// A pod that was not placed gets a condition with the reason of its result; the others
// get none.
func TestCondition(t *testing.T) {
	for result, reason := range map[decision.Result]string{
		decision.ResultScheduled: "", decision.ResultWaiting: "", decision.ResultGated: "",
		decision.ResultUnschedulable: "Unschedulable", decision.ResultPreempting: "Unschedulable", decision.ResultError: "SchedulerError",
	} {
		c := Condition(&decision.Decision{Result: result, Err: errors.New("e")})
		switch {
		case reason == "" && c != nil:
			t.Errorf("%s: condition %+v, want none", result, c)
		case reason != "" && (c == nil || c.Reason != reason || c.Status != v1.ConditionFalse || c.Message == ""):
			t.Errorf("%s: condition %+v, want reason %s", result, c, reason)
		}
	}
}

// An event's note is cut to 1024 bytes.
func TestNote(t *testing.T) {
	if got := Note(strings.Repeat("x", 1024)); got != strings.Repeat("x", 1024) {
		t.Errorf("a note of 1024 bytes was cut to %d", len(got))
	}
	if got, want := Note(strings.Repeat("x", 1025)), strings.Repeat("x", 1020)+" ..."; got != want {
		t.Errorf("got %d bytes ending %q", len(got), got[len(got)-6:])
	}
}

// The notes of events are worded as kube-scheduler words them.
func TestNotes(t *testing.T) {
	p := &object.Pod{Namespace: "ns", Name: "web", UID: "u1"}
	for got, want := range map[string]string{
		Assigned(p, "node-a"):               "Successfully assigned ns/web to node-a",
		Deleting(p):                         "skip schedule deleting pod: ns/web",
		Preempted(false, p.UID, "node-a"):   "Preempted by pod u1 on node node-a",
		Preempted(true, "u2", "cluster"):    "Preempted by podgroup u2 on node cluster",
		Disrupted(true, "mine"):             "mine: preempting to accommodate a higher priority podgroup",
		Disrupted(false, "default-berther"): "default-berther: preempting to accommodate a higher priority pod",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Where every node has one reason, the counts of the message add up to the
// nodes, however the tallies are split.
func TestCountsAddUpToNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := decision.Decision{Result: decision.ResultUnschedulable}
		for range rapid.IntRange(1, 6).Draw(t, "tallies") {
			n := rapid.IntRange(1, 200).Draw(t, "nodes")
			d.NodesTotal += n
			d.Tallies = append(d.Tallies, tally(n, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "reason")))
		}
		_, list, _ := strings.Cut(strings.TrimSuffix(Message(&d), "."), ": ")
		sum := 0
		for _, part := range strings.Split(list, ", ") {
			var n int
			var reason string
			if _, err := fmt.Sscanf(part, "%d %s", &n, &reason); err != nil {
				t.Fatalf("part %q: %v", part, err)
			}
			sum += n
		}
		if sum != d.NodesTotal {
			t.Fatalf("counts of %q add up to %d, want %d", Message(&d), sum, d.NodesTotal)
		}
	})
}
