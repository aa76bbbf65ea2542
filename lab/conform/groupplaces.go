package conform

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/lab/oracle"
)

// checkGroups compares which groups are kept out of the queue: those without a PodGroup, and
// those of which a PreEnqueue plugin rejects a pod. A group that waits for an event may not
// fit.
func (f *follower) checkGroups() error {
	seen := map[string]bool{}
	for _, p := range f.pods { // any order: differences are sorted
		if !f.groups || p.Spec.NodeName != "" || p.Spec.SchedulingGroup == nil || seen[entityOf(p)] || f.relaxed(p) {
			continue
		}
		seen[entityOf(p)] = true
		members := f.waitingMembers(p)
		if len(members) == 0 {
			continue
		}
		places, pods := map[queue.Place]int{}, map[string]queue.Place{}
		for _, m := range members {
			at := f.world.Machine.Entry(m.Pod.UID).Place()
			pods[m.Pod.Name] = at
			places[at]++
		}
		want, err := f.oracle.GroupPlace(members)
		if err != nil {
			return err
		}
		f.counts.places++
		if want != oracle.GroupGated { // an event opened the gate, or the group is gone
			f.admitted[entityOf(p)] = want == oracle.GroupActive
		}
		switch held := places[queue.Gated] > 0; {
		case held != (want != oracle.GroupActive) && !(!held && want == oracle.GroupGated && f.admitted[entityOf(p)]):
			f.differences = append(f.differences, difference{pod: entityOf(p), diff: fmt.Sprintf("place of the pod group: kube-scheduler %s, Berth has its pods in %v", want, pods)})
		case places[queue.Unschedulable] == len(members):
			for _, m := range members {
				f.mean(m.Pod, "kube-scheduler tries it again after its backoff")
			}
			if err := f.checkWait(p, members); err != nil {
				return err
			}
		}
	}
	return nil
}

// relaxed reports whether the pod's group is a gang that was placed once and has fewer bound
// pods than its minimum. kube-scheduler keeps what comes later until the minimum is there
// again; Berth does not (docs/deviations-groups.md).
func (f *follower) relaxed(p *v1.Pod) bool {
	g, _ := f.written["PodGroup "+entityOf(p)].(*schedulingv1beta1.PodGroup)
	if g == nil || g.Spec.SchedulingPolicy.Gang == nil || !meta.IsStatusConditionTrue(g.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled) {
		return false
	}
	bound := 0
	for _, q := range f.pods { // any order: a sum
		if q.Spec.NodeName != "" && sameGroup(q, p) {
			bound++
		}
	}
	return bound > 0 && bound < int(g.Spec.SchedulingPolicy.Gang.MinCount)
}

// checkWait makes a difference of a group that waits for an event although it fits, or would
// preempt. Where that depends on a choice among equal nodes it need not be tried again.
func (f *follower) checkWait(p *v1.Pod, members []oracle.Member) error {
	for range mostRuns {
		rec, err := f.oracle.ScheduleGroup(members, f.nominatedBeside(p), oracle.Chosen{})
		if err != nil {
			return err
		}
		fits := len(rec.Victims) > 0
		for _, r := range rec.Pods { // any order: one is enough
			fits = fits || r.Result == oracle.Scheduled
		}
		if !fits {
			return nil
		}
	}
	f.differences = append(f.differences, difference{pod: entityOf(p), diff: "the pod group waits for an event, and fits or preempts"})
	return nil
}

// askGate asks kube-scheduler's PreEnqueue plugins about the pod's group, as its queue does
// when a pod of it comes, goes or is bound.
func (f *follower) askGate(p *v1.Pod) error {
	if !f.groups || p.Spec.SchedulingGroup == nil {
		return nil
	}
	members := f.waitingMembers(p)
	if len(members) == 0 {
		return nil
	}
	place, err := f.oracle.GroupPlace(members)
	f.admitted[entityOf(p)] = place == oracle.GroupActive
	return err
}
