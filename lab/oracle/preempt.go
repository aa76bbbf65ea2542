package oracle

import (
	"errors"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// plans has DefaultPreemption try every node once more and records its plan
// for the nominated node, and all others that are as good.
func (s *Scheduler) plans(rec *Record, f framework.Framework, state fwk.CycleState, pod *v1.Pod, statuses fwk.NodeToStatusReader) error {
	var plugin *defaultpreemption.DefaultPreemption
	for _, p := range f.PreEnqueuePlugins() {
		if found, ok := p.(*defaultpreemption.DefaultPreemption); ok {
			plugin = found
		}
	}
	if plugin == nil {
		return errors.New("a node is nominated, and not by DefaultPreemption")
	}
	lister := s.snapshot.NodeInfos()
	nodes, err := statuses.NodesForStatusCode(lister, fwk.Unschedulable)
	if err != nil {
		return err
	}
	budgets, err := f.SharedInformerFactory().Policy().V1().PodDisruptionBudgets().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	candidates, _, err := plugin.Evaluator.DryRunPreemption(s.ctx, state, pod, nodes, budgets, 0, int32(len(nodes)))
	if err != nil && len(candidates) == 0 {
		return err
	}
	if candidates, err = s.reviewed(pod, candidates, plugin.Evaluator); err != nil {
		return err
	}
	var chosen *extenderv1.Victims
	for _, c := range candidates {
		if c.Name() == rec.Nominated {
			chosen, rec.Victims = c.Victims(), victims(c.Victims())
		}
	}
	if chosen == nil {
		return errors.New("nominated node " + rec.Nominated + " is no candidate when asked again")
	}
	for _, c := range candidates {
		if cost(c.Victims()) == cost(chosen) {
			rec.Plans = append(rec.Plans, Plan{c.Name(), victims(c.Victims())})
		}
	}
	slices.SortFunc(rec.Plans, func(a, b Plan) int { return strings.Compare(a.Node, b.Node) })
	return nil
}

// criteria are what kube-scheduler compares candidates by.
type criteria struct {
	violations, sum int64
	highest         int32
	count           int
	start           int64 // of the longest running of the highest, in seconds
}

func cost(v *extenderv1.Victims) criteria {
	c := criteria{violations: v.NumPDBViolations, highest: corev1helpers.PodPriority(v.Pods[0]), count: len(v.Pods)}
	for _, p := range v.Pods {
		c.sum += int64(corev1helpers.PodPriority(p)) + math.MaxInt32 + 1
	}
	if start := util.GetEarliestPodStartTime(v); start != nil {
		c.start = start.Unix()
	}
	return c
}

func victims(v *extenderv1.Victims) []string {
	var names []string
	for _, p := range v.Pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	slices.Sort(names)
	return names
}
