package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
)

// blockersOf returns what each node has in an answer: the reasons of the first blocker, "" for none.
func blockersOf(n *NodeBlockers) string {
	var all []string
	for i, name := range n.Names {
		if of := n.Blockers.Of[i]; of < 0 {
			all = append(all, name)
		} else {
			b := n.Blockers.Values[of]
			all = append(all, fmt.Sprintf("%s: %s %q of %d", name, b[0].Plugin, b[0].Reasons, len(b)))
		}
	}
	return strings.Join(all, ", ")
}

// For a pod, each node has what blocks it there, the first blocker first. A pod that has a node is
// looked at as if it had none, and takes no room there.
func TestBlockersByNode(t *testing.T) {
	f := stuck(t)
	cordoned := &v1.Node{}
	cordoned.Name, cordoned.UID, cordoned.Spec.Unschedulable = "n0", "n0", true
	cordoned.Status.Allocatable = v1.ResourceList{"pods": f.pods["shop/big"].Spec.Containers[0].Resources.Requests["cpu"]}
	f.step(machine.NodeSet{Node: decode.Node(cordoned)})
	const cpu = `NodeResourcesFit ["Insufficient cpu"] of 1`
	const unschedulable = `n0: NodeUnschedulable ["node(s) were unschedulable"] of 2`
	var n NodeBlockers
	if code, body := f.get("blockers?pod=shop/big", &n); code != 200 || n.Kind != "NodeBlockers" || n.Pod != "shop/big" || n.Node != "" || n.Message != "" || !n.Time.Equal(f.now) {
		t.Fatalf("%d %s", code, body)
	}
	if got, want := blockersOf(&n), unschedulable+", n1: "+cpu+", n2: "+cpu; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(n.Blockers.Values) != 2 {
		t.Errorf("%d different lists of blockers, want 2", len(n.Blockers.Values))
	}
	f.pods["shop/small"].Spec.NodeName = "n1"
	n = NodeBlockers{}
	if f.get("blockers?pod=shop/small", &n); n.Node != "n1" || blockersOf(&n) != unschedulable+", n1, n2" {
		t.Errorf("a pod that runs: %s: %s", n.Node, blockersOf(&n))
	}
}

// A pod that is assumed on a node does not block itself there, and the answer says where it is.
func TestBlockersOfAnAssumedPod(t *testing.T) {
	f := newFixture(t)
	f.node("n1", "4")
	f.pod("cart", "3")
	f.step(machine.ScheduleOne{})
	var n NodeBlockers
	if f.get("blockers?pod=shop/cart", &n); n.Node != "n1" || blockersOf(&n) != "n1" {
		t.Errorf("on %q: %s", n.Node, blockersOf(&n))
	}
}

// A pod for which no node is looked at has the reason in words, and no cluster a table without rows.
func TestBlockersOfNoNode(t *testing.T) {
	f := stuck(t)
	f.pods["shop/big"].Spec.SchedulerName = "volcano"
	f.pods["shop/small"].Status.Phase = v1.PodSucceeded
	for pod, want := range map[string]string{"big": `no profile has the schedulerName "volcano"`, "small": "the pod has ended: its phase is Succeeded"} {
		var n NodeBlockers
		if code, body := f.get("blockers?pod=shop/"+pod, &n); code != 200 || !strings.HasPrefix(n.Message, want) || len(n.Names) != 0 || !strings.Contains(body, `"names":[]`) {
			t.Errorf("%s: %d %s", pod, code, body)
		}
	}
	empty := newFixture(t)
	empty.pod("cart", "1")
	var n NodeBlockers
	if code, body := empty.get("blockers?pod=shop/cart", &n); code != 200 || !slices.Equal(n.Names, []string{}) || n.Message != "" {
		t.Errorf("no node: %d %s", code, body)
	}
}

// BenchmarkBlockers asks about a pod in the cluster of BenchmarkWhy.
func BenchmarkBlockers(b *testing.B) {
	f := large(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		var n NodeBlockers
		code, body := f.get("blockers?pod=shop/stuck-0", &n)
		if code != 200 || len(n.Names) == 0 {
			b.Fatal(code, body)
		}
		b.ReportMetric(float64(len(body)), "bytes")
	}
}
