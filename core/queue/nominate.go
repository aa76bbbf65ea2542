package queue

import (
	"cmp"
	"slices"

	"github.com/berth-scheduler/berth/core/object"
)

// NominatedTo returns the pods nominated to the node: higher priority first,
// then by UID. The slice is never changed again, neither
// by the queue nor may it be by the caller.
func (q *Queue) NominatedTo(node string) []*object.Pod { return q.nominated[node] }

// NominatedNodes returns the nodes that pods are nominated to, sorted. The
// slice is the queue's own and good until a nomination changes.
func (q *Queue) NominatedNodes() []string { return q.nodes }

// renominationsKept bounds what Renominated remembers.
const renominationsKept = 1 << 12

// Renominated returns the nodes whose nominations changed after the revision, some of
// them more than once, and the present revision. known is false if the revision is too
// old, or from another queue.
func (q *Queue) Renominated(since uint64) (nodes []string, now uint64, known bool) {
	now = q.renominated.dropped + uint64(len(q.renominated.nodes))
	if since < q.renominated.dropped || since > now {
		return nil, now, false
	}
	return q.renominated.nodes[since-q.renominated.dropped:], now, true
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

func (q *Queue) setNominated(node string, pods []*object.Pod) {
	l := &q.renominated
	if len(l.nodes) == 2*renominationsKept {
		l.dropped += renominationsKept
		l.nodes = slices.Delete(l.nodes, 0, renominationsKept)
	}
	l.nodes = append(l.nodes, node)
	at, known := slices.BinarySearch(q.nodes, node)
	switch {
	case len(pods) == 0:
		delete(q.nominated, node)
		q.nodes = slices.Delete(q.nodes, at, at+1)
		return
	case !known:
		q.nodes = slices.Insert(q.nodes, at, node)
	}
	q.nominated[node] = pods
}

func byRank(a, b *object.Pod) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		cmp.Compare(a.UID, b.UID),
	)
}
