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

// Excess returns the first resource of which the pods bound to the row request more than the
// node offers: pods, CPU, memory, ephemeral storage, then others. It returns false if there is
// none, or no node. If p is not nil, it looks only at the number of pods and at what p
// requests. Pods that are only assumed there do not count, nor does a resource of which the
// node states none.
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

// excessOf returns what the pods bound to the row request in all of one resource, with offer,
// the node's allocatable of it. It returns false if they request no more than offer, if offer
// is 0, or if p, unless it is nil, requests none of the resource.
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

// bound returns how many pods the API shows bound to the row. Assumed pods do not count.
func (t *Table) bound(r Row) (n int64) {
	for _, pl := range t.pods[r] {
		if pl.Pod.NodeName != "" {
			n++
		}
	}
	return n
}
