package volumes_test

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/index/volumes"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Two pods on a node use one claim, whose volume is attached there already: it counts once. A
// second volume, attached for a pod that is gone, counts as well.
func Example() {
	t := table.New()
	n1 := t.SetNode(&object.Node{Name: "n1"})
	for _, name := range []string{"data", "logs"} {
		t.Objects().Set(&object.PersistentVolume{
			Meta:   object.Meta{Kind: object.PersistentVolumes, Name: "pv-" + name},
			Source: object.VolumeSource{Driver: "disk.example.com", Handle: name},
		})
		t.Objects().Set(&object.PersistentVolumeClaim{
			Meta:       object.Meta{Kind: object.PersistentVolumeClaims, Namespace: "default", Name: name},
			VolumeName: "pv-" + name,
		})
	}
	attach := func(name string) {
		t.Objects().Set(&object.VolumeAttachment{
			Meta:     object.Meta{Kind: object.VolumeAttachments, Name: "attach-" + name},
			Attacher: "disk.example.com", Node: "n1", Volume: "pv-" + name,
		})
	}
	x := volumes.Of(t)
	show := func(what string) {
		fmt.Printf("%s: %d attached to n1, %d pods use data\n", what, x.Attached(n1, "disk.example.com"), x.ClaimUsers("default", "data"))
	}
	show("at first")
	attach("data")
	attach("logs")
	show("two volumes are attached")
	using := []object.Volume{{Claimed: true, Claim: "data"}}
	t.AddPod(&object.Pod{UID: "1", Namespace: "default", Name: "web-1", Volumes: using}, "n1")
	t.AddPod(&object.Pod{UID: "2", Namespace: "default", Name: "web-2", Volumes: using}, "n1")
	show("two pods came")
	t.Objects().Remove(object.VolumeAttachments, "", "attach-data")
	t.Objects().Remove(object.VolumeAttachments, "", "attach-logs")
	show("no attachment is left")

	// Output:
	// at first: 0 attached to n1, 0 pods use data
	// two volumes are attached: 2 attached to n1, 0 pods use data
	// two pods came: 2 attached to n1, 2 pods use data
	// no attachment is left: 1 attached to n1, 2 pods use data
}
