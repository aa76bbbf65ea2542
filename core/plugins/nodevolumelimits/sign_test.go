package nodevolumelimits

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/plugins/plugintest"
	"github.com/berth-scheduler/berth/core/table"
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
	w.SetObject(&object.StorageClass{Meta: object.Meta{Kind: object.StorageClasses, Name: "class"}, Provisioner: "csi"})
	for i := range nodes {
		name := fmt.Sprint("n", i)
		w.SetNode(&object.Node{Name: name, AllowedPods: 110})
		w.SetObject(&object.CSINode{Meta: object.Meta{Kind: object.CSINodes, Name: name}, Drivers: []object.CSINodeDriver{
			{Name: "csi", Limited: true, Limit: int32(w.rand.IntN(5))}, {Name: "other", Limited: true, Limit: int32(w.rand.IntN(4))}}})
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
	w.SetObject(v)
}

func (w *world) setClaim(i int) {
	c := &object.PersistentVolumeClaim{Meta: object.Meta{Kind: object.PersistentVolumeClaims, Namespace: "ns", Name: fmt.Sprint("c", i)},
		Class: "class", VolumeName: fmt.Sprint("v", i), BindCompleted: true}
	switch w.rand.IntN(10) {
	case 0:
		c.VolumeName = fmt.Sprint("v", w.rand.IntN(claims))
	case 1:
		c.VolumeName = ""
	}
	w.SetObject(c)
}

func (w *world) pod() *object.Pod {
	w.serial++
	p := &object.Pod{UID: types.UID(fmt.Sprint(w.serial)), Name: fmt.Sprint("p", w.serial), Namespace: "ns"}
	for range 1 + w.rand.IntN(2) {
		v := object.Volume{Claimed: true, Claim: fmt.Sprint("c", w.rand.IntN(claims))}
		if w.rand.IntN(8) == 0 {
			v = object.Volume{Migrated: &object.MigratedVolume{Plugin: "in-tree", Source: w.source()}}
		}
		p.Volumes = append(p.Volumes, v)
	}
	return p
}

func (w *world) happen() {
	switch w.rand.IntN(12) {
	case 0:
		w.setVolume(w.rand.IntN(claims))
	case 1:
		w.setClaim(w.rand.IntN(claims))
	case 2, 3, 4:
		w.Place(w.pod(), fmt.Sprint("n", w.rand.IntN(nodes)))
	default:
		w.Remove(types.UID(fmt.Sprint(1 + w.rand.IntN(w.serial+1))))
	}
}

// verdicts of the filter on all rows, with the state.
func (w *world) verdicts(p *object.Pod, state any) []framework.Verdict {
	out := make([]framework.Verdict, w.Rows())
	filter(&framework.Input{Table: w.Table, Pod: p, State: state}, w.All(), out)
	return out
}

// Of two pods with one signature the state prepared for the first, some time ago,
// gives the second the answers that the names of its own volumes give, also while a
// nominated pod is tried on a node.
func TestEqualSignaturesHaveEqualAnswers(t *testing.T) {
	shared := 0
	for seed := range uint64(300) {
		w, known := newWorld(seed), map[string]*object.Pod{}
		states, pl := map[string]any{}, New(feature.Features{})
		for range 100 {
			w.happen()
			p, nominated := w.pod(), w.pod()
			w.Track(nominated)
			key := string(pl.Sign(nil, w.Table, p))
			if states[key] == nil {
				states[key], known[key] = pl.PreFilter(w.Table, p).State, p
			}
			exact := &podVolumes{volumes: map[object.VolumeSource]bool{}}
			collect(w.Table, p, true, exact.volumes)
			for v := range exact.volumes { // any order: each driver is asked for itself
				if !slices.ContainsFunc(exact.drivers, func(d demand) bool { return d.driver == v.Driver }) {
					exact.drivers = append(exact.drivers, demand{v.Driver, count(exact.volumes, v.Driver)})
				}
			}
			compare := func(when string) {
				got, want := w.verdicts(known[key], states[key]), w.verdicts(p, exact)
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, %s: pod %s %v, by the state of %s: %v, want %v", seed, when, p.Name, p.Volumes, known[key].Name, got, want)
				}
			}
			compare("as it is")
			mark := w.Checkpoint()
			w.Place(nominated, fmt.Sprint("n", w.rand.IntN(nodes)))
			compare("with a nominated pod")
			w.Undo(mark)
			if known[key] != p {
				shared++
			}
		}
	}
	if shared < 1000 {
		t.Errorf("%d pods shared a signature: the test says little", shared)
	}
}
