package queue

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// nominations holds the pods nominated to each node, and the nodes whose nominations changed. It
// implements core/nominations.Nominator.
type nominations struct {
	nominated map[string][]*object.Pod // by node, sorted by rank
	nodes     []string                 // the keys of nominated, sorted
	// renominated holds the nodes whose nominations changed, oldest first, for Renominated.
	renominated struct {
		nodes   []string
		dropped uint64 // number of older changes, forgotten
	}
}

// NominatedTo returns the pods nominated to the node: higher priority first, then by UID;
// nil if there are none. The slice is not changed later; callers may not change it.
func (n *nominations) NominatedTo(node string) []*object.Pod { return n.nominated[node] }

// NominatedNodes returns the nodes that pods are nominated to, sorted. The slice is the
// queue's own and valid until a nomination changes.
func (n *nominations) NominatedNodes() []string { return n.nodes }

// renominationsKept is the least number of changes that Renominated remembers; it remembers
// at most twice as many.
const renominationsKept = 1 << 12

// Renominated returns the nodes whose nominations changed after the revision since, oldest
// change first and some of them more than once, and the present revision. known is false if
// the revision is too old, or from another queue.
func (n *nominations) Renominated(since uint64) (nodes []string, now uint64, known bool) {
	now = n.renominated.dropped + uint64(len(n.renominated.nodes))
	if since < n.renominated.dropped || since > now {
		return nil, now, false
	}
	return n.renominated.nodes[since-n.renominated.dropped:], now, true
}

// updateNomination follows an update of the pod from old. The pod's status.nominatedNodeName counts
// if it is set now or was before; else a nomination that was not written to the API yet stays
// (kube-scheduler's UpdateNominatedPod). A pod in flight keeps its nomination: once assumed, it
// must not count twice.
func (q *Queue) updateNomination(e *Entry, old *object.Pod) {
	node := e.nominated
	if e.place != InFlight && (old.NominatedNode != "" || e.Pod.NominatedNode != "") {
		node = e.Pod.NominatedNode
	}
	q.Nominate(e, node)
}

// Nominate nominates the pod to the node, in place of any earlier nomination. Node "" ends the
// nomination. It moves no pods.
func (q *Queue) Nominate(e *Entry, node string) {
	from := e.nominated
	if from != "" {
		left := slices.DeleteFunc(slices.Clone(q.nominated[from]), func(p *object.Pod) bool { return p.UID == e.Pod.UID })
		q.setNominated(from, left)
	}
	if e.nominated = node; node != "" {
		pods := slices.Clone(q.nominated[node])
		at, _ := slices.BinarySearchFunc(pods, e.Pod, byRank)
		q.setNominated(node, slices.Insert(pods, at, e.Pod))
	}
	if from != node {
		q.reindex(e)
	}
}

// setNominated replaces the list of pods nominated to the node, and records the change.
func (n *nominations) setNominated(node string, pods []*object.Pod) {
	l := &n.renominated
	if len(l.nodes) == 2*renominationsKept {
		l.dropped += renominationsKept
		l.nodes = slices.Delete(l.nodes, 0, renominationsKept)
	}
	l.nodes = append(l.nodes, node)
	at, known := slices.BinarySearch(n.nodes, node)
	switch {
	case len(pods) == 0:
		delete(n.nominated, node)
		n.nodes = slices.Delete(n.nodes, at, at+1)
		return
	case !known:
		n.nodes = slices.Insert(n.nodes, at, node)
	}
	n.nominated[node] = pods
}

// byRank compares two pods by descending priority, then by UID.
func byRank(a, b *object.Pod) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		cmp.Compare(a.UID, b.UID),
	)
}
