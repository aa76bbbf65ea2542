package api

import (
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

// The daemon keeps of nodes what it decides by. It says all the same since when a node is
// cordoned and by whom, and what is wrong with it: it reads the nodes that it names.
func TestSinceWhenOfTheDaemon(t *testing.T) {
	f := newFixture(t)
	at := start.Add(-time.Hour)
	node := func(name string) *v1.Node {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid"}}
		n.Spec.Unschedulable = true
		n.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")}
		return n
	}
	f.step(machine.NodeSet{Node: decode.Node(node("n"))})
	known := node("n")
	known.ManagedFields = wrote("kubectl-cordon", "unschedulable", at)
	f.nodes = map[string]*v1.Node{"n": known}
	pod := f.pod("cart", "1")
	pod.Status.NominatedNodeName = "n"
	pod.ManagedFields = wrote("other-scheduler", "nominatedNodeName", at)

	var a why.Answer
	f.get("why?pod=shop/cart", &a)
	for _, want := range []why.Held{{What: "cordon of n", Since: &at, By: "kubectl-cordon"}, {What: "nominated to n", Since: &at, By: "other-scheduler"}} {
		if !slices.ContainsFunc(a.Held, func(h why.Held) bool {
			return h.What == want.What && h.By == want.By && h.Since != nil && h.Since.Equal(*want.Since)
		}) {
			t.Errorf("no %+v in %+v", want, a.Held)
		}
	}
	f.nodes = nil // it may not be read
	if f.get("why?pod=shop/cart", &a); len(a.Held) != 1 {
		t.Errorf("a node that cannot be read: %+v", a.Held)
	}
}
