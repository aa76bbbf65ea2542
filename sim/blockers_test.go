package sim_test

import (
	"reflect"
	"testing"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/sim/generate"
)

// What is said of one node alone is what is said of it among all: for the pods of
// generated clusters, those that PreFilter rejects among them.
func TestBlockersOfOneNode(t *testing.T) {
	rejected := 0
	for _, mix := range generate.Mixes() {
		for seed := range uint64(3) {
			_, files := generated(t, mix, seed)
			c, err := files.Load()
			if err != nil {
				continue
			}
			for _, api := range c.Set.Pods {
				if api.Spec.NodeName != "" {
					continue
				}
				p := decode.Pod(api)
				d := c.Machine.Assess(p)
				if d.PreFilter != nil {
					rejected++
				}
				for i := range d.Nodes {
					row, ok := c.Machine.Table().Find(d.Nodes[i].Name)
					if !ok {
						t.Fatalf("node %s is not there", d.Nodes[i].Name)
					}
					got := c.Machine.Blockers(p, row)
					if len(got)+len(d.Nodes[i].Blockers) > 0 && !reflect.DeepEqual(got, d.Nodes[i].Blockers) {
						t.Fatalf("%s %d: pod %s on %s: %v, want %v", mix, seed, p.Key(), d.Nodes[i].Name, got, d.Nodes[i].Blockers)
					}
				}
			}
		}
	}
	if rejected == 0 {
		t.Error("no pod was rejected as a whole")
	}
}
