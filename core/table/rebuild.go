package table

import (
	"cmp"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// Rebuild computes all that is derived from nodes and placed pods anew, as after a panic in the
// middle of a change. Open checkpoints are undone. All rows count as changed, the journal of
// podChanges is empty, and followers start anew.
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
		if t.columns.offer(Row(r), n); n != nil {
			t.live++
		}
	}
	for _, pl := range placed {
		pl.withLabels = nil
		t.put(pl)
	}
	t.podChanges.add(PodChange{Pod: &object.Pod{}})
	for t.podChanges.first < t.podChanges.total {
		t.podChanges.drop()
	}
	for r := range t.nodes {
		t.columns.setHeadroom(Row(r))
		t.Touch(Row(r))
		t.journal.touchNode(Row(r))
		t.release(Row(r))
	}
}

// forgetTries ends all open checkpoints, for Rebuild. It undoes their pod changes in the
// map of placed pods alone; everything else is computed anew afterwards.
func (t *Table) forgetTries() {
	for _, e := range slices.Backward(t.tries.undo) {
		if e.put {
			delete(t.placed, e.placed.Pod.UID)
		} else {
			t.placed[e.placed.Pod.UID] = e.placed
		}
	}
	t.tries = tries{}
}

// clearCounts sets all sums over pods, and the number of nodes, to 0. It drops the lists of
// pods by labels.
func (t *Table) clearCounts() {
	t.columns.clear()
	t.live = 0
	t.terms.idle = 0
	for _, term := range t.terms.list {
		term.rows.clear()
		term.live = 0
		if !term.used() { // a nominated pod may have it
			t.terms.idle++
		}
	}
	t.terms.revision++
	t.podsByLabels.byNamespace = nil
}
