package oracle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// Choice is what the other side chose for a pod of a group: the node, or the node on which
// it would preempt.
type Choice struct{ Node, Nominated string }

// GroupRecord is what one cycle for a pod group came to.
type GroupRecord struct {
	Pods map[types.UID]Record
	// Condition is what is written of the group, nil for nothing.
	Condition *metav1.Condition
	// Victims are the keys of the pods that are evicted for the group as a whole, sorted.
	Victims []string
}

// JoinGroup has the pod, which waits, be one of its group.
func (s *Scheduler) JoinGroup(p *v1.Pod) {
	defer Under(s.gates)()
	s.Cache.AddPodGroupMember(p)
}

// LeaveGroup ends that: the pod is gone, or about to be placed.
func (s *Scheduler) LeaveGroup(p *v1.Pod) {
	defer Under(s.gates)()
	s.Cache.RemovePodGroupMember(p)
}

// groupCycle is a cycle for a pod group that is under way.
type groupCycle struct {
	s      *Scheduler
	chosen Chosen
	// records are those of the placement that is tried, or was chosen; tries are those of
	// all placements, by name.
	records    map[types.UID]*Record
	tries      map[string]map[types.UID]*Record
	placements []string // in the order in which they are tried
	elsewhere  sync.Map // pods that are placed otherwise than their record says
	failed     map[types.UID]bool
	trial      bool          // the group is tried without pods that may have to go for it
	victims    []*v1.Pod     // that go for it
	ended      chan struct{} // closed: bindings may fail
	undone     chan struct{} // one for each binding that failed
	err        error
}

// Chosen is what the other side chose for a group: a placement, by name, and for its pods.
type Chosen struct {
	Placement string
	Pods      map[types.UID]Choice
}

// ScheduleGroup has kube-scheduler take the pods of a group that wait through one cycle, in
// the order given as far as they have one priority, while other pods are nominated. Where
// several nodes, or placements, are as good it takes the one chosen, as what comes after
// depends on that.
// Its bindings fail, so that the cluster stays as it is.
func (s *Scheduler) ScheduleGroup(members, nominated []*v1.Pod, chosen Chosen) (GroupRecord, error) {
	defer Under(s.gates)()
	c := &groupCycle{s: s, chosen: chosen, records: map[types.UID]*Record{}, failed: map[types.UID]bool{},
		ended: make(chan struct{}), undone: make(chan struct{}, len(members))}
	defer c.replace()()
	for _, p := range nominated { // of pods that are in no queue kube-scheduler sees but the names
		if err := s.listed.Add(p); err != nil {
			return GroupRecord{}, err
		}
		if err := s.enqueueRejected(Rejected{Pod: p, Plugins: []string{names.NodeResourcesFit}}); err != nil {
			return GroupRecord{}, err
		}
		defer s.SchedulingQueue.Delete(p)
	}
	for _, p := range members {
		if err := s.listed.Add(p); err != nil {
			return GroupRecord{}, err
		}
		if err := s.awaitEvictions(p); err != nil {
			return GroupRecord{}, err
		}
		s.SchedulingQueue.Add(s.ctx, p)
		defer s.SchedulingQueue.Delete(p)
	}
	if len(s.SchedulingQueue.PodsInActiveQ()) == 0 {
		return GroupRecord{}, errors.New("kube-scheduler has no pod of the group to try")
	}
	s.client.ClearActions()
	s.Scheduler.ScheduleOne(s.ctx)
	c.choose()
	close(c.ended)
	for range len(c.records) - len(c.failed) {
		select {
		case <-c.undone:
		case <-time.After(evictionTimeout):
			return GroupRecord{}, errors.New("a binding did not come to its end")
		}
	}
	return c.result()
}

// awaitEvictions waits until kube-scheduler's evictions for the pod, which go on beside, are
// through: they hold it back from the queue.
func (s *Scheduler) awaitEvictions(p *v1.Pod) error {
	f, err := s.framework(p)
	if err != nil {
		return nil // the cycle says so
	}
	for _, plugin := range f.PreEnqueuePlugins() {
		for start := time.Now(); plugin.Name() == defaultpreemption.Name && !plugin.PreEnqueue(s.ctx, p).IsSuccess(); time.Sleep(time.Millisecond) {
			if time.Since(start) > evictionTimeout {
				return fmt.Errorf("pod %s/%s: is held back from the queue", p.Namespace, p.Name)
			}
		}
	}
	return nil
}

// replace puts the cycle's functions in place of kube-scheduler's; what it returns puts
// these back.
func (c *groupCycle) replace() (restore func()) {
	s := c.s.Scheduler
	schedulePod, failureHandler, profiles := s.SchedulePod, s.FailureHandler, s.Profiles
	s.SchedulePod = func(ctx context.Context, f framework.Framework, state fwk.CycleState, info *framework.QueuedPodInfo) (scheduler.ScheduleResult, error) {
		l := &listener{Framework: f, filtered: map[string]*fwk.Status{}}
		result, err := schedulePod(ctx, l, state, info)
		return c.decided(l, info.Pod, result, err)
	}
	s.FailureHandler = c.handleFailure
	s.Profiles = profile.Map{}
	for name, f := range profiles {
		s.Profiles[name] = groupFramework{f, c}
	}
	return func() { s.SchedulePod, s.FailureHandler, s.Profiles = schedulePod, failureHandler, profiles }
}

// decided notes what was found for the pod, and takes the node chosen where it is as good.
func (c *groupCycle) decided(l *listener, p *v1.Pod, result scheduler.ScheduleResult, err error) (scheduler.ScheduleResult, error) {
	if c.trial {
		return result, err
	}
	rec := &Record{Pod: p.Namespace + "/" + p.Name, Result: Unschedulable}
	if c.records[p.UID] != nil { // the next placement is tried
		c.records = map[types.UID]*Record{}
	}
	if n := len(c.placements); len(c.records) == 0 && len(c.tries) < n {
		c.tries[c.placements[len(c.tries)]] = c.records
	}
	c.records[p.UID] = rec
	if err := c.s.fillNodes(rec, l, p.Spec.SchedulerName); err != nil {
		c.err = err
	}
	if err != nil {
		return result, err
	}
	if nominated := p.Status.NominatedNodeName; result.SuggestedHost == nominated {
		for _, n := range rec.Nodes {
			if n.Name == nominated {
				rec.Nodes = []Node{n}
			}
		}
	}
	rec.Result, rec.Best = Scheduled, Best(rec.Nodes)
	for _, name := range rec.Best {
		if name == c.chosen.Pods[p.UID].Node {
			result.SuggestedHost = name
		}
	}
	rec.Node = result.SuggestedHost
	return result, nil
}

// handleFailure notes what is said of a pod that is not placed. What it says after the
// cycle is of a binding that was made to fail.
func (c *groupCycle) handleFailure(_ context.Context, _ framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, _ time.Time) {
	c.s.SchedulingQueue.Done(info.Pod.UID)
	select {
	case <-c.ended:
		c.undone <- struct{}{}
		return
	default:
	}
	c.choose()
	c.failed[info.Pod.UID] = true
	rec := c.records[info.Pod.UID]
	if rec == nil {
		rec = &Record{Pod: info.Pod.Namespace + "/" + info.Pod.Name}
		c.records[info.Pod.UID] = rec
	}
	rec.Result, rec.Message, rec.Node, rec.Best = Unschedulable, status.Message(), "", nil
	var fit *framework.FitError
	if errors.As(status.AsError(), &fit) {
		rec.Plugins = sets.List(fit.Diagnosis.UnschedulablePlugins.Union(fit.Diagnosis.PendingPlugins))
	}
	switch nominated := nominating.Mode() == fwk.ModeOverride && nominating.NominatedNodeName != ""; {
	case !status.IsRejected():
		rec.Result = Failed
	case nominated && fit != nil:
		rec.Result, rec.Nominated = Preempting, nominating.NominatedNodeName
	default: // a pod that fits is nominated to its node while others preempt
		rec.Nominated, rec.Victims = "", nil
	}
}

func (c *groupCycle) result() (GroupRecord, error) {
	r := GroupRecord{Pods: map[types.UID]Record{}}
	for uid, rec := range c.records {
		r.Pods[uid] = *rec
	}
	for _, p := range c.victims {
		r.Victims = append(r.Victims, p.Namespace+"/"+p.Name)
	}
	slices.Sort(r.Victims)
	for _, where := range c.elsewhere.Range {
		c.err = fmt.Errorf("kube-scheduler chooses another placement than %q: %v", c.chosen.Placement, where)
	}
	for _, a := range c.s.client.Actions() {
		patch, ok := a.(clienttesting.PatchAction)
		if !ok || a.GetResource().Resource != "podgroups" || a.GetSubresource() != "status" {
			continue
		}
		var g schedulingv1alpha2.PodGroup
		if err := json.Unmarshal(patch.GetPatch(), &g); err != nil {
			return r, fmt.Errorf("patch of a pod group: %w", err)
		}
		for i := range g.Status.Conditions {
			r.Condition = &g.Status.Conditions[i]
		}
	}
	return r, c.err
}

// groupFramework is a profile in a cycle for a pod group.
type groupFramework struct {
	framework.Framework
	cycle *groupCycle
}

// RunPostFilterPlugins nominates the node chosen where another is nominated. Which ones
// would do is in the record.
func (f groupFramework) RunPostFilterPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	result, status := f.Framework.RunPostFilterPlugins(ctx, state, pod, statuses)
	if result == nil || result.NominatingInfo == nil || result.NominatedNodeName == "" {
		return result, status
	}
	rec := f.cycle.records[pod.UID]
	rec.Nominated = result.NominatedNodeName
	if err := f.cycle.s.plans(rec, f.Framework, state, pod, statuses); err != nil {
		f.cycle.err = err
	}
	for _, p := range rec.Plans {
		if p.Node == f.cycle.chosen.Pods[pod.UID].Nominated {
			result = framework.NewPostFilterResultWithNominatedNode(p.Node)
			rec.Nominated, rec.Victims = p.Node, p.Victims
		}
	}
	return result, status
}

// RunPlacementGeneratePlugins has the placements in the order of their names.
func (f groupFramework) RunPlacementGeneratePlugins(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, nodes []fwk.NodeInfo) ([]*fwk.Placement, *fwk.Status) {
	placements, status := f.Framework.RunPlacementGeneratePlugins(ctx, state, group, nodes)
	slices.SortFunc(placements, func(a, b *fwk.Placement) int { return cmp.Compare(a.Name, b.Name) })
	f.cycle.tries = map[string]map[types.UID]*Record{}
	for _, p := range placements {
		f.cycle.placements = append(f.cycle.placements, p.Name)
	}
	return placements, status
}

// RunPlacementScorePlugins takes the placement chosen where it is as good as any.
func (f groupFramework) RunPlacementScorePlugins(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, of []*fwk.PodGroupAssignments) ([]fwk.PlacementPluginScores, *fwk.Status) {
	scores, status := f.Framework.RunPlacementScorePlugins(ctx, state, group, of)
	if len(scores) == 0 {
		return scores, status
	}
	total := func(a, b fwk.PlacementPluginScores) int { return cmp.Compare(a.TotalScore, b.TotalScore) }
	best := slices.MaxFunc(scores, total).TotalScore
	for i := range scores {
		if s := &scores[i]; s.Placement.Name == f.cycle.chosen.Placement && s.TotalScore == best {
			s.TotalScore++
		}
	}
	return scores, status
}

// choose has the records be those of the placement that was chosen.
func (c *groupCycle) choose() {
	if records := c.tries[c.chosen.Placement]; records != nil {
		c.records = records
	}
}

// WaitOnPermit has the binding fail once the cycle has ended.
func (f groupFramework) WaitOnPermit(_ context.Context, p *v1.Pod) *fwk.Status {
	<-f.cycle.ended
	if rec := f.cycle.records[p.UID]; rec != nil && rec.Node != p.Spec.NodeName {
		f.cycle.elsewhere.Store(p.UID, p.Name+" is on "+p.Spec.NodeName)
	}
	return fwk.NewStatus(fwk.Error, "the oracle binds no pod")
}
