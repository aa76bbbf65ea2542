package volumebinding

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// stage is a node, a class without and one with a provisioner, a free volume,
// a claim of each class, and a pod with both.
func stage() (*table.Table, *object.Pod) {
	tb := plugintest.Table(&object.Node{Name: "n"})
	for _, c := range []struct{ name, provisioner string }{{"class", notSupported}, {"made", "csi.example.com"}} {
		tb.Objects().Set(&object.StorageClass{Meta: object.Meta{Kind: object.StorageClasses, Name: c.name}, Provisioner: c.provisioner, HasBindingMode: true, WaitForFirstConsumer: true})
		tb.Objects().Set(claimOf(c.name, "1"))
	}
	v := volume("volume", 5, "")
	v.UID, v.Version = "v", "1"
	tb.Objects().Set(v)
	return tb, &object.Pod{UID: "p", Namespace: "ns", Name: "p", Volumes: []object.Volume{{Claimed: true, Claim: "class"}, {Claimed: true, Claim: "made"}}}
}

func claimOf(class, version string) *object.PersistentVolumeClaim {
	return &object.PersistentVolumeClaim{Meta: object.Meta{Kind: object.PersistentVolumeClaims, Namespace: "ns", Name: class, UID: "uid", Version: version},
		Class: class, Bytes: 3, Sized: true, VolumeMode: v1.PersistentVolumeFilesystem}
}

func plugin(t *testing.T) framework.Plugin {
	pl, err := New(nil, feature.Features{})
	if err != nil {
		t.Fatal(err)
	}
	return pl
}

func reserved(t *testing.T, pl framework.Plugin, tb *table.Table, p *object.Pod) []framework.Write {
	t.Helper()
	if s := pl.Reserve(tb, p, "n"); s != nil {
		t.Fatalf("Reserve: %+v", s)
	}
	writes, s := pl.PreBind(tb, p, "n")
	if s != nil || len(writes) != 2 {
		t.Fatalf("PreBind: %+v, %+v", writes, s)
	}
	return writes
}

// A volume that is reserved for one pod is taken for all others until Unreserve gives
// it back.
func TestWhatIsReservedIsTaken(t *testing.T) {
	tb, p := stage()
	pl := plugin(t)
	writes := reserved(t, pl, tb, p)
	if writes[0].Object.Name != "volume" || writes[0].Object.Version != "1" || writes[1].Object.Name != "made" {
		t.Errorf("writes %+v", writes)
	}
	ref := writes[0].Patch["spec"].(map[string]any)["claimRef"].(map[string]any)
	if ref["name"] != "class" || ref["namespace"] != "ns" {
		t.Errorf("the volume is kept for %v", ref)
	}
	other := claimOf("class", "1")
	other.Name, other.UID = "second", "uid-2"
	tb.Objects().Set(other)
	q := &object.Pod{UID: "q", Namespace: "ns", Volumes: []object.Volume{{Claimed: true, Claim: "second"}}}
	if got := plugintest.Ask(t, pl, tb, q).Blocked["n"]; got == "" {
		t.Error("the volume is given away twice")
	}
	before := string(pl.Sign(nil, tb, q))
	pl.Unreserve(tb, p, "n")
	if got := plugintest.Ask(t, pl, tb, q).Blocked["n"]; got != "" {
		t.Errorf("given back, the volume cannot be had: %s", got)
	}
	if string(pl.Sign(nil, tb, q)) == before {
		t.Error("answers from before are kept")
	}
	if c := table.Lookup[*object.PersistentVolumeClaim](tb, object.PersistentVolumeClaims, "ns", "made"); c.SelectedNode != "" {
		t.Errorf("node %q stays selected", c.SelectedNode)
	}
	pl.Unreserve(tb, p, "n") // twice does no harm
}

// The writes are done when every claim is bound, and fail when a volume, a claim or the
// node is gone, or the driver gives up.
func TestWritesAreDoneWhenEveryClaimIsBound(t *testing.T) {
	tests := []struct {
		name string
		do   func(tb *table.Table, results []object.Object)
		want string // "wait", "" or part of an error
	}{
		{"nothing came back yet", func(*table.Table, []object.Object) {}, "wait"},
		{"all came true", func(tb *table.Table, results []object.Object) {
			for _, o := range results {
				tb.Objects().Set(o)
			}
		}, ""},
		{"one claim is not bound yet", func(tb *table.Table, results []object.Object) {
			for _, o := range results[:len(results)-1] {
				tb.Objects().Set(o)
			}
		}, "wait"},
		{"the volume was let go", func(tb *table.Table, _ []object.Object) {
			v := volume("volume", 5, "")
			v.UID, v.Version = "v", "7"
			tb.Objects().Set(v)
		}, `ClaimRef got reset for pv "volume"`},
		{"the volume is gone", func(tb *table.Table, _ []object.Object) {
			tb.Objects().Remove(object.PersistentVolumes, "", "volume")
		}, `persistentvolume "volume" not found`},
		{"the driver could not", func(tb *table.Table, _ []object.Object) {
			tb.Objects().Set(claimOf("made", "7"))
		}, `provisioning failed for PVC "made"`},
		{"the claim is gone", func(tb *table.Table, _ []object.Object) {
			tb.Objects().Remove(object.PersistentVolumeClaims, "ns", "made")
		}, `persistentvolumeclaim "made" not found`},
		{"the node is gone", func(tb *table.Table, _ []object.Object) { tb.RemoveNode("n") }, `failed to get node "n"`},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			tb, p := stage()
			pl := plugin(t)
			writes := reserved(t, pl, tb, p)
			if s := pl.WritesDone(tb, p, "n"); s == nil || s.Code != decision.Wait {
				t.Fatalf("at first: %+v", s)
			}
			c.do(tb, slices.Concat(writes[0].Result, writes[1].Result))
			got := "" // let go
			if s := pl.WritesDone(tb, p, "n"); s != nil && s.Code == decision.Wait {
				got = "wait"
			} else if s != nil {
				got = s.Err.Error()
			}
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// What was written stays taken when the pod gives up, until the API shows it;
// that may be before the writes are known to be done.
func TestGivenUpAfterWriting(t *testing.T) {
	for name, before := range map[string]bool{"the watch is behind": false, "the watch was faster": true} {
		t.Run(name, func(t *testing.T) {
			tb, p := stage()
			pl := plugin(t)
			writes := reserved(t, pl, tb, p)
			written := *writes[0].Result[0].(*object.PersistentVolume)
			written.Version = "2"
			if before {
				tb.Objects().Set(&written)
			}
			if s := pl.WritesDone(tb, p, "n"); s == nil || s.Code != decision.Wait {
				t.Fatalf("the claims are not bound: %+v", s)
			}
			pl.Unreserve(tb, p, "n")
			look := func() *object.PersistentVolume {
				return table.Lookup[*object.PersistentVolume](tb, object.PersistentVolumes, "", "volume")
			}
			if look().Claim == nil {
				t.Error("a volume that was written for a claim is free")
			}
			undone := volume("volume", 5, "")
			undone.UID, undone.Version = "v", "3"
			tb.Objects().Set(undone)
			if look().Claim != nil {
				t.Error("what the API shows does not count")
			}
		})
	}
}

// The writes time out after the configured seconds, by default after ten minutes.
func TestWritesTimeout(t *testing.T) {
	seconds := int64(7)
	for _, tt := range []struct {
		args *configv1.VolumeBindingArgs
		want time.Duration
	}{{nil, 10 * time.Minute}, {&configv1.VolumeBindingArgs{}, 10 * time.Minute}, {&configv1.VolumeBindingArgs{BindTimeoutSeconds: &seconds}, 7 * time.Second}} {
		pl, err := New(tt.args, feature.Features{})
		if err != nil || pl.WritesTimeout.After != tt.want {
			t.Errorf("%+v: timeout %v, %v, want %v", tt.args, pl.WritesTimeout, err, tt.want)
		}
	}
}

// TestAfterBinding: nothing is assumed any more.
func TestAfterBinding(t *testing.T) {
	tb, p := stage()
	pl := plugin(t)
	reserved(t, pl, tb, p)
	pl.PostBind(p, "n") // bound by another, nothing was written
	if v := table.Lookup[*object.PersistentVolume](tb, object.PersistentVolumes, "", "volume"); v.Claim != nil {
		t.Errorf("the volume is still assumed for %+v", v.Claim)
	}
}

// A pod is requeued by its own claims and volumes, by more capacity, and by drivers
// that change.
func TestQueueingHints(t *testing.T) {
	p := &object.Pod{Namespace: "ns", Volumes: []object.Volume{{Claimed: true, Claim: "c"}}}
	kept := volume("v", 1, "")
	kept.Claim = &object.ClaimReference{Namespace: "ns", Name: "c"}
	others := volume("v", 1, "")
	others.Claim = &object.ClaimReference{Namespace: "else", Name: "c"}
	for _, c := range []struct {
		name string
		hint func(*object.Pod, *framework.Event) bool
		e    framework.Event
		want bool
	}{
		{"the volume that is kept goes", preBoundGone, framework.Event{OldObject: kept}, true},
		{"another's goes", preBoundGone, framework.Event{OldObject: others}, false},
		{"room is ignored", capacityIgnored, framework.Event{OldObject: &object.CSIDriver{StorageCapacity: true}, NewObject: &object.CSIDriver{}}, true},
		{"room is looked at", capacityIgnored, framework.Event{OldObject: &object.CSIDriver{}, NewObject: &object.CSIDriver{StorageCapacity: true}}, false},
		{"more room", capacityGrew, framework.Event{OldObject: &object.CSIStorageCapacity{Known: true, Bytes: 1}, NewObject: &object.CSIStorageCapacity{Known: true, Bytes: 2}}, true},
		{"less room", capacityGrew, framework.Event{OldObject: &object.CSIStorageCapacity{Known: true, Bytes: 2}, NewObject: &object.CSIStorageCapacity{Known: true, Bytes: 1}}, false},
		{"migrated", migrationChanged, framework.Event{OldObject: &object.CSINode{}, NewObject: &object.CSINode{Migrated: "x"}}, true},
		{"the claim", framework.OwnClaimChanged(true).QueueingHintFn, framework.Event{NewObject: &object.PersistentVolumeClaim{Meta: object.Meta{Namespace: "ns", Name: "c"}}}, true},
		{"another claim", framework.OwnClaimChanged(true).QueueingHintFn, framework.Event{NewObject: &object.PersistentVolumeClaim{Meta: object.Meta{Namespace: "ns", Name: "d"}}}, false},
	} {
		if got := c.hint(p, &c.e); got != c.want {
			t.Errorf("%s: requeues %v", c.name, got)
		}
	}
}

// Without the gate VolumeAttributesClass a claim that names a class of attributes has the
// attempt fail, and a volume that has one suits no claim.
func TestAttributesWithoutTheirGate(t *testing.T) {
	for _, tt := range []struct {
		on            bool
		claim, volume string
		err           string
		fits          bool
	}{
		{on: true, claim: "gold", volume: "gold", fits: true},
		{on: true, claim: "gold"},
		{claim: "gold", volume: "gold", err: "unsupported volumeAttributesClassName is set on claim ns/class when the feature-gate VolumeAttributesClass is disabled"},
		{volume: "gold"},
		{fits: true},
	} {
		tb, p := stage()
		c, v := claimOf("class", "1"), volume("volume", 5, "")
		c.Attributes, v.Attributes, v.UID = tt.claim, tt.volume, "v"
		tb.Objects().Set(c)
		tb.Objects().Set(v)
		tb.Objects().Set(&object.StorageClass{Meta: object.Meta{Kind: object.StorageClasses, Name: "class"}, Provisioner: notSupported, HasBindingMode: true, WaitForFirstConsumer: true})
		pl, err := New(nil, feature.Features{VolumeAttributesClass: tt.on})
		if err != nil {
			t.Fatal(err)
		}
		if blocked := plugintest.Ask(t, pl, tb, p).Blocked["n"]; tt.err != "" && blocked != "Error: "+tt.err {
			t.Errorf("%+v: got %q", tt, blocked)
		}
		if got := plugintest.Ask(t, pl, tb, p).Blocked["n"] == ""; got != tt.fits {
			t.Errorf("%+v: fits %t", tt, got)
		}
	}
}
