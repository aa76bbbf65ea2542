package table

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// Excess is a resource of which the pods on a node request more than the node's
// allocatable. CPU is in millicores, memory in bytes; pods are counted.
type Excess struct {
	Resource               v1.ResourceName
	Requested, Allocatable int64
}

// Excess returns the first resource of which pods that the API shows bound to the row
// request more than the node offers; false if there is none. A nil p looks at every
// resource, otherwise only at those that p requests, and at the number of pods. Assumed
// pods do not count, nor does a resource that the node does not state.
func (t *Table) Excess(r Row, p *object.Pod) (Excess, bool) {
	n := t.nodes[r]
	if n == nil {
		return Excess{}, false
	}
	if t.columns.podCount[r] > n.AllowedPods && n.AllowedPods > 0 {
		if e := (Excess{v1.ResourcePods, t.bound(r), n.AllowedPods}); e.Requested > e.Allocatable {
			return e, true
		}
	}
	offers := n.Allocatable
	for _, s := range [...]resource.Scalar{
		{Name: v1.ResourceCPU, Value: offers.MilliCPU}, {Name: v1.ResourceMemory, Value: offers.Memory},
		{Name: v1.ResourceEphemeralStorage, Value: offers.EphemeralStorage},
	} {
		if e, over := t.excessOf(r, p, s); over {
			return e, true
		}
	}
	for _, s := range offers.Scalars {
		if e, over := t.excessOf(r, p, s); over {
			return e, true
		}
	}
	return Excess{}, false
}

// excessOf returns the excess of one resource, of which the node offers that much: what
// the pods bound there request in all. It returns false if that is not more than the
// offer, or p, if not nil, requests none of the resource.
func (t *Table) excessOf(r Row, p *object.Pod, offer resource.Scalar) (Excess, bool) {
	id, ok := t.Column(offer.Name)
	if !ok || offer.Value <= 0 || t.columns.used[id][r] <= offer.Value || p != nil && p.Demand.Usage.Of(offer.Name) == 0 {
		return Excess{}, false
	}
	e := Excess{Resource: offer.Name, Allocatable: offer.Value}
	for _, pl := range t.pods[r] {
		if pl.Pod.NodeName != "" {
			e.Requested = resource.Add(e.Requested, pl.Pod.Demand.Usage.Of(offer.Name))
		}
	}
	return e, e.Requested > e.Allocatable
}

// bound returns how many pods the API shows bound to the row, for an Excess; assumed pods
// do not count.
func (t *Table) bound(r Row) (n int64) {
	for _, pl := range t.pods[r] {
		if pl.Pod.NodeName != "" {
			n++
		}
	}
	return n
}
