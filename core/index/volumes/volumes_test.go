package volumes

import (
	"testing"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// After a panic in the middle of a change a rebuild counts all volumes anew. Whoever tracks
// pods has to do so again.
func TestRebuild(t *testing.T) {
	tb := table.New()
	tb.SetNode(&object.Node{Name: "a"})
	tb.Objects().Set(&object.PersistentVolume{Meta: object.Meta{Kind: object.PersistentVolumes, Name: "v"}, Source: object.VolumeSource{Driver: "csi", Handle: "v"}})
	tb.Objects().Set(&object.PersistentVolumeClaim{Meta: object.Meta{Kind: object.PersistentVolumeClaims, Name: "c"}, VolumeName: "v"})
	tb.Objects().Set(&object.VolumeAttachment{Meta: object.Meta{Kind: object.VolumeAttachments, Name: "a"}, Attacher: "other", Node: "a", Volume: "v"})
	p := &object.Pod{UID: "1", Volumes: []object.Volume{{Claimed: true, Claim: "c"}}}
	pl := tb.AddPod(p, "a")
	x := Of(tb)
	x.Track(p)
	swept := x.Swept()
	x.attach(pl, nil)
	clear(x.attachedTo)
	if err := tb.Check(); err == nil {
		t.Fatal("the check sees no damage")
	}
	tb.Rebuild()
	if err := tb.Check(); err != nil {
		t.Error(err)
	}
	if x = Of(tb); x.Attached(pl.Row, "csi") != 1 || x.Attached(pl.Row, "other") != 1 || x.ClaimUsers("", "c") != 1 {
		t.Errorf("drivers attach %v, and %v uses the claim", x.attached, x.claims)
	}
	if x.IsTracked(object.VolumeSource{Driver: "csi", Handle: "v"}) || x.Swept() <= swept {
		t.Errorf("volumes are tracked still, %d sweeps after %d", x.Swept(), swept)
	}
}
