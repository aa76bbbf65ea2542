package table

import (
	"fmt"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
)

// zoneCounter counts the pods in each zone.
type zoneCounter struct {
	zones []string // by row, "" without a node
	pods  map[string]int
	all   int // how often all pods were counted
}

func (c *zoneCounter) add(r Row, n int) {
	if zone := c.zones[r]; zone != "" {
		if c.pods[zone] += n; c.pods[zone] == 0 {
			delete(c.pods, zone)
		}
	}
}

func (c *zoneCounter) CountPlacement(_ *Table, p Placement) {
	if p.Came {
		c.add(p.Row, 1)
	} else {
		c.add(p.Row, -1)
	}
}

func (c *zoneCounter) CountRow(t *Table, r Row, sign int) { c.add(r, sign*len(t.Pods(r))) }

func (c *zoneCounter) SetNode(t *Table, r Row) {
	if c.zones[r] = ""; t.Node(r) != nil {
		c.zones[r] = t.Node(r).Labels["zone"]
	}
}

func (c *zoneCounter) CountAll(t *Table) {
	c.pods = map[string]int{}
	c.all++
	for r := range c.zones {
		c.CountRow(t, Row(r), 1)
	}
}

func (c *zoneCounter) follow(t *Table, f *Follower) {
	for len(c.zones) < t.Rows() {
		c.zones = append(c.zones, "")
	}
	f.Follow(t, c)
}

func podsByZone(t *Table) map[string]int {
	pods := map[string]int{}
	for r := range Row(t.Rows()) {
		if n := t.Node(r); n != nil && len(t.Pods(r)) > 0 {
			pods[n.Labels["zone"]] += len(t.Pods(r))
		}
	}
	return pods
}

// However often a follower looks, its counter counts what is there, and counts
// all pods anew only once.
func TestFollowerCountsWhatIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb, kept := New(), zoneCounter{}
		var follower Follower
		one := func(of, label string) string { return fmt.Sprint(of, rapid.IntRange(0, 3).Draw(t, label)) }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "behind") {
					return
				}
				kept.follow(tb, &follower)
				if want := podsByZone(tb); !maps.Equal(kept.pods, want) || kept.all != 1 || !follower.Current(tb) {
					t.Fatalf("counted %v, want %v; all pods counted %d times", kept.pods, want, kept.all)
				}
			},
			"set node": func(*rapid.T) {
				tb.SetNode(&object.Node{Name: one("n", "node"), Labels: map[string]string{"zone": one("z", "zone")}})
			},
			"remove node": func(*rapid.T) { tb.RemoveNode(one("n", "node")) },
			"place":       func(*rapid.T) { tb.AddPod(&object.Pod{UID: types.UID(one("p", "pod"))}, one("n", "node")) },
			"remove":      func(*rapid.T) { tb.RemovePod(types.UID(one("p", "pod"))) },
		})
	})
}
