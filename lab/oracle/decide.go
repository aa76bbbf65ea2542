package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
)

// Decide makes one attempt for the pod, as one scheduling cycle up to the
// choice of a node, and records it. The cluster stays as it is: Assume places
// the pod.
func (s *Scheduler) Decide(pod *v1.Pod) Record {
	defer Under(s.gates)()
	rec := Record{Pod: pod.Namespace + "/" + pod.Name}
	f, err := s.framework(pod)
	if err != nil {
		return rec.failed(err)
	}
	for _, plugin := range f.PreEnqueuePlugins() {
		if plugin.Name() == defaultpreemption.Name {
			continue // it waits for evictions, which are over at once here
		}
		if status := plugin.PreEnqueue(s.ctx, pod); !status.IsSuccess() {
			rec.Result, rec.Message, rec.Plugins = Gated, status.Message(), []string{plugin.Name()}
			return rec
		}
	}
	if err := s.listed.Add(pod); err != nil {
		return rec.failed(err)
	}
	info, _ := framework.NewPodInfo(pod) // kube-scheduler's queue takes in pods whose terms do not parse
	if err := s.Cache.UpdateSnapshot(s.logger, s.snapshot); err != nil {
		return rec.failed(err)
	}
	l := &listener{Framework: f, filtered: map[string]*fwk.Status{}}
	state := framework.NewCycleState()
	state.Write(framework.PodsToActivateKey, framework.NewPodsToActivate())
	result, err := s.SchedulePod(s.ctx, l, state, &framework.QueuedPodInfo{PodInfo: info})
	if err := s.fillNodes(&rec, l, pod.Spec.SchedulerName); err != nil {
		return rec.failed(err)
	}
	if len(s.Extenders) > 0 {
		extended(&rec, l, result, err)
	}
	if err == nil {
		if nominated := pod.Status.NominatedNodeName; result.SuggestedHost == nominated {
			rec.Nodes = slices.DeleteFunc(rec.Nodes, func(n Node) bool { return n.Name != nominated })
		}
		rec.Result, rec.Best, rec.Node = Scheduled, Best(rec.Nodes), result.SuggestedHost
		return rec
	}
	return s.reject(rec, f, state, pod, err)
}

// DecideBeside is Decide while other pods, which are pending and nominated to
// nodes, count there.
func (s *Scheduler) DecideBeside(pod *v1.Pod, nominated []*v1.Pod) (Record, error) {
	for _, p := range nominated {
		if err := s.listed.Add(p); err != nil {
			return Record{}, err
		}
		if err := s.awaitEvictions(p); err != nil {
			return Record{}, err
		}
		s.SchedulingQueue.Add(s.ctx, p)
		defer s.SchedulingQueue.Delete(s.logger, p)
	}
	return s.Decide(pod), nil
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

// reject records why no node was found, after PostFilter had its chance.
func (s *Scheduler) reject(rec Record, f framework.Framework, state fwk.CycleState, pod *v1.Pod, cause error) Record {
	rec.Result = Unschedulable
	if errors.Is(cause, scheduler.ErrNoNodesAvailable) {
		rec.Message = cause.Error()
		return rec
	}
	var fit *framework.FitError
	if !errors.As(cause, &fit) {
		return rec.failed(cause)
	}
	if f.HasPostFilterPlugins() {
		result, status := f.RunPostFilterPlugins(s.ctx, state, pod, fit.Diagnosis.NodeToStatus)
		fit.Diagnosis.PostFilterMsg = status.Message()
		if result != nil && result.NominatingInfo != nil && result.NominatedNodeName != "" {
			rec.Result, rec.Nominated = Preempting, result.NominatedNodeName
			if err := s.plans(&rec, f, state, pod, fit.Diagnosis.NodeToStatus); err != nil {
				return rec.failed(err)
			}
		}
	}
	rec.Message = fit.Error()
	rec.Plugins = sets.List(fit.Diagnosis.UnschedulablePlugins.Union(fit.Diagnosis.PendingPlugins))
	return rec
}

func (r Record) failed(err error) Record {
	r.Result, r.Message = Failed, err.Error()
	return r
}

// listener is a profile that notes what it answered in one attempt.
type listener struct {
	framework.Framework
	narrowedBy []string    // plugins whose PreFilter narrowed the nodes
	preFilter  *fwk.Status // rejection of the pod as a whole
	filtered   map[string]*fwk.Status
	scored     []fwk.NodePluginScores
}

func (l *listener) RunPreFilterPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) {
	result, status, narrowedBy := l.Framework.RunPreFilterPlugins(ctx, state, pod)
	l.narrowedBy = sets.List(narrowedBy)
	if !status.IsSuccess() {
		l.preFilter = status
	}
	return result, status, narrowedBy
}

func (l *listener) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	status := l.Framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
	l.filtered[node.Node().Name] = status
	return status
}

func (l *listener) RunScorePlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, *fwk.Status) {
	scored, status := l.Framework.RunScorePlugins(ctx, state, pod, nodes)
	l.scored = scored
	return scored, status
}

// verdict is the status of a node: what Filter said, or what PreFilter left
// for the nodes that Filter never saw. Nil means feasible.
func (l *listener) verdict(node string) *fwk.Status {
	if status, seen := l.filtered[node]; seen {
		return status
	}
	status := l.preFilter
	if status == nil {
		status = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", l.narrowedBy))
	}
	if status.Plugin() == "" {
		status = status.Clone().WithPlugin(strings.Join(l.narrowedBy, ","))
	}
	return status
}

// fillNodes writes down every node of the snapshot.
func (s *Scheduler) fillNodes(rec *Record, l *listener, profile string) error {
	infos, err := s.snapshot.ListNodesInPlacement()
	if err != nil {
		return err
	}
	scored := map[string]fwk.NodePluginScores{}
	for _, n := range l.scored {
		scored[n.Name] = n
	}
	for _, info := range infos {
		n := Node{Name: info.Node().Name}
		status := l.verdict(n.Name)
		if n.Feasible = status.IsSuccess(); !n.Feasible {
			n.Plugin, n.Code, n.Reasons = status.Plugin(), status.Code().String(), status.Reasons()
		}
		for _, score := range scored[n.Name].Scores {
			weight := s.weights[profile][score.Name]
			n.Scores = append(n.Scores, Score{Plugin: score.Name, Score: score.Score / weight, Weight: weight})
		}
		n.Total = scored[n.Name].TotalScore
		rec.Nodes = append(rec.Nodes, n)
	}
	slices.SortFunc(rec.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// Best is the feasible nodes with the highest total.
func Best(nodes []Node) []string {
	var names []string
	top := int64(-1)
	for _, n := range nodes {
		if !n.Feasible || n.Total < top {
			continue
		}
		if n.Total > top {
			names, top = nil, n.Total
		}
		names = append(names, n.Name)
	}
	return names
}
