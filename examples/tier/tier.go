// Package tier is a first plugin, written against k8s.io/kube-scheduler/framework: it
// runs in kube-scheduler and in Berth without a change. A pod with the label
// example.com/tier goes to nodes of that tier alone, and every pod prefers nodes with
// few pods.
package tier

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/kube-scheduler/framework"
)

// Name is what a configuration calls the plugin.
const Name = "Tier"

const label = "example.com/tier"

// Args are the plugin's arguments.
type Args struct {
	// MaxPods is how many pods a node may have to score at all; 100 without.
	MaxPods int64 `json:"maxPods"`
}

// Plugin is the plugin.
type Plugin struct{ args Args }

var (
	_ framework.FilterPlugin      = &Plugin{}
	_ framework.ScorePlugin       = &Plugin{}
	_ framework.EnqueueExtensions = &Plugin{}
)

// New makes the plugin for a profile.
func New(_ context.Context, args runtime.Object, _ framework.Handle) (framework.Plugin, error) {
	pl := &Plugin{Args{MaxPods: 100}}
	if raw, ok := args.(*runtime.Unknown); ok {
		if err := json.Unmarshal(raw.Raw, &pl.args); err != nil {
			return nil, err
		}
	}
	if pl.args.MaxPods < 1 {
		return nil, fmt.Errorf("maxPods: Invalid value: %d: must be at least 1", pl.args.MaxPods)
	}
	return pl, nil
}

// Name is the plugin's name.
func (pl *Plugin) Name() string { return Name }

// Filter rejects nodes of another tier.
func (pl *Plugin) Filter(_ context.Context, _ framework.CycleState, pod *v1.Pod, node framework.NodeInfo) *framework.Status {
	if tier := pod.Labels[label]; tier != "" && tier != node.Node().Labels[label] {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, "node(s) are of another tier")
	}
	return nil
}

// Score is 100 for a node without pods, and 0 for one with MaxPods.
func (pl *Plugin) Score(_ context.Context, _ framework.CycleState, _ *v1.Pod, node framework.NodeInfo) (int64, *framework.Status) {
	free := max(0, pl.args.MaxPods-int64(len(node.GetPods())))
	return 100 * free / pl.args.MaxPods, nil
}

// ScoreExtensions is nil: scores are final.
func (pl *Plugin) ScoreExtensions() framework.ScoreExtensions { return nil }

// EventsToRegister lists what may help a pod that Filter rejected.
func (pl *Plugin) EventsToRegister(context.Context) ([]framework.ClusterEventWithHint, error) {
	return []framework.ClusterEventWithHint{{
		Event:          framework.ClusterEvent{Resource: framework.Node, ActionType: framework.Add | framework.UpdateNodeLabel},
		QueueingHintFn: ofTier,
	}}, nil
}

// ofTier: the node is of the pod's tier now.
func ofTier(_ klog.Logger, pod *v1.Pod, _, changed any) (framework.QueueingHint, error) {
	node, ok := changed.(*v1.Node)
	if !ok {
		return framework.Queue, fmt.Errorf("unexpected %T", changed)
	}
	if pod.Labels[label] == node.Labels[label] {
		return framework.Queue, nil
	}
	return framework.QueueSkip, nil
}
