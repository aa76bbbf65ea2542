package table

import "github.com/berth-scheduler/berth/core/object"

// Placement is an entry of the journal of placements: a pod was placed on a row, or removed
// from it.
type Placement struct {
	Pod  *object.Pod
	Row  Row
	Came bool // true: placed; false: removed
	// Terms are the pod's affinity terms, of all four kinds. Read only.
	Terms []*Term
	// Try is set if it was done under a checkpoint, or by Undo.
	Try bool
}

// placementsKept bounds the entries of the journal of placements, bytesKept the memory of
// their pods' labels and terms. A reader that is further behind has to count all pods anew.
const (
	placementsKept = 1 << 14
	bytesKept      = 1 << 26
)

// placements is a ring of the last entries of the journal, numbered from 1.
type placements struct {
	ring  []Placement // entry n is at index (n-1) % placementsKept
	total uint64      // number of the last entry
	first uint64      // entries up to this number are dropped
	bytes int         // bytesHeld of the pods in the ring
}

// add appends an entry and drops old ones beyond the bounds.
func (l *placements) add(p Placement) {
	if len(l.ring) < placementsKept {
		l.ring = append(l.ring, p)
	} else {
		at := &l.ring[l.total%placementsKept]
		if l.first+placementsKept == l.total {
			l.drop()
		}
		*at = p
	}
	l.total++
	for l.bytes += bytesHeld(p.Pod); l.bytes > bytesKept; {
		l.drop()
	}
}

// drop removes the oldest entry.
func (l *placements) drop() {
	at := &l.ring[l.first%placementsKept]
	l.bytes -= bytesHeld(at.Pod)
	*at = Placement{}
	l.first++
}

// bytesHeld returns about how many bytes the pod's labels, node affinity, pod affinity and
// tolerations take. It counts 400 for a label, which takes fewer.
func bytesHeld(p *object.Pod) int {
	n := 400 * len(p.Labels)
	if p.RequiredNodes != nil {
		n += len(p.RequiredNodes.Key)
	}
	if p.Affinity != nil {
		n += len(p.Affinity.Key)
	}
	return n + len(p.Tolerations.Key)
}

// PlacementCount returns the number of placements and removals of pods so far, those under
// checkpoints and by Undo included. A Rebuild raises it.
func (t *Table) PlacementCount() uint64 { return t.placements.total }

// PlacementsAfter calls visit with each placement and removal since PlacementCount was n,
// oldest first. It returns false, and calls nothing, if the journal does not reach back that
// far.
func (t *Table) PlacementsAfter(n uint64, visit func(Placement)) bool {
	l := &t.placements
	if n < l.first {
		return false
	}
	for ; n < l.total; n++ {
		visit(l.ring[n%placementsKept])
	}
	return true
}
