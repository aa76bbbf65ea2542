package conform

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/lab/oracle"
)

// maxNamed is how many pods of a world are tried with a node in their spec.
const maxNamed = 3

// order compares the order in which the queues hand out the pods of the world,
// if they all came before the first is decided. Everywhere else pods are
// handed to both sides one by one.
func (r *run) order() *Disagreement {
	if len(r.world.Pending) == 0 {
		return nil
	}
	want, err := r.want.Order(r.world.Pending)
	if err != nil {
		return r.disagree("queue order: kube-scheduler: " + err.Error())
	}
	got, err := r.got.Order(r.world.Pending)
	if err != nil {
		return r.disagree("queue order: Berth: " + err.Error())
	}
	// That a gate holds on one side alone is for the decisions to show.
	want, got = among(want, got), among(got, want)
	if names(want) == names(got) {
		return nil
	}
	r.step(Step{Order: want, GotOrder: got})
	return r.disagree(fmt.Sprintf("queue order: kube-scheduler %s, Berth %s", names(want), names(got)))
}

// named compares what is said of pods that name a node in their spec. Such
// pods are bound and no queue ever has them, so this asks the plugins alone.
func (r *run) named() *Disagreement {
	for i, pod := range r.world.Pending[:min(maxNamed, len(r.world.Pending))] {
		pod = pod.DeepCopy()
		pod.Spec.SchedulingGates = nil
		pod.Spec.NodeName = "no-such-node"
		if n := len(r.world.Nodes); n > 0 && i > 0 {
			pod.Spec.NodeName = r.world.Nodes[i%n].Name
		}
		want, got := r.want.Decide(pod), r.got.Decide(pod)
		if want.Result == oracle.Gated || want.Result == oracle.Failed {
			continue // no node was asked, or not all
		}
		if diffs := compareNodes(want.Nodes, got.Nodes); len(diffs) > 0 {
			return r.disagree(append([]string{fmt.Sprintf("spec.nodeName: pod %s names %s, which no story can ask", pod.Name, pod.Spec.NodeName)}, diffs...)...)
		}
	}
	return nil
}

// among is those of the pods that are among the others as well.
func among(pods, others []*v1.Pod) []*v1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *v1.Pod) bool { return !slices.Contains(others, p) })
}

func names(pods []*v1.Pod) string {
	var all []string
	for _, p := range pods {
		all = append(all, p.Name)
	}
	return strings.Join(all, " ")
}
