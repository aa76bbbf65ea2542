package compat

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// adaptPlacement sets the native plugin's points for pod groups to functions that call the
// hosted plugin, as far as it implements them.
func (h *Host) adaptPlacement(native *framework.Plugin, p *hostedPlugin) {
	if p.generate == nil && p.placementScore == nil {
		return
	}
	_ = h.podGroupObjects() // GetPodGroup wants them
	native.PodGroup = &framework.PodGroupPlugin{}
	if p.generate != nil {
		native.PodGroup.GeneratePlacements = func(c *framework.PlacementCall, parent framework.Placement) ([]framework.Placement, *decision.Status) {
			return h.generatePlacements(p, c, parent)
		}
	}
	if p.placementScore == nil {
		return
	}
	native.PodGroup.ScorePlacement = func(c *framework.PlacementCall, a *framework.PodGroupAssignments) (int64, *decision.Status) {
		return h.scorePlacement(p, c, a)
	}
	if x := p.placementScore.PlacementScoreExtensions(); x != nil {
		native.PodGroup.NormalizePlacementScore = func(c *framework.PlacementCall, all []*framework.PodGroupAssignments, scores []int64) *decision.Status {
			return h.normalizePlacements(p, x, c, all, scores)
		}
	}
}

// podGroupInfo is the fwk.PodGroupInfo of the group whose cycle is under way.
type podGroupInfo struct {
	*framework.PlacementCall
	object *schedulingv1beta1.PodGroup
}

// GetName returns the PodGroup's name.
func (g podGroupInfo) GetName() string { return g.Group.Name }

// GetNamespace returns the PodGroup's namespace.
func (g podGroupInfo) GetNamespace() string { return g.Group.Namespace }

// GetUnscheduledPods returns the pods of the group that the cycle tries.
func (g podGroupInfo) GetUnscheduledPods() []*v1.Pod {
	pods := make([]*v1.Pod, len(g.Pods))
	for i, p := range g.Pods {
		pods[i] = APIPod(p)
	}
	return pods
}

// GetType returns PodGroupKeyType.
func (g podGroupInfo) GetType() fwk.EntityKeyType { return fwk.PodGroupKeyType }

// GetKey returns the group's key as text.
func (g podGroupInfo) GetKey() string {
	return fwk.PodGroupKey(g.Group.Namespace, g.Group.Name).String()
}

// GetPodGroup returns the PodGroup's API object; nil if the informer does not have it.
func (g podGroupInfo) GetPodGroup() *schedulingv1beta1.PodGroup { return g.object }

// GetCompositePodGroup returns nil: there are none.
func (g podGroupInfo) GetCompositePodGroup() *schedulingv1alpha3.CompositePodGroup { return nil }

// GetChildren returns nil: only composite pod groups have children.
func (g podGroupInfo) GetChildren() []fwk.PodGroupInfo { return nil }

// proposed is the fwk.ProposedAssignment of a pod to the node that was found for it.
type proposed struct {
	pod   *podInfo
	node  string
	state fwk.CycleState
}

// GetPod returns the pod.
func (a proposed) GetPod() *v1.Pod { return a.pod.pod }

// GetPodInfo returns the pod.
func (a proposed) GetPodInfo() fwk.PodInfo { return a.pod }

// GetNodeName returns the node's name.
func (a proposed) GetNodeName() string { return a.node }

// GetCycleState returns the state of the pod's attempt in the placement.
func (a proposed) GetCycleState() fwk.CycleState { return a.state }

// callForGroup calls a plugin at a point for the group of c: f gets the context, the group's state
// and its description. Each call has Options.Timeout, and counts as a call for the group's first
// pod. It returns an error if f panics, is overdue or may not run.
func (h *Host) callForGroup(point string, p *hostedPlugin, c *framework.PlacementCall, f func(ctx context.Context, state fwk.PodGroupCycleState, g fwk.PodGroupInfo)) error {
	ctx, cancel := context.WithCancelCause(h.logging)
	defer cancel(errCycleEnded)
	state, group := h.groupState(c.Group), podGroupInfo{PlacementCall: c}
	group.object, _ = h.podGroupObjects().Get(c.Group.Namespace, c.Group.Name)
	return h.callOnce(c.Pods[0].UID, point, p.name, func() { f(ctx, state, group) })
}

// generatePlacements calls the plugin's GeneratePlacements. parent is the set of nodes
// to divide. It returns a status if the plugin rejects the group, fails, or returns a
// node that does not exist.
func (h *Host) generatePlacements(p *hostedPlugin, c *framework.PlacementCall, parent framework.Placement) ([]framework.Placement, *decision.Status) {
	all := &fwk.Placement{Name: parent.Name, Nodes: h.nodesOf(c.Table, parent.Rows)}
	var result *fwk.GeneratePlacementsResult
	var status *fwk.Status
	err := h.callForGroup("GeneratePlacements", p, c, func(ctx context.Context, state fwk.PodGroupCycleState, g fwk.PodGroupInfo) {
		result, status = p.generate.GeneratePlacements(ctx, state, g, all)
	})
	switch {
	case err != nil:
		return nil, failure(err)
	case !status.IsSuccess():
		if s := statusOf(status); s.Code.Rejects() {
			return nil, s
		}
		return nil, failure(errorOf(status))
	case result == nil:
		return nil, nil
	}
	var list []framework.Placement
	for _, placement := range result.Placements {
		rows, err := rowsOf(c.Table, placement)
		if err != nil {
			return nil, failure(fmt.Errorf("plugin %q: failed to assume pod group placement: %w", p.name, err))
		}
		list = append(list, framework.Placement{Name: placement.Name, Rows: rows, Shown: placement})
	}
	return list, nil
}

// nodesOf returns the NodeInfos of the rows, as the table is now.
func (h *Host) nodesOf(t *table.Table, rows []table.Row) []fwk.NodeInfo {
	snapshot := h.snapshots.refresh(t)
	nodes := make([]fwk.NodeInfo, len(rows))
	for i, r := range rows {
		nodes[i] = snapshot.at(r)
	}
	return nodes
}

// rowsOf returns the rows of the placement's nodes, sorted and without duplicates. It returns an
// error for a nil placement, and for a node that is nil or not in the table.
func rowsOf(t *table.Table, p *fwk.Placement) ([]table.Row, error) {
	if p == nil {
		return nil, errors.New("a placement is nil")
	}
	rows := make([]table.Row, 0, len(p.Nodes))
	for _, n := range p.Nodes {
		if n == nil || n.Node() == nil {
			return nil, fmt.Errorf("a node in placement %q is nil", p.Name)
		}
		r, ok := t.Find(n.Node().Name)
		if !ok {
			return nil, fmt.Errorf("node %s in placement is not present in snapshot", n.Node().Name)
		}
		rows = append(rows, r)
	}
	slices.Sort(rows)
	return slices.Compact(rows), nil
}

// assignments converts a placement, with the nodes found for the group's pods, to what
// plugins get. All plugins of the cycle get the same object, with the Placement that a
// plugin made.
func (h *Host) assignments(c *framework.PlacementCall, a *framework.PodGroupAssignments) *fwk.PodGroupAssignments {
	h.groupState(c.Group)
	if shown := h.lastGroup.assignments[a]; shown != nil {
		return shown
	}
	shown := &fwk.PodGroupAssignments{}
	if shown.Placement, _ = a.Shown.(*fwk.Placement); shown.Placement == nil {
		shown.Placement = &fwk.Placement{Name: a.Name, Nodes: h.nodesOf(c.Table, a.Rows)}
	}
	try := h.lastGroup.tries[a.Name]
	for _, x := range a.ProposedAssignments {
		shown.ProposedAssignments = append(shown.ProposedAssignments, proposed{newPodInfo(x.Pod, ""), c.Table.Name(x.Row), try.pods[x.Pod.UID]})
	}
	h.lastGroup.assignments[a] = shown
	return shown
}

// scorePlacement calls the plugin's ScorePlacement for one placement.
func (h *Host) scorePlacement(p *hostedPlugin, c *framework.PlacementCall, a *framework.PodGroupAssignments) (int64, *decision.Status) {
	shown, state := h.assignments(c, a), h.lastGroup.tries[a.Name].state
	var score int64 // not a result: the plugin may write it late
	var status *fwk.Status
	err := h.callForGroup("ScorePlacement", p, c, func(ctx context.Context, _ fwk.PodGroupCycleState, g fwk.PodGroupInfo) {
		score, status = p.placementScore.ScorePlacement(ctx, state, g, shown)
	})
	switch {
	case err != nil:
		return 0, failure(err)
	case !status.IsSuccess():
		return 0, failure(errorOf(status))
	}
	return score, nil
}

// normalizePlacements calls the plugin's NormalizePlacementScore and writes its results to
// scores, which has one element for each of all.
func (h *Host) normalizePlacements(p *hostedPlugin, x fwk.PlacementScoreExtensions, c *framework.PlacementCall, all []*framework.PodGroupAssignments, scores []int64) *decision.Status {
	list := make([]fwk.PlacementScore, len(all)) // the plugin may keep it
	for i, a := range all {
		list[i] = fwk.PlacementScore{Placement: h.assignments(c, a).Placement, Score: scores[i]}
	}
	var status *fwk.Status
	err := h.callForGroup("NormalizePlacementScore", p, c, func(ctx context.Context, state fwk.PodGroupCycleState, g fwk.PodGroupInfo) {
		status = x.NormalizePlacementScore(ctx, state, g, list)
	})
	switch {
	case err != nil:
		return failure(err)
	case !status.IsSuccess():
		return failure(errorOf(status))
	}
	for i := range scores {
		scores[i] = list[i].Score
	}
	return nil
}
