package queue

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// nominations are the pods nominated to each node, and which nodes' nominations changed.
type nominations struct {
	nominated map[string][]*object.Pod // by node, sorted by rank
	nodes     []string                 // the keys of nominated, sorted
	// renominated lists the nodes whose nominations changed, in order.
	renominated struct {
		nodes   []string
		dropped uint64 // that many are not remembered
	}
}

// NominatedTo returns the pods nominated to the node: higher priority first,
// then by UID. The slice is never changed again, neither
// by the queue nor may it be by the caller.
func (n *nominations) NominatedTo(node string) []*object.Pod { return n.nominated[node] }

// NominatedNodes returns the nodes that pods are nominated to, sorted. The
// slice is the queue's own and good until a nomination changes.
func (n *nominations) NominatedNodes() []string { return n.nodes }

// renominationsKept bounds what Renominated remembers.
const renominationsKept = 1 << 12

// Renominated returns the nodes whose nominations changed after the revision, some of
// them more than once, and the present revision. known is false if the revision is too
// old, or from another queue.
func (n *nominations) Renominated(since uint64) (nodes []string, now uint64, known bool) {
	now = n.renominated.dropped + uint64(len(n.renominated.nodes))
	if since < n.renominated.dropped || since > now {
		return nil, now, false
	}
	return n.renominated.nodes[since-n.renominated.dropped:], now, true
}

// updateNomination follows a change of the pod. The API's word counts where it has
// one now or had one before; else a nomination that the API has not heard of
// yet stays (v1.36's UpdateNominatedPod). A pod in flight keeps what it has:
// once assumed, it must not count twice.
func (q *Queue) updateNomination(e *Entry, old *object.Pod) {
	node := e.nominated
	if e.place != InFlight && (old.NominatedNode != "" || e.Pod.NominatedNode != "") {
		node = e.Pod.NominatedNode
	}
	q.Nominate(e, node)
}

// Nominate nominates the pod to the node, in place of any earlier nomination. Node ""
// ends the nomination. The pod may have other peers then.
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

func byRank(a, b *object.Pod) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		cmp.Compare(a.UID, b.UID),
	)
}
