package preemption

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// configuration enables the plugins that judge a node by itself and the pods
// on it, and has every node looked at, so that chance has no part but in ties.
const configuration = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      disabled: [{name: "*"}]
      enabled:
      - {name: PrioritySort}
      - {name: NodeUnschedulable}
      - {name: NodeName}
      - {name: TaintToleration}
      - {name: NodeAffinity}
      - {name: NodePorts}
      - {name: NodeResourcesFit}
      - {name: DefaultPreemption}
      - {name: DefaultBinder}
  pluginConfig:
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 100, minCandidateNodesAbsolute: 1}
`

var epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

type testCase struct {
	nodes     []*v1.Node
	placed    []*v1.Pod
	nominated []*v1.Pod
	budgets   []*policyv1.PodDisruptionBudget
	pod       *v1.Pod
}

// outcome is what became of the case's pod. Names are sorted.
type outcome struct {
	fits      bool // a node took it: nothing to compare
	message   string
	nominated string
	evicted   []string        // victims that were not on their way out already
	cleared   []string        // pods whose nomination was ended
	victims   []string        // Berth's
	plans     map[string]plan // kube-scheduler's, for each node that has one

	lock sync.Mutex
}

type plan struct {
	victims    []*v1.Pod
	violations int
}

func (p plan) names() []string {
	var names []string
	for _, v := range p.victims {
		names = append(names, v.Name)
	}
	return slices.Sorted(slices.Values(names))
}

// rank is the plan by kube-scheduler's criteria.
func (p plan) rank() []int64 {
	highest, sum, since := int64(-1<<40), int64(0), int64(0)
	for _, v := range p.victims {
		priority, start := int64(*v.Spec.Priority), v.Status.StartTime.Unix()
		if sum += priority + 1<<31; priority > highest || (priority == highest && start < since) {
			highest, since = priority, start
		}
	}
	return []int64{int64(p.violations), highest, sum, int64(len(p.victims)), -since}
}

const cases = 3000

// Berth preempts the victims of one of kube-scheduler's best plans.
func TestSameAsKubeScheduler(t *testing.T) {
	var preempted, refused, ties, violating, cleared int
	for seed := range uint64(cases) {
		c := draw(rand.New(rand.NewPCG(seed, 1)))
		want, got := kube(t, c), berth(t, c)
		if err := compare(want, got); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		switch chosen, ok := want.plans[got.nominated]; {
		case want.fits:
		case !ok || len(got.victims) == 0:
			refused++
		default:
			preempted++
			if chosen.violations > 0 {
				violating++
			}
			if want.nominated != got.nominated {
				ties++
			}
			if len(got.cleared) > 0 {
				cleared++
			}
		}
	}
	t.Logf("%d preemptions (%d violate a budget, %d between equals, %d end nominations), %d refusals", preempted, violating, ties, cleared, refused)
	if preempted < cases/10 || refused < cases/10 || ties == 0 || violating == 0 || cleared == 0 {
		t.Error("too few of a kind")
	}
}

func compare(want, got *outcome) error {
	differ := func(what string, a, b any) error {
		return fmt.Errorf("%s:\nkube-scheduler %v\nBerth          %v", what, a, b)
	}
	switch {
	case want.fits != got.fits:
		return differ("fits", want.fits, got.fits)
	case want.fits:
		return nil
	case strings.Replace(want.message, "on node "+want.nominated+",", "on node "+got.nominated+",", 1) != got.message: // of equals each names its own
		return differ("message", want.message, got.message)
	}
	theirs, preempts := want.plans[want.nominated]
	if !preempts || len(got.victims) == 0 {
		if want.nominated != got.nominated {
			return differ("nomination", want.nominated, got.nominated)
		}
		return nil
	}
	same := want.plans[got.nominated]
	switch {
	case !slices.Equal(theirs.rank(), same.rank()):
		return differ("node", fmt.Sprint(want.nominated, theirs.names(), theirs.rank()), fmt.Sprint(got.nominated, same.names(), same.rank()))
	case !slices.Equal(same.names(), got.victims):
		return differ("victims on "+got.nominated, same.names(), got.victims)
	case want.nominated != got.nominated:
		return nil
	case !slices.Equal(want.evicted, got.evicted):
		return differ("evicted", want.evicted, got.evicted)
	case !slices.Equal(want.cleared, got.cleared):
		return differ("nominations ended", want.cleared, got.cleared)
	}
	return nil
}

func draw(r *rand.Rand) *testCase {
	c := &testCase{}
	for n := range 1 + r.IntN(6) {
		name := fmt.Sprintf("node-%d", n)
		c.nodes = append(c.nodes, node(r, name))
		ports := map[int32]bool{}
		for i := range 1 + r.IntN(6) {
			p := pod(r, fmt.Sprintf("%s-pod-%d", name, i))
			p.Spec.NodeName = name
			for _, port := range p.Spec.Containers[0].Ports {
				if ports[port.HostPort] { // kube-scheduler would count it free when the first of two goes
					p.Spec.Containers[0].Ports = nil
				}
				ports[port.HostPort] = true
			}
			start := metav1.NewTime(epoch.Add(-time.Duration(3*i+r.IntN(3)) * time.Minute)) // no two on a node alike
			p.Status.StartTime = &start
			if r.IntN(12) == 0 {
				p.DeletionTimestamp = &start
				p.Finalizers = []string{"example.com/wait"}
				if r.IntN(2) == 0 {
					p.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler}}
				}
			}
			c.placed = append(c.placed, p)
		}
		if r.IntN(3) == 0 {
			p := pod(r, "nominated-to-"+name)
			p.Status.NominatedNodeName = name
			c.nominated = append(c.nominated, p)
		}
	}
	for i := range r.IntN(5) {
		c.budgets = append(c.budgets, budget(r, fmt.Sprintf("budget-%d", i)))
	}
	c.pod = pod(r, "preemptor")
	*c.pod.Spec.Priority += int32(r.IntN(4))
	c.pod.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = *resource.NewQuantity(int64(1+r.IntN(3)), resource.DecimalSI)
	if r.IntN(4) == 0 {
		c.pod.Status.NominatedNodeName = fmt.Sprintf("node-%d", r.IntN(6))
	}
	if r.IntN(20) == 0 {
		never := v1.PreemptNever
		c.pod.Spec.PreemptionPolicy = &never
	}
	return c
}

func node(r *rand.Rand, name string) *v1.Node {
	amounts := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewQuantity(int64(2+r.IntN(2)), resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(int64(2+r.IntN(5))<<30, resource.BinarySI),
		v1.ResourcePods:   *resource.NewQuantity(int64(4+r.IntN(4)), resource.DecimalSI),
	}
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}, Status: v1.NodeStatus{Allocatable: amounts}}
	if r.IntN(6) == 0 {
		n.Spec.Taints = []v1.Taint{{Key: "team", Effect: v1.TaintEffectNoSchedule}}
	}
	n.Spec.Unschedulable = r.IntN(10) == 0
	return n
}

func pod(r *rand.Rand, name string) *v1.Pod {
	priority, policy := int32(r.IntN(4))-1, v1.PreemptLowerPriority
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, UID: types.UID(name)},
		Spec: v1.PodSpec{SchedulerName: "default-scheduler", Priority: &priority, PreemptionPolicy: &policy, Containers: []v1.Container{{
			Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
				v1.ResourceCPU:    *resource.NewMilliQuantity(int64(r.IntN(4))*500, resource.DecimalSI),
				v1.ResourceMemory: *resource.NewQuantity(int64(r.IntN(4))<<29, resource.BinarySI),
			}},
		}}},
	}
	if r.IntN(4) == 0 {
		p.Namespace = "y"
	}
	if app := r.IntN(4); app > 0 {
		p.Labels = map[string]string{"app": string(rune('a' + app))}
	}
	if r.IntN(5) == 0 {
		p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: int32(80 + r.IntN(2)), Protocol: v1.ProtocolTCP}}
	}
	return p
}

func budget(r *rand.Rand, name string) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name}}
	b.Status.DisruptionsAllowed = int32(max(0, r.IntN(4)-1))
	if r.IntN(4) == 0 {
		b.Namespace = "y"
	}
	switch r.IntN(8) {
	case 0: // none
	case 1:
		b.Spec.Selector = &metav1.LabelSelector{}
	case 2:
		b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Is"}}}
	case 3:
		b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	default:
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": string(rune('a' + 1 + r.IntN(3)))}}
	}
	if r.IntN(3) == 0 {
		b.Status.DisruptedPods = map[string]metav1.Time{fmt.Sprintf("node-%d-pod-%d", r.IntN(6), r.IntN(7)): {}}
	}
	return b
}
