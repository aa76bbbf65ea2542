package podtopologyspread

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

// A pod is requeued by pods and nodes that may change the skew of its constraints, and
// by its own toleration where taints count.
func TestQueueingHints(t *testing.T) {
	p := newPlugin(t, nil)
	honor := v1.NodeInclusionPolicyHonor
	own := podWith(web(v1.LabelTopologyZone))
	strict := podWith(web(v1.LabelTopologyZone, func(c *v1.TopologySpreadConstraint) { c.NodeTaintsPolicy = &honor }))
	byDefault := &object.Pod{UID: "d", Namespace: "a", Labels: map[string]string{"app": "web"}}
	pod := func(namespace, node string, labels map[string]string) *object.Pod {
		return &object.Pod{UID: "other", Namespace: namespace, NodeName: node, Labels: labels}
	}
	isWeb, isDB := map[string]string{"app": "web"}, map[string]string{"app": "db"}
	assigned := func(a framework.ActionType, before, after *object.Pod) framework.Event {
		return framework.Event{Resource: framework.AssignedPod, ActionType: a, OldPod: before, NewPod: after}
	}
	node := func(a framework.ActionType, before, after *object.Node) framework.Event {
		return framework.Event{Resource: framework.Node, ActionType: a, OldNode: before, NewNode: after}
	}
	bare := &object.Node{Name: "n"}
	tainted := nodeIn("n", "a")
	tainted.Taints = []v1.Taint{{Key: "x", Effect: v1.TaintEffectNoSchedule}}
	tolerant := *strict
	tolerant.Tolerations = match.NewTolerations([]v1.Toleration{{Operator: v1.TolerationOpExists}})
	update := framework.Event{Resource: framework.TargetPod, ActionType: framework.UpdatePodToleration}
	with := func(e framework.Event, before, after *object.Pod) framework.Event {
		e.OldPod, e.NewPod = before, after
		return e
	}
	for _, c := range []struct {
		name  string
		pod   *object.Pod
		event framework.Event
		want  bool
	}{
		{"matching pod comes", own, assigned(framework.Add, nil, pod("a", "n", isWeb)), true},
		{"other pod comes", own, assigned(framework.Add, nil, pod("a", "n", isDB)), false},
		{"pod of another namespace", own, assigned(framework.Add, nil, pod("b", "n", isWeb)), false},
		{"matching pod goes", own, assigned(framework.Delete, pod("a", "n", isWeb), nil), true},
		{"other pod goes", own, assigned(framework.Delete, pod("a", "n", isDB), nil), false},
		{"pod stops to match", own, assigned(framework.UpdatePodLabel, pod("a", "n", isWeb), pod("a", "n", isDB)), true},
		{"pod goes on to match", own, assigned(framework.UpdatePodLabel, pod("a", "n", isWeb), pod("a", "n", map[string]string{"app": "web", "x": "y"})), false},
		{"default: any pod of the namespace", byDefault, assigned(framework.Add, nil, pod("a", "n", isDB)), true},
		{"default: other namespace", byDefault, assigned(framework.Add, nil, pod("b", "n", isDB)), false},
		{"toleration, taints honored", &tolerant, with(update, strict, &tolerant), true},
		{"toleration, taints ignored", own, with(update, own, &object.Pod{UID: "new", Namespace: "a", Labels: isWeb, Spread: own.Spread, Tolerations: tolerant.Tolerations}), false},

		{"node comes", own, node(framework.Add, nil, nodeIn("n", "a")), true},
		{"node without the label comes", own, node(framework.Add, nil, bare), false},
		{"node goes", own, node(framework.Delete, nodeIn("n", "a"), nil), true},
		{"node gets the label", own, node(framework.UpdateNodeLabel, bare, nodeIn("n", "a")), true},
		{"node loses the label", own, node(framework.UpdateNodeLabel, nodeIn("n", "a"), bare), true},
		{"node changes domain", own, node(framework.UpdateNodeLabel, nodeIn("n", "a"), nodeIn("n", "b")), true},
		{"node changes another label", own, node(framework.UpdateNodeLabel, nodeIn("n", "a"), nodeIn("m", "a")), false},
		{"node changes taints", own, node(framework.UpdateNodeTaint, nodeIn("n", "a"), tainted), true},
		{"node grows", own, node(framework.UpdateNodeAllocatable, nodeIn("n", "a"), nodeIn("n", "a")), false},
		{"default: any node", byDefault, node(framework.Add, nil, bare), true},
	} {
		if got := plugintest.Queues(p, c.pod, c.event); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
