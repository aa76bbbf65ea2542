package quota

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// Relief is what changed between two calls of TakeChanged so that pods may preempt others
// which they could not before: queues use less of their mins, so that more is guaranteed to
// their pods, or more beyond their mins, so that they can give back more. It is valid until
// the next change of the table.
type Relief struct {
	index *Index
	freed []freed // more of these queues' mins is unused
	lent  []lent  // more is used beyond these queues' mins
}

// freed is a queue that has more of its min left than before, or that was remade.
type freed struct {
	*Queue
	before object.Amounts // what spare returned at the TakeChanged before
	remade bool           // it is new, or changed in more than its amounts: before does not count
}

// lent is a resource of which the queue uses more beyond its min than before.
type lent struct {
	*Queue
	resource v1.ResourceName
}

// spare returns what is left of the queue's min, sorted by name; a negative amount is what the
// queue uses beyond its min.
func (q *Queue) spare() object.Amounts {
	var list object.Amounts
	for _, l := range q.min {
		list = append(list, object.Amount{Name: q.index.names[l.resource], Value: resource.Sub(l.amount, q.used.at(l.resource).amount())})
	}
	slices.SortFunc(list, byName)
	return list
}

// add adds what changed in the queue since add was last called for it, if it may help pods. It
// records the present state in the queue, for the next call.
func (r *Relief) add(q *Queue) {
	now, before, remade := q.spare(), q.spared, q.remade
	q.spared, q.remade = now, false
	more := remade
	for _, a := range now {
		was, listed := before.Of(a.Name)
		more = more || a.Value > 0 && (!listed || a.Value > was)
		if a.Value < 0 && (remade || listed && a.Value < was) {
			r.lent = append(r.lent, lent{q, a.Name})
		}
	}
	if more {
		r.freed = append(r.freed, freed{q, before, remade})
	}
	if !remade {
		for _, a := range before {
			r.addUnlisted(q, a.Name)
		}
		return
	}
	for n := range q.used {
		r.addUnlisted(q, q.index.names[n])
	}
}

// addUnlisted adds the resource if the queue uses it and its min does not list it: it lends
// all of it then.
func (r *Relief) addUnlisted(q *Queue, name v1.ResourceName) {
	if n, known := r.index.resources[name]; known && !q.min.lists(n) && q.used.at(n).amount() > 0 {
		r.lent = append(r.lent, lent{q, name})
	}
}

// None reports whether nothing changed for the better.
func (r *Relief) None() bool { return len(r.freed)+len(r.lent) == 0 }

// Helps reports whether the pod of the question is within what its queue, or an ancestor of that,
// is guaranteed, and either was not before, or more can be given back to it than before.
func (r *Relief) Helps(a *Ask) bool {
	q := r.index.Queue(a.Pod.Namespace)
	if q == nil {
		return false
	}
	reclaim := r.index.Reclaim(a, nil)
	for n := q; n != nil; n = n.parent {
		if reclaim.EntitledTo(n) && (r.isNew(a, q, n) || r.mayTake(a, q, n)) {
			return true
		}
	}
	return false
}

// Concerns reports whether the relief may help pods of the namespace: something is left of the min
// of the namespace's queue, or of an ancestor.
func (r *Relief) Concerns(namespace string) bool {
	for q := r.index.Queue(namespace); q != nil; q = q.parent {
		if slices.ContainsFunc(q.spared, func(a object.Amount) bool { return a.Value > 0 }) {
			return true
		}
	}
	return false
}

// isNew reports whether the queue n may have had too little of its min left for the pod before. n,
// which is the pod's queue q or an ancestor, has enough now. It is true, too, if a queue from q up
// to n was remade.
func (r *Relief) isNew(a *Ask, q, n *Queue) bool {
	return slices.ContainsFunc(r.freed, func(f freed) bool {
		if f.remade {
			return q.within(f.Queue) && f.Queue.within(n)
		}
		if f.Queue != n {
			return false
		}
		if a.Pod.PodGroup() != "" { // its group requests more than it does
			return true
		}
		covered, fits := false, true
		each(a.Pod, func(name v1.ResourceName, requested int64) {
			if was, listed := f.before.Of(name); listed {
				covered, fits = true, fits && requested <= was
			}
		})
		return !covered || !fits
	})
}

// mayTake reports whether a queue that the pod's queue q is no part of lends more of what
// the pod requests and the min of the queue n, q or an ancestor, lists.
func (r *Relief) mayTake(a *Ask, q, n *Queue) bool {
	return slices.ContainsFunc(r.lent, func(l lent) bool {
		number, known := r.index.resources[l.resource]
		return known && n.min.lists(number) && amountOf(a.Pod, l.resource) > 0 && !q.within(l.Queue)
	})
}
