package dynamicresources

import (
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// What is kept for claims that ask for the same holds for every pod that has such
// claims, for as long as no row is said to have changed, whatever happens to nodes,
// slices, claims and what is reserved.
func TestKeptAnswersHold(t *testing.T) {
	shared := 0
	for seed := range uint64(40) {
		random, tb, pl := rand.New(rand.NewPCG(seed, 3)), world(), newPlugin(t)
		node := func() string { return []string{"a", "b", "c"}[random.IntN(3)] }
		var pods []*object.Pod
		pending := func() *object.Pod {
			p := claim(tb, fmt.Sprint("c", len(pods)), 1+random.Int64N(2))
			if random.IntN(2) == 0 { // one of two is enough
				c := tb.Objects().Named(object.ResourceClaims, "ns", p.Name).(*object.ResourceClaim)
				api, own := *c.API, *c
				api.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", FirstAvailable: []resourcev1.DeviceSubRequest{
					{Name: "two", DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2},
					{Name: "one", DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}}
				own.API, own.Ask = &api, "either"
				tb.Objects().Set(&own)
			}
			pods = append(pods, p)
			return p
		}
		happen := []func(){
			func() {
				tb.SetNode(&object.Node{Name: node(), Labels: map[string]string{v1.LabelTopologyZone: node()}})
			},
			func() { tb.RemoveNode(node()) },
			func() { setSlice(tb, node(), int64(1+random.IntN(2)), []string{"d0", "d1", "d2"}[:random.IntN(4)]...) },
			func() { tb.Objects().Remove(object.ResourceSlices, "", "of-"+node()) },
			func() {
				p, n := pending(), node()
				if _, ok := tb.Find(n); ok && pl.Reserve(tb, p, n) == nil && random.IntN(3) == 0 {
					pl.Unreserve(tb, p, n)
				}
			},
			func() {
				if len(pods) > 0 {
					tb.Objects().Remove(object.ResourceClaims, "ns", pods[random.IntN(len(pods))].Name)
				}
			},
			func() { tb.AddPod(&object.Pod{UID: types.UID(fmt.Sprint("other", random.IntN(5)))}, node()) },
		}
		kept := plugintest.Kept{Plugin: pl, Table: tb}
		for range 150 {
			happen[random.IntN(len(happen))]()
			fresh := newPlugin(t)
			kept.Fresh = &fresh
			p := pending()
			if random.IntN(2) == 0 { // a pod of another class, with such claims
				pl.PreFilter(tb, p)
				pl.PreScore(tb, p)
			}
			kept.Check(t, p)
		}
		shared += kept.Shared
	}
	if shared < 1000 {
		t.Errorf("%d pods shared a signature: the test says little", shared)
	}
}
