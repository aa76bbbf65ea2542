package table

import (
	"cmp"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
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
		if t.columns.offer(Row(r), n); n != nil {
			t.live++
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
		t.columns.setHeadroom(Row(r))
		t.Touch(Row(r))
		t.journal.touchNode(Row(r))
		t.release(Row(r))
	}
}

// forgetTries reverts open trials, as far as the table of placed pods goes.
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

// clearCounts sets all counts to 0.
func (t *Table) clearCounts() {
	t.columns.clear()
	t.live = 0
	for _, term := range t.terms.list {
		term.rows.clear()
		term.live = 0
	}
	t.terms.idle = len(t.terms.list)
	t.terms.revision++
	t.podsByLabels.byNamespace = nil
}
