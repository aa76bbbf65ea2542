package conform

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/lab/oracle"
)

// tried is what Berth decided on a pod of a group, before the group's cycle is over.
type tried struct {
	decision *decision.Decision
	pod      *v1.Pod
	attempts int // before this one
	// place and nominated are where the pod waits after the cycle, and its nomination then.
	place     queue.Place
	nominated string
}

// groupTried keeps a decision on a pod of a group until the end of the group's cycle, and
// reports whether it is one. Pods that a plugin keeps out of the queue are no part of a
// cycle.
func (f *follower) groupTried(d *decision.Decision, pod *v1.Pod) bool {
	if !f.groups || pod.Spec.SchedulingGroup == nil {
		return false
	}
	if d.Result != decision.ResultGated {
		entry := f.world.Machine.Entry(d.UID)
		f.tried = append(f.tried, tried{d, pod, max(0, entry.State().Attempts-1), entry.Place(), entry.NominatedNode()})
	}
	return true
}

// cycleUnderWay reports whether the decisions of a cycle are not all known yet. A cycle that
// could not begin failed for each of its pods, in one step, and nothing says that it is over.
func (f *follower) cycleUnderWay() bool {
	return slices.ContainsFunc(f.tried, func(t tried) bool { return t.decision.Result != decision.ResultError })
}

// endCycle compares a cycle of which Berth did not say that it is over: it could not begin.
func (f *follower) endCycle() {
	if len(f.tried) == 0 {
		return
	}
	p := f.tried[0].pod
	name := types.NamespacedName{Namespace: p.Namespace, Name: *p.Spec.SchedulingGroup.PodGroupName}
	f.end(f.groupDone(machine.PodGroupDone{Group: name, Result: decision.ResultError}))
}

// end ends the story if kube-scheduler could not be asked.
func (f *follower) end(err error) {
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("kube-scheduler: %w", err)
	}
}

// mostRuns is how often kube-scheduler runs the cycle of a group on which the two differ. In
// placements other than the one chosen, and while it looks for victims, it takes equal nodes
// at random, and so may come to another end in each run.
const mostRuns = 10

// groupDone lets kube-scheduler run the same cycle and compares what it said of each pod, and
// of the group.
func (f *follower) groupDone(done machine.PodGroupDone) error {
	list := f.tried
	f.tried = nil
	if len(list) == 0 {
		return nil // all of them were gone
	}
	for _, t := range list {
		if delete(f.assumed, t.decision.UID); t.decision.Node != "" && done.Result == decision.ResultScheduled {
			f.assumed[t.decision.UID] = true
		}
	}
	intended := ""
	switch {
	case f.relaxed(list[0].pod):
		intended = "kube-scheduler waits for the gang's minimum"
	case done.Order != "":
		intended = "kube-scheduler tries the gang's pods in the order of the queue alone"
	}
	if intended != "" {
		for _, t := range list {
			f.mean(t.pod, intended)
		}
		f.leftOut = true
		return nil
	}
	var differences []difference
	for range mostRuns {
		want, err := f.oracle.ScheduleGroup(f.members(list), f.nominatedBeside(list[0].pod), oracle.Chosen{Placement: done.Placement, Pods: f.choices(list)})
		if err != nil {
			return err
		}
		f.condition, f.leftOut = want.Condition, want.Untried != "" || faulty(want) || f.missesTerms(want, done)
		differences = f.compareGroup(want, done, list)
		if len(differences) == 0 {
			f.admitted[done.Group.String()] = want.Untried == "" && !slices.Contains(slices.Collect(maps.Values(want.Places)), oracle.GroupGated)
			break
		}
	}
	f.counts.decisions += len(list)
	result := string(done.Result)
	if done.Scheduled > 0 && done.Scheduled < done.Pods {
		result = "Partly scheduled"
	}
	f.counts.countGroup(result)
	f.differences = append(f.differences, differences...)
	return nil
}

// compareGroup compares the records of a cycle.
func (f *follower) compareGroup(want oracle.GroupRecord, done machine.PodGroupDone, list []tried) (all []difference) {
	differ := func(what string, want, got any) {
		all = append(all, difference{pod: done.Group.String(), diff: fmt.Sprintf("%s: kube-scheduler %v, Berth %v", what, want, got)})
	}
	if want.Untried != "" && !(want.Untried == oracle.GroupGated && f.admitted[done.Group.String()]) {
		differ("cycle of the pod group", "keeps it "+string(want.Untried), "tries it")
	}
	if f.leftOut {
		return all
	}
	if got := victimKeys(done); !slices.Equal(want.Victims, got) {
		differ("victims of the pod group", want.Victims, got)
	}
	for _, odd := range want.Odd {
		differ("choice for the pod group", odd, done.Placement)
	}
	left := maps.Clone(want.Pods)
	for _, t := range list {
		uid, key := t.decision.UID, t.pod.Namespace+"/"+t.pod.Name
		rec, known := want.Pods[uid]
		if !known {
			all = append(all, difference{pod: key, diff: "kube-scheduler does not try it with its group"})
			continue
		}
		delete(left, uid)
		if diffs := compare(rec, groupRecord(t.decision, rec)); len(diffs) > 0 {
			all = append(all, difference{pod: key, diff: strings.Join(diffs, "; ")})
		}
		wantNode, decides := want.Nominated[uid]
		if decides && wantNode != t.nominated {
			all = append(all, difference{pod: key, diff: fmt.Sprintf("nominated node: kube-scheduler %q, Berth %q", wantNode, t.nominated)})
		}
		if got := groupPlace(t.place); got != want.Places[uid] && !(got == oracle.GroupWaits && want.Places[uid] == oracle.GroupBackoff) {
			all = append(all, difference{pod: key, diff: fmt.Sprintf("place after the cycle of its group: kube-scheduler %q, Berth %q", want.Places[uid], got)})
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(left)) {
		all = append(all, difference{pod: left[uid].Pod, diff: "kube-scheduler tries it with its group, and Berth does not"})
	}
	return all
}

// faulty reports whether kube-scheduler's cycle failed as DynamicResources looks for what
// PreFilter found, though no pod was tried: a gang has too few pods from the start.
func faulty(want oracle.GroupRecord) bool {
	return want.Condition != nil && strings.HasSuffix(want.Condition.Message, `"DynamicResources" PodGroupPostFilter plugins: not found`) ||
		slices.ContainsFunc(slices.Collect(maps.Values(want.Pods)), func(r oracle.Record) bool {
			return strings.HasSuffix(r.Message, `"DynamicResources" PodGroupPostFilter plugins: not found`)
		})
}

// missesTerms reports whether Berth evicts pods with required anti-affinity in addition to
// kube-scheduler's victims. There InterPodAffinity is skipped when such a pod comes back, as
// none was there when the group was tried.
func (f *follower) missesTerms(want oracle.GroupRecord, done machine.PodGroupDone) bool {
	for _, key := range want.Victims {
		if !slices.Contains(victimKeys(done), key) {
			return false
		}
	}
	return slices.ContainsFunc(done.Victims, func(p *object.Pod) bool {
		a := f.pods[p.UID].Spec.Affinity
		return !slices.Contains(want.Victims, p.Key()) && a != nil && a.PodAntiAffinity != nil
	})
}

func victimKeys(done machine.PodGroupDone) []string {
	var keys []string
	for _, p := range done.Victims {
		keys = append(keys, p.Key())
	}
	slices.Sort(keys)
	return keys
}

// groupRecord returns the decision in kube-scheduler's terms: a pod that waits for the others
// of its group is scheduled, and one whose group preempts is unschedulable. Of a pod that
// kube-scheduler did not try, the nodes are not compared.
func groupRecord(d *decision.Decision, want oracle.Record) oracle.Record {
	rec := record(d)
	switch d.Result {
	case decision.ResultWaiting:
		rec.Result, rec.Best = oracle.Scheduled, oracle.Best(rec.Nodes)
	case decision.ResultPreempting:
		rec.Result = oracle.Unschedulable
	}
	rec.Nominated, rec.Victims = "", nil
	if len(want.Nodes) == 0 {
		rec.Nodes = nil
	}
	return rec
}

// groupPlace returns a place in kube-scheduler's terms. There a rejected group waits for no
// event, and is tried again after its backoff; in Berth it may wait for one.
func groupPlace(p queue.Place) oracle.GroupPlace {
	switch p {
	case queue.Active:
		return oracle.GroupActive
	case queue.Backoff, queue.ErrorBackoff:
		return oracle.GroupBackoff
	case queue.Gated:
		return oracle.GroupGated
	case queue.Unschedulable:
		return oracle.GroupWaits
	}
	return "" // in flight or nowhere
}

// choices are the nodes that Berth chose.
func (f *follower) choices(list []tried) map[types.UID]oracle.Choice {
	all := map[types.UID]oracle.Choice{}
	for _, t := range list {
		all[t.decision.UID] = oracle.Choice{Node: cmp.Or(t.decision.Node, t.decision.GroupNode), Nominated: t.nominated}
	}
	return all
}

// members lists the pods of the group that wait: those that were tried in that order, then
// those that are kept out of the queue.
func (f *follower) members(list []tried) []oracle.Member {
	var all []oracle.Member
	for _, t := range list {
		all = append(all, oracle.Member{Pod: t.pod, Attempts: t.attempts})
	}
	for _, p := range f.pending(list[0].pod) {
		if !slices.ContainsFunc(all, func(m oracle.Member) bool { return m.Pod.UID == p.UID }) {
			all = append(all, oracle.Member{Pod: p})
		}
	}
	return all
}

// pending lists the pods of the pod's group that a profile of the scheduler is to place, by
// name.
func (f *follower) pending(of *v1.Pod) []*v1.Pod {
	var all []*v1.Pod
	for _, p := range f.pods { // any order: sorted below
		if p.Spec.NodeName == "" && sameGroup(p, of) && f.world.Machine.Entry(p.UID) != nil {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *v1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// waitingMembers lists the waiting pods of the pod's group with their attempts, by name.
func (f *follower) waitingMembers(of *v1.Pod) (members []oracle.Member) {
	for _, p := range f.pending(of) {
		members = append(members, oracle.Member{Pod: p, Attempts: f.world.Machine.Entry(p.UID).State().Attempts})
	}
	return members
}

func sameGroup(p, q *v1.Pod) bool {
	return p.Namespace == q.Namespace && p.Spec.SchedulingGroup != nil && *p.Spec.SchedulingGroup.PodGroupName == *q.Spec.SchedulingGroup.PodGroupName
}

// nominatedBeside lists the pods that wait, are nominated, and are not of the pod's group.
func (f *follower) nominatedBeside(of *v1.Pod) []*v1.Pod {
	var nominated []*v1.Pod
	for _, p := range f.pods { // any order: sorted below
		if p = f.asNominated(p); p.Spec.NodeName == "" && p.Status.NominatedNodeName != "" && !sameGroup(p, of) {
			nominated = append(nominated, p)
		}
	}
	slices.SortFunc(nominated, func(a, b *v1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return nominated
}

// asNominated returns the pod with its nomination, also while that is not shown yet: victims
// may go before.
func (f *follower) asNominated(p *v1.Pod) *v1.Pod {
	node := f.world.Machine.Entry(p.UID).NominatedNode()
	if node == p.Status.NominatedNodeName {
		return p
	}
	p = p.DeepCopy()
	p.Status.NominatedNodeName = node
	return p
}

// mean records what Berth does otherwise on purpose.
func (f *follower) mean(p *v1.Pod, diff string) {
	f.differences = append(f.differences, difference{pod: p.Namespace + "/" + p.Name, diff: diff, meant: true})
}

// entityOf returns the key of what kube-scheduler's queue holds for the pod: its group, or
// itself.
func entityOf(p *v1.Pod) string {
	if g := p.Spec.SchedulingGroup; g != nil {
		return p.Namespace + "/" + *g.PodGroupName
	}
	return p.Namespace + "/" + p.Name
}

// arrive records that the pod came before the first decision.
func (f *follower) arrive(p *v1.Pod) {
	if g := p.Spec.SchedulingGroup; f.groups && len(f.decidedFirst) == 0 {
		f.arrived = append(f.arrived, p)
		if g != nil && f.written["PodGroup "+entityOf(p)] == nil {
			f.unordered[entityOf(p)] = true // pods that wait for their PodGroup have no order in kube-scheduler
		}
	}
}

// appear records a decision on the pod, or its group, until the order is compared.
func (f *follower) appear(d *decision.Decision, p *v1.Pod) {
	if key := entityOf(p); f.groups && !f.ordered && d.Result != decision.ResultGated && !slices.Contains(f.decidedFirst, key) {
		f.decidedFirst = append(f.decidedFirst, key)
	}
}

// checkOrder compares in which order the pods and groups are tried that came before the first
// decision.
func (f *follower) checkOrder() error {
	if f.ordered || len(f.decidedFirst) == 0 {
		return nil
	}
	f.ordered = true
	want, err := f.oracle.GroupOrder(f.arrived, entityOf)
	if err != nil {
		return err
	}
	out := func(other []string) func(string) bool {
		return func(key string) bool { return f.unordered[key] || !slices.Contains(other, key) }
	}
	got := slices.DeleteFunc(slices.Clone(f.decidedFirst), out(want))
	want = slices.DeleteFunc(want, out(got))
	for i := range got {
		if got[i] == want[i] {
			continue
		}
		f.differences = append(f.differences, difference{pod: got[i], diff: fmt.Sprintf("order of the queue: kube-scheduler %v, Berth %v", want, got)})
		break // a mark names who comes too early
	}
	return nil
}

// compareCondition compares what is written of a group. kube-scheduler writes what is new to
// it; so does Berth, and what Berth writes comes after the end of the cycle.
func (f *follower) compareCondition(e machine.PatchGroupStatus) {
	f.endCycle()
	if f.leftOut {
		f.condition = nil
		return
	}
	want := "nothing"
	if c := f.condition; c != nil { // the patch leaves out what stays
		want = fmt.Sprintf("%s for %s: %q", cmp.Or(c.Status, metav1.ConditionStatus(e.Condition.Status)), cmp.Or(c.Reason, e.Condition.Reason), cmp.Or(c.Message, e.Condition.Message))
	}
	f.condition = nil
	if got := fmt.Sprintf("%s for %s: %q", e.Condition.Status, e.Condition.Reason, e.Condition.Message); got != want {
		f.differences = append(f.differences, difference{pod: e.Group.Key(), diff: "condition of the pod group: kube-scheduler " + want + ", Berth " + got})
	}
}

// settleCycle makes a difference of a condition that kube-scheduler alone writes.
func (f *follower) settleCycle() {
	f.endCycle()
	if c := f.condition; c != nil && !f.leftOut {
		f.differences = append(f.differences, difference{pod: "of the last group", diff: fmt.Sprintf("condition: kube-scheduler %s for %s: %q, Berth nothing", c.Status, c.Reason, c.Message)})
	}
	f.condition = nil
}

// withCondition sets the condition of the group that the story wrote to the one that the
// scheduler wrote.
func withCondition(o metav1.Object, shown object.Object) {
	g, ok := o.(*schedulingv1beta1.PodGroup)
	if c := shown.(*object.PodGroup); ok && c.Scheduled.Status != "" {
		g.Status.Conditions = []metav1.Condition{{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionStatus(c.Scheduled.Status),
			Reason: c.Scheduled.Reason, Message: c.Scheduled.Message, ObservedGeneration: c.Scheduled.ObservedGeneration}}
	}
}

// countGroup counts the outcome of a cycle.
func (c *storyCounts) countGroup(r string) {
	if c.cycles == nil {
		c.cycles = map[string]int{}
	}
	c.cycles[r]++
}

// groupCycles says how the cycles of pod groups ended.
func (c *storyCounts) groupCycles() string {
	var all []string
	for _, r := range slices.Sorted(maps.Keys(c.cycles)) {
		all = append(all, fmt.Sprintf("%d %s", c.cycles[r], r))
	}
	return "cycles of groups: " + strings.Join(all, ", ")
}
