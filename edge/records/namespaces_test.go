package records

import (
	"fmt"
	"testing"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/loop"
)

// Namespaces are remembered once they are gone, and by their pods. Of too many any may be one.
func TestKnewNamespace(t *testing.T) {
	r := New(LeastBytes)
	see := func(e machine.Event) { r.Observe(loop.Step{Now: start, Event: e}) }
	see(machine.NamespaceSet{Namespace: &object.Namespace{Name: "gone"}})
	see(machine.NamespaceGone{Name: "gone"})
	see(machine.PodSet{Pod: &object.Pod{Namespace: "busy", Name: "p"}})
	for name, want := range map[string]bool{"gone": true, "busy": true, "and": false, "p": false} {
		if r.KnewNamespace(name) != want {
			t.Errorf("%s: want %t", name, want)
		}
	}
	for i := range mostNamespaces {
		see(machine.NamespaceSet{Namespace: &object.Namespace{Name: fmt.Sprint("n", i)}})
	}
	if len(r.namespaces.names) != mostNamespaces || !r.KnewNamespace("and") {
		t.Errorf("%d are remembered", len(r.namespaces.names))
	}
}
