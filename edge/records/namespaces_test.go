package records

import (
	"fmt"
	"testing"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/loop"
)

// Namespaces are remembered once they are gone, and by their pods. Of more than can be remembered those
// that went first are forgotten; if none is gone, any word may be one.
func TestKnewNamespace(t *testing.T) {
	r := New(LeastBytes)
	see := func(e machine.Event) { r.Observe(loop.Step{Now: start, Event: e}) }
	set := func(name string) { see(machine.NamespaceSet{Namespace: &object.Namespace{Name: name}}) }
	check := func(when string, want map[string]bool) {
		t.Helper()
		for name, want := range want {
			if r.KnewNamespace(name) != want {
				t.Errorf("%s: %s: want %t", when, name, want)
			}
		}
	}
	set("again")
	see(machine.NamespaceGone{Name: "again"})
	set("again")
	for _, name := range []string{"gone-1", "gone-2", "gone-3"} {
		set(name)
		see(machine.NamespaceGone{Name: name})
	}
	see(machine.PodSet{Pod: &object.Pod{Namespace: "gone-1", Name: "late"}})
	see(machine.NamespaceGone{Name: "never-seen"})
	see(machine.PodSet{Pod: &object.Pod{Namespace: "busy", Name: "p"}})
	check("a few", map[string]bool{"gone-1": true, "gone-3": true, "busy": true, "again": true, "and": false, "p": false, "never-seen": false})
	for i := range mostNamespaces - 3 {
		set(fmt.Sprint("n", i))
	}
	if n := len(r.namespaces.goneAt); n != mostNamespaces {
		t.Errorf("%d are remembered", n)
	}
	check("many", map[string]bool{"gone-1": false, "gone-2": false, "gone-3": true, "busy": true, "again": true, "n0": true, "and": false})
	set("last")
	check("as many as can be", map[string]bool{"gone-3": false, "last": true, "busy": true, "and": false})
	set("one-more")
	check("too many", map[string]bool{"one-more": true, "busy": true, "and": true})
}
