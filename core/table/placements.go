package table

import "github.com/berth-scheduler/berth/core/object"

// Placement is one entry of the journal of placements: a pod came to a row,
// or left it.
type Placement struct {
	Pod  *object.Pod
	Row  Row
	Came bool
	// Try: it was done under a checkpoint, or is the undoing of such a thing.
	Try bool
}

// placementsKept bounds the journal of placements. Who is further behind
// counts anew.
const placementsKept = 1 << 14

// placements is a ring of the last changes of pods, numbered from 1.
type placements struct {
	ring  []Placement
	total uint64
}

func (l *placements) add(p Placement) {
	if len(l.ring) < placementsKept {
		l.ring = append(l.ring, p)
	} else {
		l.ring[l.total%placementsKept] = p
	}
	l.total++
}

// PlacementCount is the number of pods that came or left so far, undone tries
// and their undoing included.
func (t *Table) PlacementCount() uint64 { return t.placements.total }

// PlacementsAfter calls visit with each coming and leaving after the first n,
// oldest first. It returns false, and calls nothing, when the journal does not
// reach back that far.
func (t *Table) PlacementsAfter(n uint64, visit func(Placement)) bool {
	l := &t.placements
	if l.total-n > uint64(len(l.ring)) {
		return false
	}
	for ; n < l.total; n++ {
		visit(l.ring[n%placementsKept])
	}
	return true
}
