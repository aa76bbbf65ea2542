package table

import (
	"cmp"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// Rebuild counts everything anew that is counted from nodes and placed pods, as
// after a panic in the middle of a change. Open tries are taken back. Whoever
// follows the table has to look at all of it again.
func (t *Table) Rebuild() {
	t.forgetTries()
	t.clearCounts()
	for r := range t.pods {
		t.pods[r], t.summaries[r] = nil, nil
	}
	placed := slices.SortedFunc(maps.Values(t.placed), func(a, b *Placed) int { return cmp.Compare(a.Pod.UID, b.Pod.UID) })
	clear(t.placed)
	t.followAnew()
	for r, n := range t.nodes {
		t.allowedPods[r] = 0
		t.setAllocatable(Row(r), resource.Vector{})
		if n != nil {
			t.live++
			t.allowedPods[r] = n.AllowedPods
			t.setAllocatable(Row(r), n.Allocatable)
		}
	}
	for _, pl := range placed {
		pl.withLabels = nil
		t.put(pl)
	}
	t.placements.add(Placement{Pod: &object.Pod{}})
	for t.placements.first < t.placements.total {
		t.placements.drop()
	}
	for r := range t.nodes {
		t.setHeadroom(Row(r))
		t.touch(Row(r))
		t.nodeChanges.touch(Row(r), t.revision)
		t.release(Row(r))
	}
}

// forgetTries reverts open trials, as far as the table of placed pods goes.
func (t *Table) forgetTries() {
	for _, e := range slices.Backward(t.undo) {
		if e.put {
			delete(t.placed, e.placed.Pod.UID)
		} else {
			t.placed[e.placed.Pod.UID] = e.placed
		}
	}
	t.undo, t.marks, t.idle = nil, 0, nil
}

// clearCounts sets all counts to 0.
func (t *Table) clearCounts() {
	for id := range t.used {
		clear(t.used[id])
	}
	for i := range t.nonZero {
		clear(t.nonZero[i])
	}
	clear(t.podCount)
	t.live = 0
	for _, term := range t.terms.list {
		term.rows.clear()
		term.live = 0
	}
	t.terms.idle = len(t.terms.list)
	t.terms.revision++
	t.podsByLabels.byNamespace = nil
}
