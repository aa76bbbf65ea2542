package compat

import (
	"testing"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
)

// Without the gate GenericWorkload no PodGroupPostFilter plugin is called for a group of
// another source.
func TestGroupPostFilterWithoutTheGate(t *testing.T) {
	h := &Host{Hosts: New(Options{})}
	out := h.runGroupPostFilter(&hostedPlugin{}, &framework.PodGroupPostFilterCall{}) // a call would panic
	if out.Status.Code != decision.Unschedulable || len(out.Status.Reasons) > 0 {
		t.Errorf("got %v", out.Status)
	}
}
