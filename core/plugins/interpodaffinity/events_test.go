package interpodaffinity

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// A pod is requeued by pods whose coming, going or change may satisfy its terms, and by
// no others.
func TestPodsThatRequeue(t *testing.T) {
	p := mustNew(t, nil)
	elsewhere := func(p *object.Pod) *object.Pod { p.Namespace = "other"; return p }
	inTeam := func(a *v1.Affinity, list *[]v1.PodAffinityTerm) *v1.Affinity {
		(*list)[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
		return a
	}
	friend, foe := by("zone", app("x")), away("zone", app("x"))
	farFriend, farFoe := by("zone", app("x")), away("zone", app("x"))
	inTeam(farFriend, &farFriend.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	inTeam(farFoe, &farFoe.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	for _, c := range []struct {
		what     string
		waiting  *object.Pod
		old, now *object.Pod
		requeues bool
	}{
		{"a friend comes", pod("p", "y", "", friend), nil, pod("q", "x", "n", nil), true},
		{"a friend comes, of two", pod("p", "y", "", by("zone", app("x"), app("z"))), nil, pod("q", "x", "n", nil), false},
		{"a stranger comes", pod("p", "y", "", friend), nil, pod("q", "z", "n", nil), false},
		{"a pod without a node comes", pod("p", "y", "", friend), nil, pod("q", "x", "", nil), false},
		{"a friend goes", pod("p", "y", "", friend), pod("q", "x", "n", nil), nil, false},
		{"R3: the last peer goes", pod("p", "x", "", friend), pod("q", "x", "n", nil), nil, true},
		{"R3: a peer becomes a stranger", pod("p", "x", "", friend), pod("q", "x", "n", nil), pod("q", "z", "n", nil), true},
		{"a stranger becomes a friend", pod("p", "y", "", friend), pod("q", "z", "n", nil), pod("q", "x", "n", nil), true},
		{"a friend stays one", pod("p", "y", "", friend), pod("q", "x", "n", nil), pod("q", "x", "n", nil), false},
		{"a foe goes", pod("p", "y", "", foe), pod("q", "x", "n", nil), nil, true},
		{"a foe goes, of two", pod("p", "y", "", away("zone", app("x"), app("z"))), pod("q", "x", "n", nil), nil, true},
		{"a foe comes", pod("p", "y", "", foe), nil, pod("q", "x", "n", nil), false},
		{"a foe becomes a stranger", pod("p", "y", "", foe), pod("q", "x", "n", nil), pod("q", "z", "n", nil), true},
		{"one that keeps it away goes", pod("p", "x", "", nil), pod("q", "z", "n", foe), nil, true},
		{"one that keeps others away goes", pod("p", "y", "", nil), pod("q", "z", "n", foe), nil, false},
		{"a foe of another namespace goes", pod("p", "y", "", foe), elsewhere(pod("q", "x", "n", nil)), nil, false},
		{"R2: a friend comes, its namespace selected", pod("p", "y", "", farFriend), nil, elsewhere(pod("q", "x", "n", nil)), true},
		{"R2: a foe goes, its namespace selected", pod("p", "y", "", farFoe), elsewhere(pod("q", "x", "n", nil)), nil, true},
		{"R2: one that keeps it away by its namespace goes", pod("p", "x", "", nil), elsewhere(pod("q", "z", "n", farFoe)), nil, true},
	} {
		e := framework.Event{Resource: framework.AssignedPod, ActionType: framework.UpdatePodLabel, OldPod: c.old, NewPod: c.now}
		switch {
		case c.old == nil:
			e.ActionType = framework.Add
		case c.now == nil:
			e.ActionType = framework.Delete
		}
		if got := plugintest.Queues(p, c.waiting, e); got != c.requeues {
			t.Errorf("%s: requeues %v", c.what, got)
		}
	}
}

// A change of its own labels requeues a pod.
func TestOwnLabelsRequeue(t *testing.T) {
	p, old, now := mustNew(t, nil), pod("p", "x", "", nil), pod("p", "y", "", nil)
	e := framework.Event{Resource: framework.TargetPod, ActionType: framework.UpdatePodLabel, OldPod: old, NewPod: now}
	if !plugintest.Queues(p, now, e) {
		t.Error("other labels of the pod itself do not queue it")
	}
}

// A pod is requeued by nodes that come, go or change their labels, and not by what they
// have to give.
func TestNodesThatRequeue(t *testing.T) {
	p, waiting := mustNew(t, nil), pod("p", "x", "", nil)
	a, b := &object.Node{Labels: map[string]string{"zone": "a"}}, &object.Node{Labels: map[string]string{"zone": "b"}}
	for _, c := range []struct {
		old, now *object.Node
		action   framework.ActionType
		requeues bool
	}{
		{nil, a, framework.Add, true},
		{a, nil, framework.Delete, true},
		{a, b, framework.UpdateNodeLabel, true},
		{a, a, framework.UpdateNodeAllocatable, false},
	} {
		if got := plugintest.Queues(p, waiting, framework.Event{Resource: framework.Node, ActionType: c.action, OldNode: c.old, NewNode: c.now}); got != c.requeues {
			t.Errorf("node %v -> %v: requeues %v", c.old, c.now, got)
		}
	}
}

// R1: labels of namespaces queue pods that selectors of namespaces may block.
func TestNamespacesThatRequeue(t *testing.T) {
	p := mustNew(t, nil)
	team := by("zone", app("x"))
	team.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	for _, c := range []struct {
		what      string
		waiting   *object.Pod
		namespace string
		label     string
		requeues  bool
	}{
		{"its own", pod("p", "x", "", nil), "ns", "any", true},
		{"one that it selects now", pod("p", "x", "", team), "other", "team", true},
		{"one that it does not select", pod("p", "x", "", team), "other", "any", false},
		{"one that means nothing to it", pod("p", "x", "", by("zone", app("x"))), "other", "team", false},
	} {
		e := framework.Event{Resource: framework.Namespace, ActionType: framework.UpdateNamespaceLabel,
			OldNamespace: &object.Namespace{Name: c.namespace}, NewNamespace: &object.Namespace{Name: c.namespace, Labels: map[string]string{c.label: "a"}}}
		if got := plugintest.Queues(p, c.waiting, e); got != c.requeues {
			t.Errorf("%s: requeues %v", c.what, got)
		}
	}
}
