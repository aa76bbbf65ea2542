package nodevolumelimits

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

func node(limit int32) *object.CSINode {
	return &object.CSINode{Meta: object.Meta{Kind: object.CSINodes, Name: "n"}, Drivers: []object.CSINodeDriver{{Name: "csi", Limited: true, Limit: limit}}}
}

// TestForeignEphemeralVolume: a pod on the node whose ephemeral volume's claim
// is another's takes no room, and stops nobody.
func TestForeignEphemeralVolume(t *testing.T) {
	tb := plugintest.Table(&object.Node{Name: "n"})
	tb.Objects().Set(node(1))
	tb.Objects().Set(&object.StorageClass{Meta: object.Meta{Kind: object.StorageClasses, Name: "class"}, Provisioner: "csi"})
	for _, name := range []string{"foreign", "theirs", "own"} {
		tb.Objects().Set(&object.PersistentVolumeClaim{Meta: object.Meta{Kind: object.PersistentVolumeClaims, Namespace: "ns", Name: name}, Class: "class", Owner: "q"})
	}
	running := &object.Pod{UID: "r", Namespace: "ns", Volumes: []object.Volume{{Claimed: true, Ephemeral: true, Claim: "foreign"}}}
	tb.AddPod(running, "n")
	p := &object.Pod{UID: "q", Namespace: "ns", Volumes: []object.Volume{{Claimed: true, Ephemeral: true, Claim: "theirs"}}}
	if got := plugintest.Ask(t, New(feature.Features{}), tb, p).Blocked["n"]; got != "" {
		t.Errorf("blocked: %s", got)
	}
	tb.AddPod(&object.Pod{UID: "s", Namespace: "ns", Volumes: []object.Volume{{Claimed: true, Claim: "own"}}}, "n")
	if got := plugintest.Ask(t, New(feature.Features{}), tb, p).Blocked["n"]; got != "Unschedulable: "+reason {
		t.Errorf("with a volume there: %q", got)
	}
}

// TestVolumesCountOnce: a volume that two pods on the node share is one.
func TestVolumesCountOnce(t *testing.T) {
	tb := plugintest.Table(&object.Node{Name: "n"})
	tb.Objects().Set(node(2))
	tb.Objects().Set(&object.StorageClass{Meta: object.Meta{Kind: object.StorageClasses, Name: "class"}, Provisioner: "csi"})
	using := func(uid types.UID, claim string) *object.Pod {
		tb.Objects().Set(&object.PersistentVolumeClaim{Meta: object.Meta{Kind: object.PersistentVolumeClaims, Namespace: "ns", Name: claim}, Class: "class"})
		return &object.Pod{UID: uid, Namespace: "ns", Volumes: []object.Volume{{Claimed: true, Claim: claim}}}
	}
	tb.AddPod(using("a", "shared"), "n")
	tb.AddPod(using("b", "shared"), "n")
	own := using("c", "own")
	if got := plugintest.Ask(t, New(feature.Features{}), tb, own).Blocked["n"]; got != "" {
		t.Errorf("the second volume of two: %s", got)
	}
	tb.AddPod(own, "n")
	if got := plugintest.Ask(t, New(feature.Features{}), tb, using("d", "third")).Blocked["n"]; got != "Unschedulable: "+reason {
		t.Errorf("the third volume of two: %q", got)
	}
	if got := plugintest.Ask(t, New(feature.Features{}), tb, using("e", "shared")).Blocked["n"]; got != "" {
		t.Errorf("a volume that is there: %s", got)
	}
}

// A pod is requeued when a node's limit rises, and when a volume of its own claim
// changes.
func TestQueueingHints(t *testing.T) {
	none := node(0)
	none.Drivers = nil
	free := node(0)
	free.Drivers[0].Limited = false
	for _, c := range []struct {
		name     string
		old, now *object.CSINode
		want     bool
	}{
		{"more", node(1), node(2), true}, {"less", node(2), node(1), false}, {"the same", node(1), node(1), false},
		{"no limit any more", node(1), free, true}, {"no driver any more", node(1), none, true},
		{"a driver comes", none, node(1), true}, {"a limit comes", free, node(1), true},
	} {
		if got := limitRaised(nil, &framework.Event{OldObject: c.old, NewObject: c.now}); got != c.want {
			t.Errorf("%s: requeues %v", c.name, got)
		}
	}
	p := &object.Pod{Namespace: "ns", Volumes: []object.Volume{{Claimed: true, Claim: "c"}}}
	ours := &object.PersistentVolume{Claim: &object.ClaimReference{Namespace: "ns", Name: "c"}}
	for _, c := range []struct {
		name string
		e    framework.Event
		want bool
	}{
		{"comes", framework.Event{NewObject: ours}, true},
		{"goes", framework.Event{OldObject: ours}, true},
		{"of another", framework.Event{NewObject: &object.PersistentVolume{}}, false},
	} {
		if got := volumeChanged(p, &c.e); got != c.want {
			t.Errorf("a volume %s: requeues %v", c.name, got)
		}
	}
}

// TestFirstMissingDriverIsNamed: of several drivers that insist on being on the
// node, and are not, the first by name.
func TestFirstMissingDriverIsNamed(t *testing.T) {
	tb := plugintest.Table(&object.Node{Name: "n"})
	tb.Objects().Set(node(9))
	p := &object.Pod{UID: "p", Namespace: "ns"}
	for _, driver := range []string{"z", "csi", "b", "a"} {
		tb.Objects().Set(&object.CSIDriver{Meta: object.Meta{Kind: object.CSIDrivers, Name: driver}, PreventIfMissing: driver != "a"})
		tb.Objects().Set(&object.StorageClass{Meta: object.Meta{Kind: object.StorageClasses, Name: driver}, Provisioner: driver})
		tb.Objects().Set(&object.PersistentVolumeClaim{Meta: object.Meta{Kind: object.PersistentVolumeClaims, Namespace: "ns", Name: driver}, Class: driver})
		p.Volumes = append(p.Volumes, object.Volume{Claimed: true, Claim: driver})
	}
	if got := plugintest.Ask(t, New(feature.Features{VolumeLimitScaling: true}), tb, p).Blocked["n"]; got != "Unschedulable: b CSI driver is not installed on the node" {
		t.Errorf("got %q", got)
	}
	if got := plugintest.Ask(t, New(feature.Features{}), tb, p).Blocked["n"]; got != "" {
		t.Errorf("without the gate: %q", got)
	}
}
