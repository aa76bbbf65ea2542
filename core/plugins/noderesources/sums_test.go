package noderesources

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// The pod fits where there is no shortfall, and a pod that leaves frees what it is
// said to.
func TestSumsAreWhatTheFilterCompares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := func(name string, low int64) int64 { return rapid.Int64Range(low, 6).Draw(t, name) }
		vector := func(low int64) resource.Vector {
			v := resource.Vector{MilliCPU: amount("cpu", low), Memory: amount("memory", low), EphemeralStorage: amount("storage", low)}
			if n := amount("gpus", low); n > 0 {
				v.Scalars = []resource.Scalar{{Name: gpu, Value: n}}
			}
			return v
		}
		tb := table.New()
		row := tb.SetNode(&object.Node{Name: "n", Allocatable: vector(1), AllowedPods: amount("pods", 0)})
		var there []*object.Pod
		for i := range rapid.IntRange(0, 4).Draw(t, "placed") {
			p := &object.Pod{UID: types.UID(fmt.Sprint(i)), Priority: rapid.Int32Range(0, 2).Draw(t, "priority"), Demand: resource.Demand{Usage: vector(0)}}
			there = append(there, p)
			tb.AddPod(p, "n")
		}
		pl, p := plugin(t, nil), &object.Pod{UID: "p", Demand: resource.Demand{Requests: vector(0)}}
		in := &framework.Input{Table: tb, Pod: p, Rules: pl.PreFilter(tb, p).Rules}
		for i := 0; ; i++ {
			lack, fits := lacking(in, row), true
			for _, n := range lack {
				fits = fits && n <= 0
			}
			var verdict [1]framework.Verdict
			pl.Filter(in, []table.Row{row}, verdict[:])
			if fits != (verdict[0] == framework.Fits) {
				t.Fatalf("lacks %v, verdict %b", lack, verdict[0])
			}
			below := rapid.Int32Range(0, 3).Draw(t, "below")
			came := &object.Pod{UID: "came", Demand: resource.Demand{Usage: vector(0)}}
			plugintest.CheckExchanged(t, &pl, in, row, below)
			plugintest.CheckExchanged(t, &pl, in, row, below, came)
			if i == len(there) {
				return
			}
			gives := usedBy(in, there[i])
			tb.RemovePod(there[i].UID)
			for d, now := range lacking(in, row) {
				if now != lack[d]-gives[d] {
					t.Fatalf("lacked %v, a pod that gives %v went, lacks %d of the %d-th", lack, gives, now, d)
				}
			}
		}
	})
}

// lacking returns how much the row lacks of each sum.
func lacking(in *framework.Input, row table.Row) (lack []int64) {
	for _, s := range in.Sums {
		lack = append(lack, s.Lacking(in.Table, row))
	}
	return lack
}

// usedBy returns how much the pod uses of each sum.
func usedBy(in *framework.Input, p *object.Pod) (used []int64) {
	for _, s := range in.Sums {
		used = append(used, s.UsedBy(p))
	}
	return used
}
