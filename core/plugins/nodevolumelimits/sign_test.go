package nodevolumelimits

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/index/volumes"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// world is a cluster whose volumes are few, so that pods share them: by one claim,
// by two claims of one volume, by two volumes of one name, or without a claim.
type world struct {
	*table.Table
	rand   *rand.Rand
	serial int
}

const claims, nodes = 12, 3

func newWorld(seed uint64) *world {
	w := &world{Table: plugintest.Table(), rand: rand.New(rand.NewPCG(seed, 0))}
	for i := range 3 {
		w.setClass(i)
	}
	for i := range nodes {
		w.SetNode(&object.Node{Name: fmt.Sprint("n", i), AllowedPods: 110})
		w.setCSINode(i)
	}
	for i := range claims {
		w.setVolume(i)
		w.setClaim(i)
	}
	return w
}

func (w *world) source() object.VolumeSource {
	return object.VolumeSource{Driver: []string{"csi", "csi", "other", ""}[w.rand.IntN(4)], Handle: fmt.Sprint("h", w.rand.IntN(3*claims))}
}

func (w *world) setVolume(i int) {
	v := &object.PersistentVolume{Meta: object.Meta{Kind: object.PersistentVolumes, Name: fmt.Sprint("v", i)}, Source: w.source()}
	if w.rand.IntN(4) == 0 {
		v.Source, v.Migrated = object.VolumeSource{}, &object.MigratedVolume{Plugin: "in-tree", Source: w.source()}
	}
	w.Objects().Set(v)
}

// setClaim makes a claim that has a volume, or will be given one; some are of a pod
// that is here or yet to come.
func (w *world) setClaim(i int) {
	c := &object.PersistentVolumeClaim{Meta: object.Meta{Kind: object.PersistentVolumeClaims, Namespace: "ns", Name: fmt.Sprint("c", i)},
		Class: fmt.Sprint("class", w.rand.IntN(3)), VolumeName: fmt.Sprint("v", i), BindCompleted: true}
	switch w.rand.IntN(10) {
	case 0:
		c.VolumeName = fmt.Sprint("v", w.rand.IntN(claims))
	case 1, 2:
		c.VolumeName = ""
	}
	if w.rand.IntN(4) == 0 {
		c.Owner = types.UID(fmt.Sprint(w.serial + 1 - w.rand.IntN(4)))
	}
	w.Objects().Set(c)
}

func (w *world) setClass(i int) {
	c := &object.StorageClass{Meta: object.Meta{Kind: object.StorageClasses, Name: fmt.Sprint("class", i)}, Provisioner: "csi"}
	if w.rand.IntN(3) == 0 {
		c.Provisioner, c.MigratedTo = "in-tree", "other"
	}
	w.Objects().Set(c)
}

func (w *world) setCSINode(i int) {
	c := &object.CSINode{Meta: object.Meta{Kind: object.CSINodes, Name: fmt.Sprint("n", i)}}
	for _, driver := range []string{"csi", "other"} {
		if w.rand.IntN(5) > 0 {
			c.Drivers = append(c.Drivers, object.CSINodeDriver{Name: driver, Limited: w.rand.IntN(5) > 0, Limit: int32(w.rand.IntN(6))})
		}
	}
	w.Objects().Set(c)
}

func (w *world) setAttachment() {
	w.Objects().Set(&object.VolumeAttachment{Meta: object.Meta{Kind: object.VolumeAttachments, Name: fmt.Sprint("a", w.rand.IntN(4))},
		Attacher: "csi", Node: fmt.Sprint("n", w.rand.IntN(nodes)), Volume: fmt.Sprint("v", w.rand.IntN(claims))})
}

func (w *world) remove() {
	switch w.rand.IntN(6) {
	case 0:
		w.Objects().Remove(object.PersistentVolumes, "", fmt.Sprint("v", w.rand.IntN(claims)))
	case 1:
		w.Objects().Remove(object.PersistentVolumeClaims, "ns", fmt.Sprint("c", w.rand.IntN(claims)))
	case 2:
		w.Objects().Remove(object.StorageClasses, "", fmt.Sprint("class", w.rand.IntN(3)))
	case 3:
		w.Objects().Remove(object.CSINodes, "", fmt.Sprint("n", w.rand.IntN(nodes)))
	case 4:
		w.Objects().Remove(object.VolumeAttachments, "", fmt.Sprint("a", w.rand.IntN(4)))
	case 5:
		w.RemoveNode(fmt.Sprint("n", w.rand.IntN(nodes)))
	}
}

func (w *world) pod() *object.Pod {
	w.serial++
	p := &object.Pod{UID: types.UID(fmt.Sprint(w.serial)), Name: fmt.Sprint("p", w.serial), Namespace: "ns"}
	for range 1 + w.rand.IntN(2) {
		v := object.Volume{Claimed: true, Claim: fmt.Sprint("c", w.rand.IntN(claims)), Ephemeral: w.rand.IntN(6) == 0}
		if w.rand.IntN(8) == 0 {
			v = object.Volume{Migrated: &object.MigratedVolume{Plugin: "in-tree", Source: w.source()}}
		}
		p.Volumes = append(p.Volumes, v)
	}
	return p
}

func (w *world) happen() {
	switch w.rand.IntN(20) {
	case 0:
		w.setVolume(w.rand.IntN(claims))
	case 1:
		w.setClaim(w.rand.IntN(claims))
	case 2:
		w.setClass(w.rand.IntN(3))
	case 3:
		w.setCSINode(w.rand.IntN(nodes))
	case 4:
		w.setAttachment()
	case 5:
		w.SetNode(&object.Node{Name: fmt.Sprint("n", w.rand.IntN(nodes)), AllowedPods: 110})
	case 6:
		w.Objects().Set(&object.CSIDriver{Meta: object.Meta{Kind: object.CSIDrivers, Name: "csi"}, PreventIfMissing: w.rand.IntN(2) == 0})
	case 7:
		w.remove()
	case 8, 9, 10, 11, 12:
		w.AddPod(w.pod(), fmt.Sprint("n", w.rand.IntN(nodes)))
	default:
		w.RemovePod(types.UID(fmt.Sprint(1 + w.rand.IntN(w.serial+1))))
	}
}

// class is what is kept of pods with one signature: verdicts that are asked for anew
// on rows that changed.
type class struct {
	pod      *object.Pod
	state    any
	verdicts []framework.Verdict
	revision uint64
}

func (c *class) refresh(w *world, pl *framework.Plugin) {
	for _, r := range w.AppendChanged(nil, c.revision, w.Rows()) {
		for len(c.verdicts) < w.Rows() {
			c.verdicts = append(c.verdicts, framework.Fits)
		}
		pl.Filter(&framework.Input{Table: w.Table, Pod: c.pod, State: c.state}, w.All()[r:r+1], c.verdicts[r:r+1])
	}
	c.revision = w.Revision()
}

// collect finds the volumes of a pod as kube-scheduler does; on a node without a CSINode no
// in-tree volume is a driver's.
func (w *world) collect(p *object.Pod, migrated bool, into map[object.VolumeSource]bool) {
	for _, v := range p.Volumes {
		var s object.VolumeSource
		if v.Migrated != nil && migrated {
			s = v.Migrated.Source
		}
		c := table.Lookup[*object.PersistentVolumeClaim](w.Table, object.PersistentVolumeClaims, p.Namespace, v.Claim)
		if v.Claimed && c != nil && (!v.Ephemeral || c.Owner == p.UID) {
			pv := table.Lookup[*object.PersistentVolume](w.Table, object.PersistentVolumes, "", c.VolumeName)
			class := table.Lookup[*object.StorageClass](w.Table, object.StorageClasses, "", c.Class)
			switch {
			case pv != nil && pv.Migrated != nil && migrated:
				s = pv.Migrated.Source
			case pv != nil:
				s = pv.Source
			case class != nil && class.MigratedTo == "":
				s = object.VolumeSource{Driver: class.Provisioner, Handle: "of " + c.Name}
			case class != nil && migrated:
				s = object.VolumeSource{Driver: class.MigratedTo, Handle: "of " + c.Name}
			}
		}
		if s.Attachable() {
			into[s] = true
		}
	}
}

func count(volumes map[object.VolumeSource]bool, driver string) (n int) {
	for v := range volumes {
		if v.Driver == driver {
			n++
		}
	}
	return n
}

// naive is the verdict on a node by the names of all volumes there.
func (w *world) naive(p *object.Pod, r table.Row, insists bool) framework.Verdict {
	for _, v := range p.Volumes {
		if v.Claimed && w.Objects().Named(object.PersistentVolumeClaims, p.Namespace, v.Claim) == nil {
			return claimMissing
		}
	}
	c := table.Lookup[*object.CSINode](w.Table, object.CSINodes, "", w.Name(r))
	wanted, there := map[object.VolumeSource]bool{}, map[object.VolumeSource]bool{}
	w.collect(p, c != nil, wanted)
	for v := range wanted {
		d := table.Lookup[*object.CSIDriver](w.Table, object.CSIDrivers, "", v.Driver)
		if insists && d != nil && d.PreventIfMissing && (c == nil || !c.Has(v.Driver)) {
			return driverMissing
		}
	}
	if c == nil {
		return framework.Fits
	}
	for _, pl := range w.Pods(r) {
		w.collect(pl.Pod, true, there)
	}
	for v := range there {
		delete(wanted, v)
	}
	for o := range w.Objects().ByIndex(object.VolumeAttachments, w.Name(r)) {
		a := o.(*object.VolumeAttachment)
		if pv := table.Lookup[*object.PersistentVolume](w.Table, object.PersistentVolumes, "", a.Volume); pv != nil && pv.Source.Driver != "" {
			there[object.VolumeSource{Driver: a.Attacher, Handle: pv.Source.Handle}] = true
		}
	}
	for _, d := range c.Drivers {
		if n := count(wanted, d.Name); d.Limited && n > 0 && count(there, d.Name)+n > int(d.Limit) {
			return full
		}
	}
	return framework.Fits
}

// Of two pods with one signature, what is kept of the first gives the second the
// answers that the names of its own volumes give, also while a nominated pod is
// tried on a node, whatever happens to claims, volumes, attachments and nodes.
func TestEqualSignaturesHaveEqualAnswers(t *testing.T) {
	shared := 0
	for seed := range uint64(400) {
		w, classes := newWorld(seed), map[string]*class{}
		insists := seed%4 == 0
		pl := New(feature.Features{VolumeLimitScaling: insists})
		for range 100 {
			w.happen()
			p, nominated := w.pod(), w.pod()
			volumes.Of(w.Table).Track(nominated)
			if err := w.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			key := string(pl.Sign(nil, w.Table, p))
			c := classes[key]
			if c == nil {
				c = &class{pod: p, state: pl.PreFilter(w.Table, p).State}
				classes[key] = c
			} else {
				shared++
			}
			compare := func(when string) {
				c.refresh(w, &pl)
				for _, r := range w.All() {
					if want := w.naive(p, r, insists); w.Node(r) != nil && c.verdicts[r] != want {
						t.Fatalf("seed %d, %s: pod %s %v, as %s %v, on %s: %v, want %v", seed, when, p.Name, p.Volumes, c.pod.Name, c.pod.Volumes, w.Name(r), c.verdicts[r], want)
					}
				}
			}
			compare("as it is")
			mark := w.Checkpoint()
			w.AddPod(nominated, fmt.Sprint("n", w.rand.IntN(nodes)))
			compare("with a nominated pod")
			w.Undo(mark)
		}
	}
	if shared < 1000 {
		t.Errorf("%d pods shared a signature: the test says little", shared)
	}
}
