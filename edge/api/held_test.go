package api

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/why"
)

// wrote is what the API server notes of a client that wrote the field.
func wrote(by, field string, at time.Time) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: by, Time: &metav1.Time{Time: at}, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:` + field + `":{}}}`)}}
}

// cordoned is a cluster of one node, which was cordoned an hour ago, and of a pod that was nominated
// to it then.
func cordoned(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid"}}
	node.Spec.Unschedulable = true
	node.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")}
	f.step(machine.NodeSet{Node: decode.Node(node)})
	node.ManagedFields = wrote("kubectl-cordon", "unschedulable", start.Add(-time.Hour))
	f.nodes = map[string]*v1.Node{"n": node}
	pod := f.pod("cart", "1")
	pod.Status.NominatedNodeName = "n"
	pod.ManagedFields = wrote("other-scheduler", "nominatedNodeName", start.Add(-time.Hour))
	return f
}

// checkHeld checks that what holds a pod for an hour is as wanted.
func checkHeld(t *testing.T, held []why.Held, want ...string) {
	t.Helper()
	var got []string
	for _, h := range held {
		if got = append(got, h.What+" by "+h.By); h.Since == nil || !h.Since.Equal(start.Add(-time.Hour)) {
			t.Errorf("%s since %v", h.What, h.Since)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("held by %q, not %q", got, want)
	}
}

// The daemon keeps of nodes what it decides by. It says all the same since when a node is
// cordoned and by whom, and what is wrong with it: it reads the nodes that it names.
func TestSinceWhenOfTheDaemon(t *testing.T) {
	f := cordoned(t)
	var a why.Answer
	f.get("why?pod=shop/cart", &a)
	checkHeld(t, a.Held, "cordon of n by kubectl-cordon", "nominated to n by other-scheduler")
	f.nodes = nil // it may not be read
	if f.get("why?pod=shop/cart", &a); len(a.Held) != 1 {
		t.Errorf("a node that cannot be read: %+v", a.Held)
	}
}

// A list says it, too, of the first pod of each cause, and reads each node once, however many pods
// and causes the node is about.
func TestSinceWhenOfTheList(t *testing.T) {
	f := cordoned(t)
	f.pods["shop/cart"].CreationTimestamp = metav1.Time{Time: start.Add(-time.Hour)}
	gated := f.pod("gated", "1")
	gated.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "g"}}
	gated.CreationTimestamp = metav1.Time{Time: start.Add(-time.Hour)}
	gated.ManagedFields = slices.Concat(wrote("editor", "labels", start), wrote("deployer", "containers", start.Add(-time.Hour)))
	for i := range 2 * mostLooked {
		f.pod(fmt.Sprintf("more-%d", i), fmt.Sprintf("%dm", i+1))
	}
	var l why.List
	f.get("why/all?kind=WhyList", &l)
	if len(l.Causes) != 2 {
		t.Fatalf("%+v", l.Causes)
	}
	for _, c := range l.Causes {
		if c.Verdict == why.Gated {
			checkHeld(t, c.Held, "cordon of n by kubectl-cordon", "gated since it was made by deployer")
		} else {
			checkHeld(t, c.Held, "cordon of n by kubectl-cordon", "nominated to n by other-scheduler")
		}
	}
	if n := f.nodeReads.Load(); n != 1 {
		t.Errorf("one node was read %d times", n)
	}
}
