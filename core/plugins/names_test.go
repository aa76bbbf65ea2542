package plugins

import (
	"slices"
	"testing"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/plugins/names"
)

// A hint says of no object that it helps a pod which does not name it.
func TestHintsAreForWhatIsNamed(t *testing.T) {
	p := &object.Pod{Namespace: "ns", Name: "p", Volumes: []object.Volume{
		{Claimed: true, Claim: "a"}, {}, {Claimed: true, Claim: "b"}, {Claimed: true, Ephemeral: true, Claim: "own"}}}
	claim := func(name string) object.Object {
		return &object.PersistentVolumeClaim{Meta: object.Meta{Kind: object.PersistentVolumeClaims, Namespace: "ns", Name: name}}
	}
	registry, tried := Registry(feature.Features{}), 0
	for _, name := range []string{names.VolumeRestrictions, names.VolumeZone, names.NodeVolumeLimits, names.VolumeBinding} {
		pl, err := registry[name](nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range pl.EventsToRegister {
			if w.Names == nil {
				continue
			}
			tried++
			for _, about := range []string{"a", "b", "own", "p"} {
				e := &framework.Event{Resource: w.Resource, ActionType: w.ActionType, OldObject: claim(about), NewObject: claim(about)}
				if helps, named := w.QueueingHintFn(p, e), slices.Contains(w.Names(p), about); helps != named {
					t.Errorf("%s: claim %s helps %t, is named %t", name, about, helps, named)
				}
			}
		}
	}
	if tried != 4 {
		t.Errorf("%d events are about objects that pods name, want 4", tried)
	}
}

// A change of a node's taints requeues pods that these plugins rejected, and no others.
func TestTaintsRequeue(t *testing.T) {
	want := []string{names.NodeUnschedulable, names.PodTopologySpread, names.TaintToleration}
	var got []string
	for name, build := range Registry(feature.Features{NodeDeclaredFeatures: true, VolumeLimitScaling: true}) {
		pl, err := build(nil)
		if err != nil {
			continue // it needs a feature gate
		}
		e := &framework.Event{Resource: framework.Node, ActionType: framework.UpdateNodeTaint}
		if slices.ContainsFunc(pl.EventsToRegister, func(w framework.ClusterEventWithHint) bool { return w.Matches(e) }) {
			got = append(got, name)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
