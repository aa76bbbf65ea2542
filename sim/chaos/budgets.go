package chaos

import (
	"errors"
	"strconv"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/sim/apiserver"
)

const (
	disruptionBudgets = "poddisruptionbudgets.policy"
	appLabel          = "app"
	hostLabel         = "host"
)

// budget says how many pods of an application may go.
func (p *play) budget(words []string) error {
	if len(words) != 2 {
		return errors.New("want an application and a number")
	}
	n, err := strconv.ParseInt(words[1], 10, 32)
	if err != nil || n < 0 {
		return errors.New("want an application and a number")
	}
	if p.server.Get(disruptionBudgets, v1.NamespaceDefault, words[0]) != nil {
		return p.server.Update(disruptionBudgets, v1.NamespaceDefault, words[0], func(o apiserver.Object) {
			o.(*policyv1.PodDisruptionBudget).Status.DisruptionsAllowed = int32(n)
		})
	}
	return p.server.Create(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceDefault, Name: words[0]},
		Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: words[0]}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(n)}})
}

// sparing looks that a process which preempts pods against a budget could do no
// better: on no other node would the pod fit if only pods went that no budget covers.
func (c *check) sparing(proc *process, k *cluster, d *decision.Decision) {
	pod, budget := c.specs[d.UID], ""
	left := map[string]int32{}
	for name, allowed := range k.budgets { // any order: a copy
		left[name] = allowed
	}
	for _, victim := range d.Victims {
		for uid, p := range k.pods { // any order: one has the name
			if app := c.applicationOf(uid); p.NamespacedName() == victim {
				if n, covered := left[app]; covered {
					if left[app]--; n <= 0 {
						budget = app
					}
				}
			}
		}
	}
	if budget == "" || pod == nil || len(pod.Spec.Volumes)+len(pod.Spec.ResourceClaims) > 0 || managed(pod) || constrained(pod) {
		return
	}
	for name := range k.nodes { // any order: one is reported
		if name != d.NominatedNode && c.sparesThere(k, pod, name) {
			c.note("%s preempts pods of node %s for pod %s against budget %s, and node %s needs none that a budget covers",
				proc.name, d.NominatedNode, d.Pod, budget, name)
			return
		}
	}
}

func (c *check) applicationOf(uid types.UID) string {
	if p := c.specs[uid]; p != nil {
		return p.Labels[appLabel]
	}
	return ""
}

// sparesThere tells whether the pod surely does not fit on the node as it is, and
// would if pods of less priority went that no budget covers.
func (c *check) sparesThere(k *cluster, pod *v1.Pod, node string) bool {
	n := k.nodes[node]
	if n.Unschedulable || !selected(pod, n.Labels) {
		return false
	}
	w, room := c.as(k, pod), amounts{n.Allocatable.MilliCPU, n.Allocatable.Memory, n.AllowedPods}
	now, then := requestsOf(pod), requestsOf(pod)
	for _, l := range w.sure {
		if l.node == node {
			now = now.plus(requestsOf(l.pod))
		}
	}
	for _, l := range w.perhaps {
		if _, covered := k.budgets[l.pod.Labels[appLabel]]; l.node == node && (covered || priority(l.pod) >= priority(pod)) {
			then = then.plus(requestsOf(l.pod))
		}
	}
	for uid, to := range k.hoped { // any order: a sum
		if p := c.specs[uid]; to == node && uid != pod.UID && p != nil {
			then = then.plus(requestsOf(p))
		}
	}
	return !now.within(room) && then.within(room)
}

func selected(pod *v1.Pod, labels map[string]string) bool {
	for key, value := range pod.Spec.NodeSelector { // any order: all must hold
		if labels[key] != value {
			return false
		}
	}
	return true
}
