package engine

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// Counts are those of a map, with the lowest row of each cause, whether causes are few or many.
func TestCauseCountsAreThoseOfAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, first := map[ranking.Cause]int{}, map[ranking.Cause]table.Row{}
		var counts causeCounts
		kinds := rapid.SampledFrom([]int{2, fewCounts, 3 * fewCounts}).Draw(t, "kinds")
		for range rapid.IntRange(0, 200).Draw(t, "changes") {
			c := ranking.Cause{Filter: int16(rapid.IntRange(1, 3).Draw(t, "filter")), Verdict: uint64(rapid.IntRange(1, kinds).Draw(t, "verdict"))}
			n, r := rapid.IntRange(-1, 2).Draw(t, "nodes"), table.Row(rapid.IntRange(0, 99).Draw(t, "row"))
			counts.add(c, n, r)
			if was, known := first[c]; !known || r < was {
				first[c] = r
			}
			nodes[c] += n
		}
		listed := counts.sorted()
		for i, k := range listed {
			if k.nodes != nodes[k.Cause] || k.first != first[k.Cause] {
				t.Fatalf("%+v: want %d nodes, the first %d", k, nodes[k.Cause], first[k.Cause])
			}
			if i > 0 && (k.Filter < listed[i-1].Filter || k.Filter == listed[i-1].Filter && k.Verdict <= listed[i-1].Verdict) {
				t.Fatalf("%+v comes after %+v", k, listed[i-1])
			}
		}
		for c, n := range nodes { // any order: each by itself
			if n != 0 {
				delete(nodes, c)
				listed = listed[1:]
			}
		}
		if len(listed) != 0 {
			t.Fatalf("listed, though there are none: %v", listed)
		}
	})
}
