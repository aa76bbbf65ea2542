package nodeunschedulable

import (
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

func pod(tolerations ...v1.Toleration) *object.Pod {
	return &object.Pod{UID: "1", Tolerations: match.NewTolerations(tolerations)}
}

var (
	open   = &object.Node{Name: "open"}
	marked = &object.Node{Name: "cordoned", Unschedulable: true}
)

// A cordoned node fits only pods that tolerate the unschedulable taint, and their
// signature tells them apart.
func TestFilter(t *testing.T) {
	tb := plugintest.Table(open, marked)
	blocked := map[string]string{"open": "", "cordoned": "UnschedulableAndUnresolvable: node(s) were unschedulable"}
	for _, c := range []struct {
		name string
		pod  *object.Pod
		want map[string]string
	}{
		{"no tolerations", pod(), blocked},
		{"tolerates the taint", pod(v1.Toleration{Key: v1.TaintNodeUnschedulable, Operator: v1.TolerationOpExists}), nil},
		{"tolerates it with its effect", pod(v1.Toleration{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}), nil},
		{"tolerates everything", pod(v1.Toleration{Operator: v1.TolerationOpExists}), nil},
		{"tolerates another effect", pod(v1.Toleration{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoExecute}), blocked},
		{"tolerates another value", pod(v1.Toleration{Key: v1.TaintNodeUnschedulable, Value: "x"}), blocked},
	} {
		t.Run(c.name, func(t *testing.T) {
			pl := New(feature.Features{})
			if got := plugintest.Ask(t, pl, tb, c.pod).Blocked; !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if (string(pl.Sign(nil, nil, c.pod)) == string(pl.Sign(nil, nil, pod()))) != (c.want != nil) {
				t.Errorf("signature %q", string(pl.Sign(nil, nil, c.pod)))
			}
		})
	}
}

// A pod is requeued by a node that is open now and was not, and when it comes to
// tolerate the taint.
func TestQueueingHints(t *testing.T) {
	exempt := pod(v1.Toleration{Operator: v1.TolerationOpExists})
	node := func(action framework.ActionType, old, now *object.Node) framework.Event {
		return framework.Event{Resource: framework.Node, ActionType: action, OldNode: old, NewNode: now}
	}
	tolerates := func(now *object.Pod) framework.Event {
		return framework.Event{Resource: framework.TargetPod, ActionType: framework.UpdatePodToleration, OldPod: pod(), NewPod: now}
	}
	for _, c := range []struct {
		name  string
		event framework.Event
		want  bool
	}{
		{"an open node comes", node(framework.Add, nil, open), true},
		{"a cordoned node comes", node(framework.Add, nil, marked), false},
		{"uncordoned", node(framework.UpdateNodeTaint, marked, open), true},
		{"stays cordoned", node(framework.UpdateNodeTaint, marked, marked), false},
		{"was open before", node(framework.UpdateNodeTaint, open, open), false},
		{"the pod tolerates now", tolerates(exempt), true},
		{"the pod tolerates something else now", tolerates(pod(v1.Toleration{Key: "x"})), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := plugintest.Queues(New(feature.Features{}), pod(), c.event); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A node that is uncordoned fits again.
func TestReopenedNodeFits(t *testing.T) {
	tb, pl := plugintest.Table(&object.Node{Name: open.Name, Unschedulable: true}), New(feature.Features{})
	if got := plugintest.Ask(t, pl, tb, pod()).Blocked[open.Name]; got == "" {
		t.Error("the cordoned node fits")
	}
	tb.SetNode(open)
	if got := plugintest.Ask(t, pl, tb, pod()).Blocked[open.Name]; got != "" {
		t.Errorf("the node that was uncordoned: %q", got)
	}
}
