package domain

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// countedBy returns what the rows count, by the value of the zone label of their nodes. Rows
// without node or label are left out.
func countedBy(tb *table.Table, on map[table.Row]int64) (byZone map[string]int64, total int64) {
	byZone = map[string]int64{}
	for r, n := range on {
		if node := tb.Node(r); node != nil && n != 0 {
			if zone, has := node.Labels["zone"]; has {
				byZone[zone] += n
				total += n
			}
		}
	}
	maps.DeleteFunc(byZone, func(_ string, n int64) bool { return n == 0 })
	return byZone, total
}

// A column counts what is added to rows in the zones of their nodes, however it is added. After
// a node has moved to another zone Follow says so. Memory of other columns counts nothing.
func TestColumnCountsByZone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb, rooms := table.New(), &Rooms{}
		on := map[table.Row]int64{} // what was added
		node := func(t *rapid.T) {
			n := &object.Node{Name: fmt.Sprint("n", rapid.IntRange(0, 5).Draw(t, "node"))}
			if zone := rapid.SampledFrom([]string{"", "a", "b", "c", "none"}).Draw(t, "zone"); zone != "none" {
				n.Labels = map[string]string{"zone": zone}
			}
			tb.SetNode(n)
		}
		node(t)
		c := &Column{Topology: newTopology(Key{Label: "zone"})}
		row := rapid.Custom(func(t *rapid.T) table.Row { return table.Row(rapid.IntRange(0, tb.Rows()-1).Draw(t, "row")) })
		add := func(rows []table.Row, n int64) {
			for _, r := range rows {
				on[r] += n
			}
		}
		follow := func() {
			moved := c.Follow(tb, rooms)
			byZone := map[string]int64{}
			for d, n := range c.Sums[Unnamed:] {
				if n != 0 {
					byZone[c.Name(Domain(d)+Unnamed)] += n
				}
			}
			if want, total := countedBy(tb, on); !moved && (!maps.Equal(byZone, want) || c.Total() != total) {
				t.Fatalf("counts %v, %d in all, want %v, %d", byZone, c.Total(), want, total)
			}
			if moved {
				c.Clear()
				for r, n := range on { // any order: a sum
					c.Add(r, n)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"node": func(t *rapid.T) { node(t); follow() },
			"add": func(t *rapid.T) {
				follow()
				r, n := row.Draw(t, "at"), rapid.Int64Range(-3, 3).Draw(t, "n")
				c.Add(r, n)
				add([]table.Row{r}, n)
			},
			"add rows": func(t *rapid.T) {
				follow()
				rows, n := rapid.SliceOfN(row, 0, 4).Draw(t, "rows"), rapid.Int64Range(-3, 3).Draw(t, "n")
				c.AddRows(rows, n)
				add(rows, n)
			},
			"add counts": func(t *rapid.T) {
				follow()
				r, pods, n := row.Draw(t, "at"), rapid.Int32Range(0, 3).Draw(t, "pods"), rapid.Int64Range(-3, 3).Draw(t, "n")
				c.AddCounts([]table.RowCount{{Row: r, N: pods}}, n)
				add([]table.Row{r}, n*int64(pods))
			},
			"copy": func(*rapid.T) {
				follow()
				was := c
				c = c.Copy(rooms)
				was.Add(0, 7)
				rooms.Give(was)
			},
			"": func(*rapid.T) { follow() },
		})
		kept := len(c.Sums)
		rooms.Give(c)
		if again := rooms.extend(nil, kept); len(again) != kept {
			t.Fatalf("%d of %d", len(again), kept)
		} else {
			for d, n := range again {
				if n != 0 {
					t.Fatalf("memory that was given back counts %d in domain %d", n, d)
				}
			}
		}
	})
}

// A node that moves to another zone makes the counts wrong.
func TestColumnSeesMoves(t *testing.T) {
	tb := table.New()
	c := &Column{Topology: newTopology(Key{Label: "zone"})}
	set := func(zone string) bool {
		tb.SetNode(&object.Node{Name: "n", Labels: map[string]string{"zone": zone}})
		return c.Follow(tb, &Rooms{})
	}
	set("a")
	c.Clear()
	if set("a") {
		t.Error("a node that stays has moved")
	}
	if !set("b") {
		t.Error("a node in another zone has not moved")
	}
}
