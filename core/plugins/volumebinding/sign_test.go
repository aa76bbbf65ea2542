package volumebinding

import (
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// world is a small cluster in which everything that VolumeBinding reads comes,
// changes and goes.
type world struct {
	*table.Table
	rand   *rand.Rand
	serial int
}

func (w *world) oneIn(n int) bool { return w.rand.IntN(n) == 0 }

func (w *world) name(prefix string, n int) string { return fmt.Sprint(prefix, w.rand.IntN(n)) }

func (w *world) setNode() {
	w.SetNode(&object.Node{Name: w.name("n", 3), Labels: map[string]string{"zone": w.name("z", 2)}})
}

func (w *world) setClass() {
	c := &object.StorageClass{Meta: object.Meta{Kind: object.StorageClasses, Name: w.name("class", 3)}, Provisioner: notSupported, HasBindingMode: !w.oneIn(8), WaitForFirstConsumer: !w.oneIn(6)}
	if w.oneIn(2) {
		c.Provisioner = "csi"
	}
	if w.oneIn(4) {
		c.Topologies = []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{w.name("z", 2)}}}}}
	}
	w.Objects().Set(c)
}

func (w *world) setVolume() {
	v := volume(w.name("v", 8), w.rand.Int64N(3), []string{"", "zone"}[w.rand.IntN(2)], w.name("z", 2))
	v.Class, v.Available, v.Terminating = w.name("class", 3), !w.oneIn(6), w.oneIn(9)
	v.Labels = map[string]string{"disk": w.name("d", 2)}
	if w.oneIn(3) {
		v.Claim = &object.ClaimReference{Namespace: "ns", Name: w.name("c", 8), UID: types.UID([]string{"", "u0", "u1"}[w.rand.IntN(3)])}
	}
	if w.oneIn(4) {
		v.Migrated = &object.MigratedVolume{Plugin: "in-tree", Nodes: volume("", 0, "zone", w.name("z", 2)).Nodes}
	}
	w.Objects().Set(v)
}

func (w *world) setClaim() {
	c := claimOf(w.name("class", 3), "1")
	c.Name, c.UID, c.Bytes, c.Sized = w.name("c", 8), types.UID(w.name("u", 2)), w.rand.Int64N(3), !w.oneIn(4)
	c.Lost, c.Terminating = w.oneIn(25), w.oneIn(25)
	switch w.rand.IntN(4) {
	case 0:
		c.VolumeName, c.BindCompleted = w.name("v", 8), true
	case 1:
		c.SelectedNode = w.name("n", 3)
	}
	if w.oneIn(3) {
		c.Selector = labels.SelectorFromSet(labels.Set{"disk": w.name("d", 2)})
	}
	w.Objects().Set(c)
}

func (w *world) setDriver() {
	w.Objects().Set(&object.CSIDriver{Meta: object.Meta{Kind: object.CSIDrivers, Name: "csi"}, StorageCapacity: !w.oneIn(3)})
}

func (w *world) setCapacity() {
	selector, _ := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: map[string]string{"zone": w.name("z", 2)}})
	w.Objects().Set(&object.CSIStorageCapacity{Meta: object.Meta{Kind: object.CSIStorageCapacities, Namespace: "ns", Name: w.name("room", 3)},
		Class: w.name("class", 3), Known: true, Bytes: w.rand.Int64N(4), Free: w.rand.Int64N(9), Nodes: selector})
}

func (w *world) setCSINode() {
	w.Objects().Set(&object.CSINode{Meta: object.Meta{Kind: object.CSINodes, Name: w.name("n", 3)}, Migrated: []string{"", "in-tree"}[w.rand.IntN(2)]})
}

func (w *world) remove() {
	switch w.rand.IntN(5) {
	case 0:
		w.Objects().Remove(object.PersistentVolumes, "", w.name("v", 8))
	case 1:
		w.Objects().Remove(object.PersistentVolumeClaims, "ns", w.name("c", 8))
	case 2:
		w.Objects().Remove(object.StorageClasses, "", w.name("class", 3))
	case 3:
		w.Objects().Remove(object.CSINodes, "", w.name("n", 3))
	case 4:
		w.RemoveNode(w.name("n", 3))
	}
}

func (w *world) pod() *object.Pod {
	w.serial++
	p := &object.Pod{UID: types.UID(fmt.Sprint(w.serial)), Name: fmt.Sprint("p", w.serial), Namespace: "ns"}
	for range 1 + w.rand.IntN(2) {
		p.Volumes = append(p.Volumes, object.Volume{Claimed: true, Claim: w.name("c", 8)})
	}
	return p
}

// What is kept for a signature holds for every pod that has it, for as long as no
// row is said to have changed, whatever happens to nodes, claims, volumes, classes
// and capacities.
func TestKeptAnswersHold(t *testing.T) {
	shared := 0
	for seed := range uint64(300) {
		w := &world{Table: table.New(), rand: rand.New(rand.NewPCG(seed, 1))}
		pl, err := New(nil, feature.Features{StorageCapacityScoring: true})
		if err != nil {
			t.Fatal(err)
		}
		happen := []func(){w.setNode, w.setClass, w.setVolume, w.setVolume, w.setClaim, w.setClaim, w.setDriver, w.setCapacity, w.setCSINode, w.remove}
		for range 8 {
			for _, f := range happen[:len(happen)-1] {
				f()
			}
		}
		kept := plugintest.Kept{Plugin: pl, Table: w.Table}
		for range 120 {
			happen[w.rand.IntN(len(happen))]()
			if err := w.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			p := w.pod()
			kept.Check(t, p)
			if w.Live() > 0 && w.oneIn(3) {
				node := w.name("n", 3)
				if _, ok := w.Find(node); ok && plugintest.Ask(t, pl, w.Table, p).Blocked[node] == "" && pl.Reserve(w.Table, p, node) == nil {
					kept.Check(t, w.pod())
					if w.oneIn(2) {
						pl.Unreserve(w.Table, p, node)
					}
				}
			}
		}
		shared += kept.Shared
	}
	if shared < 3000 {
		t.Errorf("%d pods shared a signature: the test says little", shared)
	}
}
