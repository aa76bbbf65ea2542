package bench

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/machine"
)

// preempts tells whether one of the pods may have to preempt: it has a higher
// priority than one that is bound.
func preempts(bound, pods []*v1.Pod) bool {
	priority := func(p *v1.Pod) int32 {
		if p.Spec.Priority == nil {
			return 0
		}
		return *p.Spec.Priority
	}
	byPriority := func(a, b *v1.Pod) int { return int(priority(a)) - int(priority(b)) }
	return len(bound) > 0 && len(pods) > 0 &&
		priority(slices.MinFunc(bound, byPriority)) < priority(slices.MaxFunc(pods, byPriority))
}

// offer hands over the next of the pods that come one after the other.
func (d *berthDecider) offer() {
	if len(d.later) > 0 {
		d.addPods(slices.Values(d.later[:1]))
		d.later = d.later[1:]
	}
}

// evict has the victims go, those too that were on their way out, the API show the
// nomination, and time pass until the pod may be tried again.
func (d *berthDecider) evict() {
	for _, e := range d.evicts {
		d.step(machine.EvictReply{Victim: e.Victim.UID, Preemptor: e.Preemptor.UID})
	}
	for _, name := range d.victims {
		d.step(machine.PodGone{Namespace: name.Namespace, Name: name.Name})
	}
	clear(d.evicts)
	d.evicts, d.victims = d.evicts[:0], nil
	for _, e := range slices.Clone(d.patches) {
		if p := *e.Pod; e.Nominated != nil {
			p.NominatedNode = *e.Nominated
			d.step(machine.PodSet{Pod: &p})
		}
	}
	for !d.m.Ready() {
		next, ok := d.m.NextTimer()
		if !ok {
			return
		}
		d.ahead = max(d.ahead, time.Until(next)) + time.Millisecond
		d.step(machine.Tick{})
	}
}
