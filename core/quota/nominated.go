package quota

import (
	"cmp"
	"iter"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// Nominated are the pods that are nominated to nodes. The zero value is none.
type Nominated struct {
	All iter.Seq[*object.Pod] // in any order; nil: none
	// Revision differs whenever All yields other pods. The zero value means that it is not known.
	Revision Revision
}

// Revision identifies a state of the nominations and of the nodes. A nomination counts only while
// its node is known.
type Revision struct{ Nominations, Nodes uint64 }

// nominatedPods are nominated pods by namespace.
type nominatedPods map[string]*nominatedIn

// nominatedIn are the nominated pods of a namespace.
type nominatedIn struct {
	pods  []*object.Pod             // the most important first
	total map[v1.ResourceName]int64 // what they request
}

// nominations keeps the nominated pods of one revision, as a search for victims asks about
// many nodes and nobody is nominated meanwhile.
type nominations struct {
	revision Revision
	pods     nominatedPods
}

// of returns the nominated pods by namespace; nil if there are none. It returns the kept ones if
// they have that revision.
func (n *nominations) of(nominated Nominated) nominatedPods {
	known := nominated.Revision != Revision{}
	switch {
	case nominated.All == nil:
		return nil
	case known && n.revision == nominated.Revision:
		return n.pods
	}
	pods := nominatedPods{}
	for p := range nominated.All {
		in := pods[p.Namespace]
		if in == nil {
			in = &nominatedIn{total: map[v1.ResourceName]int64{}}
			pods[p.Namespace] = in
		}
		in.pods = append(in.pods, p)
		each(p, func(name v1.ResourceName, amount int64) { in.total[name] = resource.Add(in.total[name], amount) })
	}
	for _, in := range pods { // any order: each by itself
		slices.SortFunc(in.pods, func(a, b *object.Pod) int { return cmp.Compare(b.Priority, a.Priority) })
	}
	if known {
		n.revision, n.pods = nominated.Revision, pods
	}
	return pods
}

// kept returns how much of the resource is kept for those of the pods that are not less
// important than p, except p itself.
func (in *nominatedIn) kept(p *object.Pod, name v1.ResourceName) (amount int64) {
	for _, other := range in.pods {
		if other.Priority < p.Priority {
			break
		}
		if other.UID != p.UID {
			amount = resource.Add(amount, amountOf(other, name))
		}
	}
	return amount
}

// keptWithin returns how much of the resource is kept for nominated pods of the queue n and
// its parts that are not less important than the pod of the question.
func (x *Index) keptWithin(a *Ask, n *Queue, name v1.ResourceName, nominated nominatedPods) (amount int64) {
	for namespace, in := range nominated { // any order: adds up
		if q := x.queues[namespace]; q != nil && q.within(n) {
			amount = resource.Add(amount, in.kept(a.Pod, name))
		}
	}
	return amount
}
