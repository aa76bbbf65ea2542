package table

import "github.com/berth-scheduler/berth/core/object"

// Placement is one entry of the journal of placements: a pod came to a row,
// or left it.
type Placement struct {
	Pod  *object.Pod
	Row  Row
	Came bool
	// Terms are the pod's terms of pod affinity. Read only.
	Terms []*Term
	// Try: it was done under a checkpoint, or is the undoing of such a thing.
	Try bool
}

// placementsKept bounds the journal of placements, bytesKept what their pods
// hold in labels and terms, in bytes. A reader that is further behind counts
// all pods anew.
const (
	placementsKept = 1 << 14
	bytesKept      = 1 << 26
)

// placements is a ring of the last changes of pods, numbered from 1.
type placements struct {
	ring  []Placement
	total uint64
	first uint64 // entries up to this number are gone
	bytes int    // of the pods in the ring
}

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

// drop forgets the oldest entry.
func (l *placements) drop() {
	at := &l.ring[l.first%placementsKept]
	l.bytes -= bytesHeld(at.Pod)
	*at = Placement{}
	l.first++
}

// bytesHeld returns about how many bytes the pod holds in labels and terms. A label has
// fewer than 400.
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

// PlacementCount returns the number of pods that came or left so far, undone tries
// and their undoing included.
func (t *Table) PlacementCount() uint64 { return t.placements.total }

// PlacementsAfter calls visit with each coming and leaving after the first n,
// oldest first. It returns false, and calls nothing, when the journal does not
// reach back that far.
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
