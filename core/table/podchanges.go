package table

import "github.com/berth-scheduler/berth/core/object"

// PodChange is an entry of the journal of pod changes: a pod was placed on a row, or removed
// from it.
type PodChange struct {
	Pod  *object.Pod
	Row  Row
	Came bool // true: placed; false: removed
	// Terms are the pod's affinity terms, of all four kinds. Read only.
	Terms []*Term
	// Try is set if it was done under a checkpoint, or by Undo.
	Try bool
}

// podChangesKept bounds the entries of the journal of pod changes, bytesKept the memory of
// their pods' labels and terms. A reader that is further behind has to count all pods anew.
const (
	podChangesKept = 1 << 14
	bytesKept      = 1 << 26
)

// podChanges is a ring of the last entries of the journal, numbered from 1.
type podChanges struct {
	ring  []PodChange // entry n is at index (n-1) % podChangesKept
	total uint64      // number of the last entry
	first uint64      // entries up to this number are dropped
	bytes int         // bytesHeld of the pods in the ring
}

// add appends an entry and drops old ones beyond the bounds.
func (l *podChanges) add(p PodChange) {
	if len(l.ring) < podChangesKept {
		l.ring = append(l.ring, p)
	} else {
		at := &l.ring[l.total%podChangesKept]
		if l.first+podChangesKept == l.total {
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
func (l *podChanges) drop() {
	at := &l.ring[l.first%podChangesKept]
	l.bytes -= bytesHeld(at.Pod)
	*at = PodChange{}
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

// PodChangeCount returns the number of placements and removals of pods so far, those under
// checkpoints and by Undo included. A Rebuild raises it.
func (t *Table) PodChangeCount() uint64 { return t.podChanges.total }

// PodChangesAfter calls visit with each placement and removal since PodChangeCount was n,
// oldest first. It returns false, and calls nothing, if the journal does not reach back that
// far.
func (t *Table) PodChangesAfter(n uint64, visit func(PodChange)) bool {
	l := &t.podChanges
	if n < l.first {
		return false
	}
	for ; n < l.total; n++ {
		visit(l.ring[n%podChangesKept])
	}
	return true
}
