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
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// Choice is what the other side chose for a pod of a group: the node on which it was tried,
// and the node that it would have once the group's victims are gone.
type Choice struct{ Node, Nominated string }

// Chosen is what the other side chose for a group: a placement, by name, and for its pods.
type Chosen struct {
	Placement string
	Pods      map[types.UID]Choice
}

// Member is a pod of a group that waits.
type Member struct {
	Pod *v1.Pod
	// Attempts is how often it was tried before.
	Attempts int
}

// GroupRecord is the outcome of one cycle for a pod group.
type GroupRecord struct {
	// Untried is the place in which kube-scheduler's queue keeps the group, if it does not
	// try it.
	Untried GroupPlace
	Pods    map[types.UID]Record
	// Nominated is the node to which a pod is nominated after the cycle, "" for none. A pod
	// whose nomination stays as it is is left out.
	Nominated map[types.UID]string
	// Condition is what is written to the group, nil for nothing.
	Condition *metav1.Condition
	// Victims are the keys of the pods that are evicted for the group, sorted.
	Victims []string
	// Places is where the queue keeps the pods that wait after the cycle.
	Places map[types.UID]GroupPlace
	// Odd lists choices of the other side that are not among the best.
	Odd []string
}

// GroupPlace is where kube-scheduler's queue keeps the pods of a group.
type GroupPlace string

// The places in which a pod of a group may wait.
const (
	GroupIncomplete GroupPlace = "incomplete" // its PodGroup does not exist
	GroupGated      GroupPlace = "gated"      // a PreEnqueue plugin rejects a pod of the group
	GroupBackoff    GroupPlace = "backoff"
	GroupActive     GroupPlace = "active"
	GroupWaits      GroupPlace = "unschedulable" // in no case a group's; other schedulers may have it
)

// JoinGroup records that the pod, which waits, is one of its group.
func (s *Scheduler) JoinGroup(p *v1.Pod) {
	defer Under(s.gates)()
	if s.profiles.HandlesSchedulerName(p.Spec.SchedulerName) {
		s.Cache.AddPodGroupMember(p)
	}
}

// LeaveGroup records that the pod is no more one of those that wait: it is gone, or about to
// be placed.
func (s *Scheduler) LeaveGroup(p *v1.Pod) {
	defer Under(s.gates)()
	s.Cache.RemovePodGroupMember(p)
}

// GroupPlace returns the place in which kube-scheduler's queue keeps a group whose pods all
// come now.
func (s *Scheduler) GroupPlace(members []Member) (GroupPlace, error) {
	defer Under(s.gates)()
	defer s.dequeue(members)
	if err := s.enqueue(members); err != nil {
		return "", err
	}
	return s.places(members)[members[0].Pod.UID], nil
}

// GroupOrder returns the pods and groups in the order in which kube-scheduler's queue hands
// them out when all pods have come in the order given, as the keys that key returns.
func (s *Scheduler) GroupOrder(pods []*v1.Pod, key func(*v1.Pod) string) (order []string, err error) {
	defer Under(s.gates)()
	q := s.SchedulingQueue
	for _, p := range pods {
		if err := s.listed.Add(p); err != nil {
			return nil, err
		}
		q.Add(s.ctx, p)
		defer q.Delete(s.logger, p)
	}
	for len(q.PodsInActiveQ()) > 0 {
		entity, err := q.Pop(s.logger)
		if err != nil {
			return nil, err
		}
		entity.ForEachPodInfo(func(info *framework.QueuedPodInfo) bool {
			if k := key(info.Pod); !slices.Contains(order, k) {
				order = append(order, k)
			}
			q.Done(info.Pod.UID)
			return true
		})
		if g, ok := entity.(*framework.QueuedPodGroupInfo); ok { // else the queue takes it for one whose cycle goes on
			if err := q.AddAttemptedPodGroupIfNeeded(s.logger, g, q.SchedulingCycle(), nil); err != nil {
				return nil, err
			}
		}
	}
	return order, nil
}

// enqueue adds the pods of a group to kube-scheduler's queue.
func (s *Scheduler) enqueue(members []Member) error {
	for _, m := range members {
		if err := s.listed.Add(m.Pod); err != nil {
			return err
		}
		if err := s.awaitEvictions(m.Pod); err != nil {
			return err
		}
		s.SchedulingQueue.Add(s.ctx, m.Pod)
	}
	name := *members[0].Pod.Spec.SchedulingGroup.PodGroupName
	info, there := s.SchedulingQueue.GetPodGroup(name, members[0].Pod.Namespace, fwk.PodGroupKeyType)
	if !there {
		return nil
	}
	for key, list := range info.QueuedPodInfos { // one
		for _, p := range list {
			p.Attempts = members[slices.IndexFunc(members, func(m Member) bool { return m.Pod.UID == p.Pod.UID })].Attempts
		}
		slices.SortFunc(list, framework.PodGroupMemberPodsOrderingFunc)
		info.QueuedPodInfos[key] = list
		for i, p := range list {
			info.UnscheduledPods[i] = p.Pod
		}
	}
	return nil
}

func (s *Scheduler) dequeue(members []Member) {
	for _, m := range members {
		s.SchedulingQueue.Delete(s.logger, m.Pod)
	}
}

// places returns where in kube-scheduler's queue the pods are.
func (s *Scheduler) places(members []Member) map[types.UID]GroupPlace {
	all, q := map[types.UID]GroupPlace{}, s.SchedulingQueue
	for place, pods := range map[GroupPlace][]*v1.Pod{ // any order: no pod is in two
		GroupIncomplete: q.IncompletePodGroupPodsPods(), GroupGated: q.UnschedulablePods(),
		GroupBackoff: q.PodsInBackoffQ(), GroupActive: q.PodsInActiveQ(), "pending": q.PendingPodGroupPods(),
	} {
		for _, p := range pods {
			if slices.ContainsFunc(members, func(m Member) bool { return m.Pod.UID == p.UID }) {
				all[p.UID] = place
			}
		}
	}
	return all
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
	nominated  map[types.UID]string
	odd        []string
	trial      bool // the group is tried without pods that may have to go for it
	victims    []*v1.Pod
	ended      chan struct{} // closed: bindings may fail
	undone     chan struct{} // one for each binding that failed
	err        error
}

// ScheduleGroup takes the waiting pods of a group through one cycle of kube-scheduler, while
// other pods are nominated. Where several nodes, or placements, are as good, it takes the one
// chosen, as what comes after depends on that.
//
// Its bindings fail and nobody is evicted, so that the cluster stays as it is.
func (s *Scheduler) ScheduleGroup(members []Member, nominated []*v1.Pod, chosen Chosen) (GroupRecord, error) {
	defer Under(s.gates)()
	c := &groupCycle{s: s, chosen: chosen, records: map[types.UID]*Record{}, failed: map[types.UID]bool{},
		nominated: map[types.UID]string{}, ended: make(chan struct{}), undone: make(chan struct{}, len(members))}
	defer s.dequeue(members)
	if err := s.enqueue(members); err != nil {
		return GroupRecord{}, err
	}
	if place := s.places(members)[members[0].Pod.UID]; place != GroupActive {
		return GroupRecord{Untried: place}, nil
	}
	defer c.replace(nominated)()
	s.client.ClearActions()
	s.Scheduler.ScheduleOne(s.ctx)
	for _, p := range nominated {
		s.SchedulingQueue.Delete(s.logger, p)
	}
	c.choose()
	places := s.places(members)
	close(c.ended)
	for range len(c.records) - len(c.failed) {
		select {
		case <-c.undone:
		case <-time.After(evictionTimeout):
			return GroupRecord{}, errors.New("a binding did not come to its end")
		}
	}
	return c.result(places)
}

// replace puts the cycle's functions in the place of kube-scheduler's; the function that it
// returns puts these back. The nominated pods are in the queue once the group is popped: of
// others kube-scheduler sees but the names.
func (c *groupCycle) replace(nominated []*v1.Pod) (restore func()) {
	s := c.s.Scheduler
	schedulePod, failureHandler, profiles, next := s.SchedulePod, s.FailureHandler, s.Profiles, s.NextEntity
	s.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		entity, err := next(logger)
		for _, p := range nominated {
			c.err = cmp.Or(c.err, c.s.listed.Add(p), c.s.awaitEvictions(p))
			s.SchedulingQueue.Add(c.s.ctx, p)
		}
		return entity, err
	}
	s.SchedulePod = func(ctx context.Context, f framework.Framework, state fwk.CycleState, info *framework.QueuedPodInfo) (scheduler.ScheduleResult, error) {
		l := &listener{Framework: f, filtered: map[string]*fwk.Status{}}
		result, err := schedulePod(ctx, l, state, info)
		return c.decided(l, info.Pod, result, err)
	}
	s.FailureHandler = c.handleFailure
	s.Profiles = profile.Map{}
	for name, f := range profiles { // any order: a map
		s.Profiles[name] = groupFramework{f, c}
	}
	return func() {
		s.SchedulePod, s.FailureHandler, s.Profiles, s.NextEntity = schedulePod, failureHandler, profiles, next
	}
}

// decided records what was found for the pod, and returns the node chosen where it is as
// good.
func (c *groupCycle) decided(l *listener, p *v1.Pod, result scheduler.ScheduleResult, err error) (scheduler.ScheduleResult, error) {
	rec := &Record{Pod: p.Namespace + "/" + p.Name, Result: Unschedulable}
	if err := c.s.fillNodes(rec, l, p.Spec.SchedulerName); err != nil {
		c.err = err
	}
	choice := c.chosen.Pods[p.UID].Nominated
	if !c.trial {
		choice = c.chosen.Pods[p.UID].Node
		if c.records[p.UID] != nil { // the next placement is tried
			c.records = map[types.UID]*Record{}
		}
		if n := len(c.placements); len(c.records) == 0 && len(c.tries) < n {
			c.tries[c.placements[len(c.tries)]] = c.records
		}
		c.records[p.UID] = rec
	}
	if err != nil {
		return result, err
	}
	if nominated := p.Status.NominatedNodeName; result.SuggestedHost == nominated {
		rec.Nodes = slices.DeleteFunc(rec.Nodes, func(n Node) bool { return n.Name != nominated })
	}
	rec.Result, rec.Best = Scheduled, Best(rec.Nodes)
	if slices.Contains(rec.Best, choice) {
		result.SuggestedHost = choice
	}
	rec.Node = result.SuggestedHost
	return result, nil
}

// handleFailure records what is said of a pod that is not placed, and gives it back to the
// queue. What it is told after the cycle is of a binding that was made to fail.
func (c *groupCycle) handleFailure(_ context.Context, _ framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, _ time.Time) {
	select {
	case <-c.ended:
		c.s.SchedulingQueue.Done(info.Pod.UID)
		c.undone <- struct{}{}
		return
	default:
	}
	c.choose()
	uid := info.Pod.UID
	c.failed[uid] = true
	rec := c.records[uid]
	if rec == nil {
		rec = &Record{Pod: info.Pod.Namespace + "/" + info.Pod.Name}
		c.records[uid] = rec
	}
	if node := c.chosen.Pods[uid].Node; node != "" && rec.Node != "" && rec.Node != node {
		c.odd = append(c.odd, fmt.Sprintf("%s is tried on %s, kube-scheduler's best are %v", rec.Pod, node, rec.Best))
	}
	rec.Result, rec.Message, rec.Node, rec.Best = Unschedulable, status.Message(), "", nil
	info = info.DeepCopy()
	info.ClearRejectorPlugins()
	var fit *framework.FitError
	if errors.As(status.AsError(), &fit) {
		info.UnschedulablePlugins, info.PendingPlugins = fit.Diagnosis.UnschedulablePlugins, fit.Diagnosis.PendingPlugins
		rec.Plugins = sets.List(fit.Diagnosis.UnschedulablePlugins.Union(fit.Diagnosis.PendingPlugins))
	}
	if !status.IsRejected() {
		rec.Result = Failed
	}
	if nominating.Mode() == fwk.ModeOverride {
		c.nominated[uid] = nominating.NominatedNodeName
	}
	if err := c.s.SchedulingQueue.AddUnschedulablePodIfNotPresent(c.s.logger, info, c.s.SchedulingQueue.SchedulingCycle()); err != nil {
		c.err = err
	}
}

func (c *groupCycle) result(places map[types.UID]GroupPlace) (GroupRecord, error) {
	r := GroupRecord{Pods: map[types.UID]Record{}, Nominated: c.nominated, Places: places, Odd: c.odd}
	for uid, rec := range c.records { // any order: a map
		r.Pods[uid] = *rec
	}
	for _, p := range c.victims {
		r.Victims = append(r.Victims, p.Namespace+"/"+p.Name)
	}
	slices.Sort(r.Victims)
	for _, where := range c.elsewhere.Range {
		r.Odd = append(r.Odd, fmt.Sprintf("kube-scheduler chooses another placement than %q: %v", c.chosen.Placement, where))
	}
	for _, a := range c.s.client.Actions() {
		patch, ok := a.(clienttesting.PatchAction)
		if !ok || a.GetResource().Resource != "podgroups" || a.GetSubresource() != "status" {
			continue
		}
		var g schedulingv1beta1.PodGroup
		if err := json.Unmarshal(patch.GetPatch(), &g); err != nil {
			return r, fmt.Errorf("patch of a pod group: %w", err)
		}
		for i := range g.Status.Conditions {
			r.Condition = &g.Status.Conditions[i]
		}
	}
	return r, c.err
}

// choose sets the records to those of the placement that was chosen, or reported.
func (c *groupCycle) choose() {
	records := c.tries[c.chosen.Placement]
	if records == nil && len(c.placements) > 0 {
		records = c.tries[c.placements[0]]
	}
	if records != nil {
		c.records = records
	}
}

// groupFramework is a profile in a cycle for a pod group.
type groupFramework struct {
	framework.Framework
	cycle *groupCycle
}

// RunPlacementGeneratePlugins returns the placements in the order of their names.
func (f groupFramework) RunPlacementGeneratePlugins(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, nodes []fwk.NodeInfo) ([]*fwk.Placement, *fwk.Status) {
	placements, status := f.Framework.RunPlacementGeneratePlugins(ctx, state, group, nodes)
	slices.SortFunc(placements, func(a, b *fwk.Placement) int { return cmp.Compare(a.Name, b.Name) })
	if c := f.cycle; !c.trial {
		c.tries = map[string]map[types.UID]*Record{}
		for _, p := range placements {
			c.placements = append(c.placements, p.Name)
		}
	}
	return placements, status
}

// RunPlacementScorePlugins prefers the placement chosen where it is as good as any.
func (f groupFramework) RunPlacementScorePlugins(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, of []*fwk.PodGroupAssignments, states []fwk.PlacementCycleState) ([]fwk.PlacementPluginScores, *fwk.Status) {
	scores, status := f.Framework.RunPlacementScorePlugins(ctx, state, group, of, states)
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

// RunPodGroupPostFilterPlugins records which pods the plugins would evict, and evicts none.
func (f groupFramework) RunPodGroupPostFilterPlugins(ctx context.Context, state *framework.CycleState, group fwk.PodGroupInfo, try fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	f.cycle.trial = true
	defer func() { f.cycle.trial = false }()
	i := slices.IndexFunc(f.PreEnqueuePlugins(), func(p fwk.PreEnqueuePlugin) bool { return p.Name() == defaultpreemption.Name })
	if i < 0 {
		return f.Framework.RunPodGroupPostFilterPlugins(ctx, state, group, try)
	}
	executor := f.PreEnqueuePlugins()[i].(*defaultpreemption.DefaultPreemption).Executor
	evict := executor.PreemptPod
	defer func() { executor.PreemptPod = evict }()
	var mu sync.Mutex
	executor.PreemptPod = func(_ context.Context, c preemption.Candidate, _ preemption.ExecutorPreemptor, _ *v1.Pod, _ string) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		f.cycle.victims = c.Victims().Pods // every eviction names all
		return false, nil
	}
	result, status := f.Framework.RunPodGroupPostFilterPlugins(ctx, state, group, try)
	for start := time.Now(); executor.IsPodGroupRunningPreemption(group.GetPodGroup().UID) && time.Since(start) < evictionTimeout; {
		time.Sleep(time.Millisecond)
	}
	mu.Lock()
	defer mu.Unlock()
	return result, status
}

// AddWaitingPod does nothing: WaitOnPermit ends the wait.
func (f groupFramework) AddWaitingPod(*v1.Pod, map[string]time.Duration) {}

// WaitOnPermit fails the binding once the cycle has ended.
func (f groupFramework) WaitOnPermit(_ context.Context, p *v1.Pod) *fwk.Status {
	<-f.cycle.ended
	if rec := f.cycle.records[p.UID]; rec != nil && rec.Node != p.Spec.NodeName {
		f.cycle.elsewhere.Store(p.UID, p.Name+" is on "+p.Spec.NodeName)
	}
	return fwk.NewStatus(fwk.Error, "the oracle binds no pod")
}
