package volumezone

import (
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// What is kept for a signature holds for every pod that has it, for as long as no
// row is said to have changed, whatever happens to claims, volumes and classes.
func TestKeptAnswersHold(t *testing.T) {
	shared := 0
	for seed := range uint64(100) {
		random, tb := rand.New(rand.NewPCG(seed, 2)), table.New()
		name := func(prefix string, n int) string { return fmt.Sprint(prefix, random.IntN(n)) }
		happen := []func(){
			func() {
				tb.SetNode(&object.Node{Name: name("n", 3), Labels: map[string]string{v1.LabelTopologyZone: name("z", 3)}})
			},
			func() {
				tb.Objects().Set(&object.StorageClass{Meta: object.Meta{Kind: object.StorageClasses, Name: name("class", 2)}, HasBindingMode: random.IntN(4) > 0, WaitForFirstConsumer: random.IntN(4) > 0})
			},
			func() {
				zones := name("z", 3) + []string{"", "__z0", "__"}[random.IntN(3)]
				tb.Objects().Set(&object.PersistentVolume{Meta: object.Meta{Kind: object.PersistentVolumes, Name: name("v", 6)}, Labels: map[string]string{v1.LabelTopologyZone: zones}})
			},
			func() {
				tb.Objects().Set(&object.PersistentVolumeClaim{Meta: object.Meta{Kind: object.PersistentVolumeClaims, Namespace: "ns", Name: name("c", 6)},
					Class: name("class", 2), VolumeName: []string{name("v", 6), ""}[random.IntN(2)]})
			},
			func() { tb.Objects().Remove(object.PersistentVolumes, "", name("v", 6)) },
			func() { tb.Objects().Remove(object.PersistentVolumeClaims, "ns", name("c", 6)) },
		}
		kept := plugintest.Kept{Plugin: New(), Table: tb}
		for range 200 {
			happen[random.IntN(len(happen))]()
			kept.Check(t, &object.Pod{Name: "p", Namespace: "ns", Volumes: []object.Volume{{Claimed: true, Claim: name("c", 6)}}})
		}
		shared += kept.Shared
	}
	if shared < 2000 {
		t.Errorf("%d pods shared a signature: the test says little", shared)
	}
}
