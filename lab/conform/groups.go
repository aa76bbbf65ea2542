package conform

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/lab/oracle"
)

// tried is what Berth decided on a pod of a group, before the group's cycle is over.
type tried struct {
	decision *decision.Decision
	pod      *v1.Pod
}

// groupTried keeps decisions on pods of a group until the end of the cycle. Pods that a
// plugin keeps out of the queue are no part of it; nor is what becomes of one later.
func (f *follower) groupTried(d *decision.Decision, pod *v1.Pod) bool {
	if !f.groups || pod.Spec.SchedulingGroup == nil || d.Result == decision.ResultGated {
		return false
	}
	f.tried = append(f.tried, tried{d, pod})
	return true
}

// groupDone has kube-scheduler run the same cycle and compares what it said of each pod, and
// of the group.
func (f *follower) groupDone(done machine.PodGroupDone) error {
	list := f.tried
	f.tried = nil
	if done.Result == decision.ResultError {
		return nil // who fails first is what decides, and both sides have no order in that
	}
	want, err := f.scheduleGroup(done, list)
	if err != nil {
		return err
	}
	f.condition = want.Condition
	for _, t := range list {
		rec, known := want.Pods[t.decision.UID]
		if !known {
			f.differ(t.pod, "kube-scheduler does not try it with its group")
			continue
		}
		f.counts.decisions++
		diffs := compare(rec, groupRecord(t.decision))
		if node := cmp.Or(t.decision.NominatedNode, t.decision.GroupNode); len(rec.Plans) > 0 && !slices.ContainsFunc(rec.Plans, func(p oracle.Plan) bool { return p.Node == node }) {
			diffs = append(diffs, fmt.Sprintf("preemption: kube-scheduler %v, Berth on node %q", rec.Plans, node))
		}
		if len(diffs) > 0 {
			f.differ(t.pod, fmt.Sprint(diffs))
		}
		delete(want.Pods, t.decision.UID)
		f.leave(t.decision.UID)
	}
	for _, rec := range want.Pods { // any order: differences
		f.differences = append(f.differences, difference{rec.Pod, "kube-scheduler tries it with its group, and Berth does not"})
	}
	return nil
}

// mostRuns is how often kube-scheduler runs the cycle of a group while it evicts other pods
// for it than Berth. While it looks for them it places the group's pods at random among equal
// nodes, and so may come to other victims in each run.
const mostRuns = 10

// scheduleGroup is kube-scheduler's cycle for the group.
func (f *follower) scheduleGroup(done machine.PodGroupDone, list []tried) (want oracle.GroupRecord, err error) {
	var victims []string
	for _, p := range done.Victims {
		victims = append(victims, p.Key())
	}
	slices.Sort(victims)
	for range mostRuns {
		want, err = f.oracle.ScheduleGroup(f.groupPods(list), f.nominatedBeside(done.Group), oracle.Chosen{Placement: done.Placement, Pods: choices(list)})
		if err != nil || slices.Equal(want.Victims, victims) {
			return want, err
		}
	}
	f.differences = append(f.differences, difference{done.Group.String(), fmt.Sprintf("victims: kube-scheduler %v, Berth %v", want.Victims, victims)})
	return want, nil
}

// groupRecord is the decision as kube-scheduler has it: a pod that waits for the others of
// its group is scheduled.
func groupRecord(d *decision.Decision) oracle.Record {
	rec := record(d)
	if d.Result == decision.ResultWaiting {
		rec.Result, rec.Best = oracle.Scheduled, oracle.Best(rec.Nodes)
	}
	return rec
}

// choices are the nodes that Berth chose.
func choices(list []tried) map[types.UID]oracle.Choice {
	all := map[types.UID]oracle.Choice{}
	for _, t := range list {
		node := cmp.Or(t.decision.Node, t.decision.GroupNode)
		all[t.decision.UID] = oracle.Choice{Node: node, Nominated: cmp.Or(t.decision.NominatedNode, node)}
	}
	return all
}

// groupPods lists the pods of the group that wait: those that were tried in that order, then
// those that are kept out of the queue.
func (f *follower) groupPods(list []tried) []*v1.Pod {
	var pods []*v1.Pod
	for _, t := range list {
		pods = append(pods, t.pod)
	}
	group := pods[0]
	for _, p := range f.pods {
		if p.Spec.NodeName == "" && sameGroup(p, group) && !slices.Contains(pods, p) {
			pods = append(pods, p)
		}
	}
	return pods
}

func sameGroup(p, q *v1.Pod) bool {
	return p.Namespace == q.Namespace && p.Spec.SchedulingGroup != nil && *p.Spec.SchedulingGroup.PodGroupName == *q.Spec.SchedulingGroup.PodGroupName
}

// nominatedBeside lists the pods that wait, are nominated, and are not of the group.
func (f *follower) nominatedBeside(group types.NamespacedName) []*v1.Pod {
	var nominated []*v1.Pod
	for _, p := range f.pods {
		g := p.Spec.SchedulingGroup
		if p.Spec.NodeName == "" && p.Status.NominatedNodeName != "" && (g == nil || *g.PodGroupName != group.Name || p.Namespace != group.Namespace) {
			nominated = append(nominated, p)
		}
	}
	return nominated
}

// compareCondition compares what is written of a group. kube-scheduler writes what is new to
// it; so does Berth, and what Berth writes comes after the end of the cycle.
func (f *follower) compareCondition(e machine.PatchGroupStatus) {
	want := "nothing"
	if c := f.condition; c != nil { // the patch leaves out what stays
		want = fmt.Sprintf("%s for %s: %q", cmp.Or(c.Status, metav1.ConditionStatus(e.Condition.Status)), cmp.Or(c.Reason, e.Condition.Reason), c.Message)
	}
	f.condition = nil
	if got := fmt.Sprintf("%s for %s: %q", e.Condition.Status, e.Condition.Reason, e.Condition.Message); got != want {
		f.differences = append(f.differences, difference{e.Group.Key(), "condition of the pod group: kube-scheduler " + want + ", Berth " + got})
	}
}

// withCondition is the group as the story has it, with the condition that the scheduler
// wrote.
func withCondition(o metav1.Object, shown object.Object) {
	g, ok := o.(*schedulingv1alpha2.PodGroup)
	if c := shown.(*object.PodGroup); ok && c.Scheduled.Status != "" {
		g.Status.Conditions = []metav1.Condition{{Type: schedulingv1alpha2.PodGroupScheduled, Status: metav1.ConditionStatus(c.Scheduled.Status),
			Reason: c.Scheduled.Reason, Message: c.Scheduled.Message, ObservedGeneration: c.Scheduled.ObservedGeneration}}
	}
}

// regroup tells kube-scheduler of a pod that waits from now on, or no more.
func (f *follower) regroup(old, now *v1.Pod) {
	switch waited := old != nil && old.Spec.NodeName == ""; {
	case !f.groups || now.Spec.SchedulingGroup == nil:
	case waited && now.Spec.NodeName != "":
		f.oracle.LeaveGroup(old)
	case old == nil && now.Spec.NodeName == "":
		f.oracle.JoinGroup(now)
	}
}
