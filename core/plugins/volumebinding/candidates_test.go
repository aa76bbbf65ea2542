package volumebinding

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/index/freevolumes"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// volume is one of a class, pinned by a label or not.
func volume(name string, bytes int64, label string, values ...string) *object.PersistentVolume {
	v := &object.PersistentVolume{Meta: object.Meta{Kind: object.PersistentVolumes, Name: name}, Class: "class", Available: true,
		Bytes: bytes, VolumeMode: v1.PersistentVolumeFilesystem}
	if label != "" {
		v.Pin = &object.LabelPin{Key: label, Values: values}
		v.Nodes = match.NewNodeSelector(nil, &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: label, Operator: v1.NodeSelectorOpIn, Values: values}}}}})
	}
	return v
}

// TestSmallestThatSuits holds the choice against a look at every volume.
func TestSmallestThatSuits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb := table.New()
		claim := &object.PersistentVolumeClaim{Meta: object.Meta{Namespace: "ns", Name: "claim", UID: "uid"},
			Class: "class", Bytes: rapid.Int64Range(0, 4).Draw(t, "wanted"), VolumeMode: v1.PersistentVolumeFilesystem}
		values := []string{"a", "b", "c"}
		var all []*object.PersistentVolume
		for i := range rapid.IntRange(0, 40).Draw(t, "volumes") {
			label := rapid.SampledFrom([]string{"", "zone", "zone", "host"}).Draw(t, "label")
			v := volume(fmt.Sprintf("v%02d", i), rapid.Int64Range(0, 6).Draw(t, "bytes"), label,
				rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, 2, rapid.ID).Draw(t, "values")...)
			switch rapid.IntRange(0, 20).Draw(t, "odd") {
			case 0:
				v.Available = false
			case 1:
				v.Claim = &object.ClaimReference{Namespace: "ns", Name: "other"}
			case 2:
				v.Class = "another"
			case 3:
				v.Terminating = true
			case 4:
				v.VolumeMode = v1.PersistentVolumeBlock
			case 5:
				v.Attributes = "gold"
			case 6, 7, 8, 9:
				v.Pin = nil // whatever nodes reach it
			}
			tb.Objects().Set(v)
			all = append(all, v)
		}
		n := &object.Node{Name: "n", Labels: map[string]string{}}
		for _, label := range []string{"zone", "host"} {
			if rapid.Bool().Draw(t, "has "+label) {
				n.Labels[label] = rapid.SampledFrom(values).Draw(t, label)
			}
		}
		var taken []*object.PersistentVolume
		for range 3 {
			var want *object.PersistentVolume
			for _, v := range all { // by name
				fits := v.Class == "class" && v.Available && v.Claim == nil && !v.Terminating && v.Attributes == "" &&
					v.VolumeMode == claim.VolumeMode && v.Bytes >= claim.Bytes && v.Nodes.Matches(match.Subject{Labels: n.Labels})
				for _, other := range taken {
					fits = fits && v != other
				}
				if fits && (want == nil || v.Bytes < want.Bytes) {
					want = v
				}
			}
			got := suitable(tb, claim, 2).on(n, taken)
			if got != want {
				t.Fatalf("got %+v, want %+v", got, want)
			}
			if got == nil {
				return
			}
			taken = append(taken, got)
		}
	})
}

// A claim gets the volume that is kept for it and no other, and none that was kept for
// an earlier claim of its name.
func TestKeptVolumeComesFirst(t *testing.T) {
	claim := &object.PersistentVolumeClaim{Meta: object.Meta{Namespace: "ns", Name: "claim", UID: "uid"}, Class: "class", VolumeMode: v1.PersistentVolumeFilesystem}
	kept := volume("kept", 9, "zone", "a")
	kept.Claim = &object.ClaimReference{Namespace: "ns", Name: "claim"}
	tb := table.New()
	tb.Objects().Set(kept)
	tb.Objects().Set(volume("free", 1, ""))
	found := suitable(tb, claim, 2)
	if got := found.on(&object.Node{Labels: map[string]string{"zone": "a"}}, nil); got != kept {
		t.Errorf("in its zone the claim gets %+v", got)
	}
	if got := found.on(&object.Node{Labels: map[string]string{"zone": "b"}}, nil); got != nil {
		t.Errorf("elsewhere the claim gets %+v, though a volume is kept for it", got)
	}
	kept.Claim.UID = "of another time"
	if got := suitable(tb, claim, 2).on(&object.Node{Labels: map[string]string{"zone": "a"}}, nil); got == kept {
		t.Error("a volume that was kept for an earlier claim of that name is taken")
	}
}

// Of many volumes that one label pins, a claim gets the smallest that is large enough.
func TestManyVolumesOfOneLabel(t *testing.T) {
	claim := &object.PersistentVolumeClaim{Meta: object.Meta{Namespace: "ns", Name: "claim"}, Class: "class", Bytes: 3, VolumeMode: v1.PersistentVolumeFilesystem}
	tb := table.New()
	for i := range 2 * freevolumes.Few {
		tb.Objects().Set(volume(fmt.Sprint("v", i), int64(i), "zone", "a"))
	}
	found := suitable(tb, claim, 2)
	if got := found.on(&object.Node{Labels: map[string]string{"zone": "a"}}, nil); got == nil || got.Bytes != 3 {
		t.Errorf("in the zone of the volumes the claim gets %+v", got)
	}
	if got := found.on(&object.Node{Labels: map[string]string{"zone": "b"}}, nil); got != nil {
		t.Errorf("elsewhere the claim gets %+v", got)
	}
}
