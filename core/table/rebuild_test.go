package table

import (
	"testing"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// counter reads the journal of pod changes, and counts pods.
type counter struct {
	podChanges uint64
	pods       int
}

func (c *counter) follow(t *Table) {
	if !t.PodChangesAfter(c.podChanges, func(p PodChange) {
		if c.pods--; p.Came {
			c.pods += 2
		}
	}) {
		c.pods = t.PlacedPods()
	}
	c.podChanges = t.PodChangeCount()
}

// However far a change came before it panicked: after a rebuild all is counted
// right, and who follows the table counts anew.
func TestRebuild(t *testing.T) {
	broken := pod("broken", 5)
	broken.Affinity = &match.PodAffinity{Terms: []match.PodTerm{{Key: "no selector"}}}
	for name, damage := range map[string]func(*Table){
		"a pod that panics while it is placed":   func(t *Table) { t.AddPod(broken, "a") },
		"under a checkpoint":                     func(t *Table) { t.Checkpoint(); t.RemovePod("1"); t.AddPod(broken, "a") },
		"a try on a row that is empty":           func(t *Table) { t.Checkpoint(); t.AddPod(pod("try", 5), "b") },
		"half taken off":                         func(t *Table) { t.pods[0] = t.pods[0][:1]; t.columns.charge(t.placed["1"], -1, nil) },
		"a node that is there, and its room not": func(t *Table) { t.nodes[1] = nil },
		"a row that nobody gave back":            func(t *Table) { t.row("nobody") },
		"nothing":                                func(*Table) {},
	} {
		t.Run(name, func(t *testing.T) {
			tb := New()
			for _, node := range []string{"a", "b"} {
				n := &object.Node{Name: node, AllowedPods: 110, Allocatable: resource.Vector{MilliCPU: 1000}, Labels: map[string]string{"zone": node}}
				tb.SetNode(n)
			}
			tb.AddPod(pod("1", 100), "a")
			tb.AddPod(pod("2", 20), "a")
			tb.AddPod(pod("3", 3), "unknown")
			c := &counter{}
			c.follow(tb)
			func() {
				defer func() { _ = recover() }()
				damage(tb)
			}()
			tb.Rebuild()
			tb.RemovePod("broken") // it would panic again
			if err := tb.Check(); err != nil {
				t.Error(err)
			}
			if tb.Pod("1") == nil || tb.Trying() {
				t.Errorf("pod 1 is placed %v, a try is open %v", tb.Pod("1"), tb.Trying())
			}
			if c.follow(tb); c.pods != tb.PlacedPods() {
				t.Errorf("counted %d pods of %d", c.pods, tb.PlacedPods())
			}
		})
	}
}
