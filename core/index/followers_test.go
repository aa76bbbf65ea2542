package index_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/index/volumes"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	_ "github.com/berth-scheduler/berth/core/plugins" // all followers
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// world changes a table in which there are few of all things, so that they get into each
// other's way, and rows are used again.
type world struct {
	*table.Table
	*rapid.T
	marks   []table.Mark
	version int
}

func (w *world) of(what string, values ...string) string {
	return rapid.SampledFrom(values).Draw(w.T, what)
}

func (w *world) number(what string, below int) int {
	return rapid.IntRange(0, below-1).Draw(w.T, what)
}

func (w *world) yes(what string) bool { return rapid.Bool().Draw(w.T, what) }

func (w *world) nodeName() string { return w.of("node", "a", "b", "c", "d") }

func (w *world) node() *object.Node {
	n := &object.Node{Name: w.nodeName(), Unschedulable: w.yes("cordoned"), AllowedPods: int64(w.number("pods", 4)),
		Allocatable: resource.Vector{MilliCPU: int64(w.number("CPU", 3)) << 40, Memory: int64(w.number("memory", 3))}, Labels: map[string]string{}}
	for _, key := range []string{v1.LabelHostname, "zone"} {
		if value := w.of(key, "", "1", "2"); value != "" {
			n.Labels[key] = value
		}
	}
	for range w.number("images", 3) {
		n.Images = append(n.Images, object.Image{Names: []string{w.of("image", "x", "y"), w.of("image", "y", "z")}})
	}
	for range w.number("taints", 3) {
		n.Taints = append(n.Taints, v1.Taint{Key: w.of("taint", "k", "l"), Effect: v1.TaintEffectNoSchedule})
	}
	return n
}

func (w *world) pod() *object.Pod {
	uid := w.of("pod", "1", "2", "3", "4", "5", "6")
	p := &object.Pod{UID: types.UID(uid), Name: uid, Namespace: "default", Priority: int32(w.number("priority", 3)),
		Labels: map[string]string{"app": w.of("app", "a", "b")}, Terminating: w.yes("terminating")}
	if w.yes("started") {
		p.Started = time.Unix(int64(w.number("start", 5)), 0)
	}
	p.Demand.Usage = resource.Vector{MilliCPU: int64(w.number("CPU", 3)), Memory: int64(w.number("memory", 3))}
	p.Demand.NonZero = p.Demand.Usage
	for range w.number("ports", 3) {
		p.HostPorts = append(p.HostPorts, object.HostPort{IP: w.of("IP", "0.0.0.0", "10.0.0.1"), Protocol: v1.ProtocolTCP, Port: int32(80 + w.number("port", 2))})
	}
	for range w.number("volumes", 3) {
		p.Volumes = append(p.Volumes, w.volume())
	}
	return p
}

func (w *world) volume() object.Volume {
	disk := &object.Disk{Kind: object.DiskKind(w.number("disk", 4)), Name: w.of("name", "d", "e"), ReadOnly: w.yes("read")} // #nosec G115
	return rapid.SampledFrom([]object.Volume{
		{Claimed: true, Claim: w.of("claim", "c", "d")}, {Claimed: true, Claim: "c", Ephemeral: true}, {Disk: disk},
		{Migrated: &object.MigratedVolume{Source: w.source()}}, {Driver: "x"},
	}).Draw(w.T, "volume")
}

func (w *world) source() object.VolumeSource {
	return object.VolumeSource{Driver: w.of("driver", "x", "y"), Handle: w.of("handle", "1", "2")}
}

func (w *world) meta(kind object.Kind, name string) object.Meta {
	w.version++
	return object.Meta{Kind: kind, Name: name, UID: types.UID(name), Version: fmt.Sprint(w.version)}
}

// object draws an object of a kind that followers read.
func (w *world) object() object.Object {
	kinds := []func() object.Object{w.claim, w.persistentVolume, w.storageClass, w.csiNode, w.attachment, w.slice, w.resourceClaim, w.deviceClass, w.rule}
	return kinds[w.number("kind", len(kinds))]()
}

func (w *world) claim() object.Object {
	c := &object.PersistentVolumeClaim{Meta: w.meta(object.PersistentVolumeClaims, w.of("claim", "c", "d")),
		Class: w.of("class", "", "s"), VolumeName: w.of("volume", "", "v", "w"), Owner: types.UID(w.of("owner", "", "1", "2"))}
	c.Namespace = "default"
	return c
}

func (w *world) persistentVolume() object.Object {
	v := &object.PersistentVolume{Meta: w.meta(object.PersistentVolumes, w.of("volume", "v", "w", "u")), Class: w.of("class", "", "s"), Bytes: int64(w.number("size", 3))}
	if w.yes("CSI") {
		v.Source = w.source()
	}
	if w.yes("migrated") {
		v.Migrated = &object.MigratedVolume{Source: w.source()}
	}
	if w.number("kept", 3) == 0 {
		v.Claim = &object.ClaimReference{Namespace: "default", Name: w.of("claim", "c", "d")}
	}
	if w.yes("pinned") {
		v.Pin = &object.LabelPin{Key: w.of("label", v1.LabelHostname, "zone"), Values: []string{w.of("value", "1", "2", "3")}}
	}
	return v
}

func (w *world) storageClass() object.Object {
	return &object.StorageClass{Meta: w.meta(object.StorageClasses, "s"), Provisioner: w.of("driver", "x", "y"), MigratedTo: w.of("migrated", "", "y")}
}

func (w *world) csiNode() object.Object {
	c := &object.CSINode{Meta: w.meta(object.CSINodes, w.nodeName())}
	for range w.number("drivers", 3) {
		c.Drivers = append(c.Drivers, object.CSINodeDriver{Name: w.of("driver", "x", "y"), Limited: w.yes("limited"), Limit: int32(w.number("limit", 3))}) // #nosec G115
	}
	return c
}

func (w *world) attachment() object.Object {
	return &object.VolumeAttachment{Meta: w.meta(object.VolumeAttachments, w.of("attachment", "1", "2")),
		Attacher: w.of("driver", "", "x", "y"), Node: w.nodeName(), Volume: w.of("volume", "", "v", "w")}
}

func (w *world) slice() object.Object {
	spec := resourcev1.ResourceSliceSpec{Driver: w.of("driver", "x", "y"), Pool: resourcev1.ResourcePool{Name: w.of("pool", "p", "q")}}
	if node := w.of("node", "a", "a", "b", "", "none"); node != "none" {
		spec.NodeName = &node
	}
	if w.number("counters", 4) == 0 {
		spec.SharedCounters = []resourcev1.CounterSet{{Name: "c"}}
	}
	for _, name := range []string{"d", "e"}[:w.number("devices", 3)] {
		size := int64(w.number("size", 2))
		spec.Devices = append(spec.Devices, resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"size": {IntValue: &size}}})
	}
	s := &object.ResourceSlice{Meta: w.meta(object.ResourceSlices, w.of("slice", "1", "2", "3", "4")), API: &resourcev1.ResourceSlice{Spec: spec}}
	s.API.Name = s.Name
	return s
}

func (w *world) resourceClaim() object.Object {
	c := &object.ResourceClaim{Meta: w.meta(object.ResourceClaims, w.of("claim", "1", "2", "3")), API: &resourcev1.ResourceClaim{}}
	if w.number("allocated", 3) == 0 {
		return c
	}
	a := &resourcev1.AllocationResult{}
	for range w.number("results", 4) {
		r := resourcev1.DeviceRequestAllocationResult{Driver: w.of("driver", "x", "y"), Pool: w.of("pool", "p", "q"), Device: w.of("device", "d", "e")}
		if w.number("admin", 4) == 0 {
			r.AdminAccess = new(true)
		}
		a.Devices.Results = append(a.Devices.Results, r)
	}
	c.API.Status.Allocation = a
	return c
}

func (w *world) deviceClass() object.Object {
	c := &object.DeviceClass{Meta: w.meta(object.DeviceClasses, w.of("class", "1", "2")), API: &resourcev1.DeviceClass{}}
	if w.yes("extended") {
		c.API.Spec.ExtendedResourceName = new(w.of("resource", "example.com/a", "example.com/b"))
	}
	return c
}

func (w *world) rule() object.Object {
	r := &object.DeviceTaintRule{Meta: w.meta(object.DeviceTaintRules, w.of("rule", "1", "2")), Taint: resourcev1.DeviceTaint{Key: w.of("key", "k", "l")}}
	if w.yes("one driver") {
		r.Driver = new(w.of("driver", "x", "y"))
	}
	if w.yes("one device") {
		r.Device = new(w.of("device", "d", "e"))
	}
	return r
}

// change does one thing to the table. Under a checkpoint pods alone may change.
func (w *world) change() {
	op := w.number("change", 16)
	if len(w.marks) > 0 {
		op = w.number("try", 6)
	}
	switch op {
	case 0, 1:
		w.AddPod(w.pod(), w.nodeName())
	case 2:
		w.RemovePod(w.pod().UID)
	case 3:
		w.marks = append(w.marks, w.Checkpoint())
	case 4:
		if last := len(w.marks) - 1; last >= 0 {
			w.Undo(w.marks[last])
			w.marks = w.marks[:last]
		}
	case 5:
		w.Rollback()
		w.marks = nil
	case 6, 7:
		w.SetNode(w.node())
	case 8:
		w.RemoveNode(w.nodeName())
	case 9, 13, 14, 15:
		w.Objects().Set(w.object())
	case 10:
		m := w.object().Head()
		w.Objects().Remove(m.Kind, m.Namespace, m.Name)
	case 11:
		w.assume()
	case 12:
		volumes.Of(w.Table).Track(w.pod())
	}
}

// assume assumes something of an object that is there, or ends what is assumed.
func (w *world) assume() {
	o := w.object()
	shown := w.Objects().Shown(o.Head().Kind, o.Head().Namespace, o.Head().Name)
	if shown == nil || w.yes("restored") {
		w.Objects().Restore(o.Head())
		return
	}
	o.Head().Version = shown.Head().Version
	w.Objects().Assume(o)
}

// breakOff panics in the middle of a change, and rebuilds the table.
func (w *world) breakOff() {
	broken := w.pod()
	broken.UID = "broken"
	broken.Affinity = &match.PodAffinity{Terms: []match.PodTerm{{Key: "no selector"}}}
	func() {
		defer func() { _ = recover() }()
		w.AddPod(broken, w.nodeName())
	}()
	w.Rebuild()
	w.RemovePod("broken") // it would panic again
	w.marks = nil
}

// After any changes each follower keeps what one keeps that was told only of what is there
// now: after placements, removals and their undoing, changes of nodes and objects, rows that
// are used again, and a panic in the middle of a change.
func TestFollowersFollow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{Table: table.New(), T: t}
		for range rapid.IntRange(1, 60).Draw(t, "changes") {
			if w.number("panic", 30) == 0 {
				w.breakOff()
			} else {
				w.change()
			}
			if err := w.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
