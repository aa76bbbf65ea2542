package domain

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/index/nodelabels"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// place is where a node is by one key, as its labels say.
type place struct {
	missing, own bool
	value        string
}

func placeOf(tb *table.Table, l *Layout, r table.Row, i int) place {
	key := l.Topologies[i].Key
	value, has := tb.Node(r).Labels[key.Label]
	if !has {
		return place{missing: true}
	}
	if key.PerNode {
		return place{own: i == l.UniquePerNode, value: fmt.Sprint(r)}
	}
	same := 0
	for _, other := range tb.All() {
		if n := tb.Node(other); n != nil {
			if v, has := n.Labels[key.Label]; has && v == value {
				same++
			}
		}
	}
	return place{own: i == l.UniquePerNode && same == 1, value: value}
}

// compare holds a layout against the labels of nodes: rows are in one location where
// these say the same, but for domains of their own, whose number the row has.
func compare(t *rapid.T, tb *table.Table, l *Layout) {
	l.Follow(tb)
	byPlaces, places := map[string]int32{}, map[int32]string{}
	domains := map[string]Domain{}
	for _, r := range tb.All() {
		at := l.Locations()[r]
		if (at == NoNode) != (tb.Node(r) == nil) {
			t.Fatalf("row %d is at %d, with node %v", r, at, tb.Node(r))
		}
		if at == NoNode {
			continue
		}
		all := ""
		for i, p := range l.Topologies {
			want, got, of := placeOf(tb, l, r, i), l.Domains(at)[i], p.Of()[r]
			if (got == Missing) != want.missing || (of == Missing) != want.missing || (got == Own) != want.own || want.own && l.Owns()[r] != of {
				t.Fatalf("row %d by %v is in %d, of its own %d, want %+v", r, p.Key, got, of, want)
			}
			if got != Own && got != of {
				t.Fatalf("row %d by %v is in %d, its location in %d", r, p.Key, of, got)
			}
			named := fmt.Sprint(i, want)
			if known, ok := domains[named]; ok && known != of || !want.missing && !p.PerNode && p.Name(of) != want.value || int(of) >= p.Len() {
				t.Fatalf("row %d by %v is in %d of %d with the name %q, want %+v", r, p.Key, of, p.Len(), p.Name(of), want)
			}
			if domains[named] = of; want.own {
				want.value = ""
			}
			all += fmt.Sprintf("%+v;", want)
		}
		if known, ok := byPlaces[all]; ok && known != at {
			t.Fatalf("rows at %s are in locations %d and %d", all, known, at)
		}
		if known, ok := places[at]; ok && known != all {
			t.Fatalf("location %d is at %s and at %s", at, known, all)
		}
		byPlaces[all], places[at] = at, all
	}
	if l.Held() != len(places) {
		t.Fatalf("%d locations are held, %d have rows", l.Held(), len(places))
	}
}

// Layouts follow the labels of nodes, whenever they are looked at.
func TestLayoutsFollowTheTable(t *testing.T) {
	keys := [][]Key{
		{{Label: "zone"}}, {{Label: v1.LabelHostname}, {Label: "zone"}}, {{Label: "zone"}, {Label: v1.LabelHostname, PerNode: true}},
		{{Label: "rack"}, {Label: "zone"}, {Label: v1.LabelHostname}}, {},
	}
	rapid.Check(t, func(t *rapid.T) {
		tb, shared := table.New(), Layouts{}
		var kept []*Layout
		revision := nodelabels.Of(tb).UniqueRevision()
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if revision != nodelabels.Of(tb).UniqueRevision() {
					kept, revision = nil, nodelabels.Of(tb).UniqueRevision()
				}
				for _, l := range kept {
					if rapid.Bool().Draw(t, "looked at") {
						compare(t, tb, l)
					}
				}
			},
			"ask": func(t *rapid.T) {
				shared.Prepare(tb)
				of := rapid.SampledFrom(keys).Draw(t, "keys")
				l := shared.Layout(append([]Key(nil), of...), rapid.Bool().Draw(t, "own"))
				if compare(t, tb, l); revision == nodelabels.Of(tb).UniqueRevision() {
					kept = append(kept, l)
				}
			},
			"set node": func(t *rapid.T) {
				name := fmt.Sprint("n", rapid.IntRange(0, 7).Draw(t, "node"))
				n := &object.Node{Name: name, Labels: map[string]string{}}
				for key, values := range map[string][]string{v1.LabelHostname: {name, name, name, "shared"}, "zone": {"a", "b", ""}, "rack": {name, "r"}} {
					if rapid.IntRange(0, 5).Draw(t, "has "+key) > 0 {
						n.Labels[key] = rapid.SampledFrom(values).Draw(t, key)
					}
				}
				tb.SetNode(n)
			},
			"remove node": func(t *rapid.T) { tb.RemoveNode(fmt.Sprint("n", rapid.IntRange(0, 7).Draw(t, "node"))) },
			"place": func(t *rapid.T) {
				tb.AddPod(&object.Pod{UID: "p"}, fmt.Sprint("n", rapid.IntRange(0, 9).Draw(t, "node")))
			},
		})
	})
}

// Two keys are one topology only if they are the same, and topologies that are too many
// are dropped.
func TestTopologiesAreBounded(t *testing.T) {
	tb, shared := table.New(), Layouts{}
	first := shared.Prepare(tb)
	host := shared.Topology(Key{Label: v1.LabelHostname})
	if host == shared.Topology(Key{Label: v1.LabelHostname, PerNode: true}) || host != shared.Topology(Key{Label: v1.LabelHostname}) {
		t.Error("topologies are mixed up")
	}
	for i := range 10 * topologiesKept {
		shared.Prepare(tb)
		shared.Layout([]Key{{Label: fmt.Sprint("key-", i)}}, false)
	}
	if n, m := len(shared.topologies), len(shared.layouts); n > topologiesKept+1 || m > layoutsKept+1 {
		t.Errorf("%d topologies and %d layouts are kept", n, m)
	}
	if shared.Prepare(tb) == first {
		t.Error("topologies were dropped, and the generation stays")
	}
}
