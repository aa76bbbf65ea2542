package compat

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1 "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// What lets a plugin run the others: PostFilter plugins try what would be if pods
// were not there.

// RunFilterPlugins runs the profile's Filter plugins for the pod on the node with the pods of
// nodeInfo: Berth's own on the loop, hosted ones on this goroutine with the state. It returns the
// status of the first plugin, in the profile's order, that rejects the node or fails; nil if none
// does.
func (h *handle) RunFilterPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodeInfo fwk.NodeInfo) *fwk.Status {
	if nodeInfo == nil || nodeInfo.Node() == nil {
		return fwk.AsStatus(fmt.Errorf("node not found"))
	}
	native := h.tryNative(pod, nodeInfo)
	for _, p := range h.at(pointFilter) {
		if native != nil && h.place(pointFilter, native.Plugin) < h.place(pointFilter, p.name) {
			break
		}
		if state != nil && state.GetSkipFilterPlugins().Has(p.name) {
			continue
		}
		if s := p.filter.Filter(ctx, state, pod, nodeInfo); !s.IsSuccess() {
			if !s.IsRejected() {
				s = fwk.AsStatus(fmt.Errorf("running %q filter plugin: %w", p.name, errorOf(s)))
			}
			return s.WithPlugin(p.name)
		}
	}
	return hosted(native)
}

// tryNative runs Berth's own Filter plugins for the pod on the node with the pods of nodeInfo, on
// the loop. It returns the first rejection; nil if the pod fits; an error if the loop does not
// answer.
func (h *handle) tryNative(pod *v1.Pod, nodeInfo fwk.NodeInfo) *decision.Status {
	var pods []*object.Pod
	for _, p := range nodeInfo.GetPods() {
		pods = append(pods, coreInfo(p))
	}
	name := nodeInfo.Node().Name
	var status *decision.Status
	err := h.ask(func() { status = h.machine.TryFit(h.name, corePod(pod), name, pods) })
	if err != nil {
		return failure(err)
	}
	return status
}

// coreInfo returns core's pod of a PodInfo. It decodes one that a plugin has made.
func coreInfo(p fwk.PodInfo) *object.Pod {
	if info, ok := p.(*podInfo); ok {
		return info.object
	}
	return corePod(p.GetPod())
}

// corePod decodes an API object to core's pod.
func corePod(p *v1.Pod) *object.Pod {
	pod := decode.Pod(p)
	pod.API = p
	return pod
}

// RunFilterPluginsWithNominatedPods runs RunFilterPlugins with the pods added that are nominated to
// the node and have no lower priority, then without them. Both runs must pass. If there are no such
// pods, it is one run.
func (h *handle) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	with, withState, added := info, state, false
	for _, p := range h.NominatedPodsForNode(info.Node().Name) {
		if corev1.PodPriority(p.GetPod()) < corev1.PodPriority(pod) || p.GetPod().UID == pod.UID {
			continue
		}
		if !added {
			with, withState, added = info.Snapshot(), state.Clone(), true
		}
		with.AddPodInfo(p)
		if s := h.RunPreFilterExtensionAddPod(ctx, withState, pod, p, with); !s.IsSuccess() {
			return fwk.AsStatus(s.AsError())
		}
	}
	if s := h.RunFilterPlugins(ctx, withState, pod, with); !s.IsSuccess() || !added {
		return s
	}
	return h.RunFilterPlugins(ctx, state, pod, info)
}

// RunPreFilterExtensionAddPod calls AddPod of the hosted PreFilter plugins for a pod
// that the caller has added to info for a trial.
func (h *handle) RunPreFilterExtensionAddPod(ctx context.Context, state fwk.CycleState, pod *v1.Pod, added fwk.PodInfo, info fwk.NodeInfo) *fwk.Status {
	c := &cycle{host: h.Host, pod: pod, ctx: ctx}
	return c.addPod(state, added, info)
}

// RunPreFilterExtensionRemovePod calls RemovePod of the hosted PreFilter plugins for a
// pod that the caller has removed from info for a trial.
func (h *handle) RunPreFilterExtensionRemovePod(ctx context.Context, state fwk.CycleState, pod *v1.Pod, removed fwk.PodInfo, info fwk.NodeInfo) *fwk.Status {
	c := &cycle{host: h.Host, pod: pod, ctx: ctx}
	return c.removePod(state, removed, info)
}

// RunReservePluginsReserve calls Reserve of the hosted plugins, until one fails, and returns its
// status. Berth's own plugins are not called: they reserve only what is decided.
func (h *handle) RunReservePluginsReserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	for _, p := range h.at(pointReserve) {
		s := p.reserve.Reserve(ctx, state, pod, node)
		switch {
		case s.IsRejected():
			return s.WithPlugin(p.name)
		case !s.IsSuccess():
			return fwk.AsStatus(fmt.Errorf("running Reserve plugin %q: %w", p.name, errorOf(s)))
		}
	}
	return nil
}

// RunReservePluginsUnreserve calls Unreserve of the hosted plugins, the last one first.
func (h *handle) RunReservePluginsUnreserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	for _, p := range slices.Backward(h.at(pointReserve)) {
		p.reserve.Unreserve(ctx, state, pod, node)
	}
}

// RunPreScorePlugins calls PreScore of the hosted plugins, until one fails, and sets those that
// return Skip in the state. Berth's own plugins are not called: they keep no state.
func (h *handle) RunPreScorePlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	skipped := sets.New[string]()
	defer func() { state.SetSkipScorePlugins(skipped) }()
	for _, p := range h.at(pointPreScore) {
		s := p.preScore.PreScore(ctx, state, pod, nodes)
		switch {
		case s.IsSkip():
			skipped.Insert(p.name)
		case !s.IsSuccess():
			return fwk.AsStatus(fmt.Errorf("running PreScore plugin %q: %w", p.name, errorOf(s)))
		}
	}
	return nil
}

// RunScorePlugins returns the weighted scores of the nodes, in their order: by Berth's own
// plugins for the nodes as they are now, by hosted ones for nodes and state as given. Raw
// scores are those of hosted plugins alone.
func (h *handle) RunScorePlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, *fwk.Status) {
	out, names := make([]fwk.NodePluginScores, len(nodes)), make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Node().Name
		out[i].Name = names[i]
	}
	native := map[string][]decision.Score{}
	var failed *decision.Status
	if err := h.ask(func() { native, failed = h.machine.TryScores(h.name, corePod(pod), names) }); err != nil {
		return nil, fwk.AsStatus(err)
	}
	if failed != nil {
		return nil, hosted(failed)
	}
	for i := range out {
		for _, s := range native[out[i].Name] {
			out[i].Scores = append(out[i].Scores, fwk.PluginScore{Name: s.Plugin, Score: s.Score * s.Weight})
			out[i].TotalScore += s.Score * s.Weight
		}
	}
	c := &cycle{host: h.Host, pod: pod, ctx: ctx}
	for _, p := range h.at(pointScore) {
		if state.GetSkipScorePlugins().Has(p.name) {
			continue
		}
		scores := make([]int64, len(nodes))
		if err := askScores(c, state, p, nodes, scores); err != nil {
			return nil, fwk.AsStatus(err)
		}
		for i, score := range scores {
			out[i].RawScores = append(out[i].RawScores, fwk.PluginScore{Name: p.name, Score: score})
		}
		if err := normalizeNodes(c, state, p, nodes, scores); err != nil {
			return nil, fwk.AsStatus(err)
		}
		for i, score := range scores {
			if score < fwk.MinScore || score > fwk.MaxScore {
				return nil, fwk.AsStatus(fmt.Errorf("applying score defaultWeights on Score plugins: plugin %q returns an invalid score %v, it should in the range of [%v, %v] after normalizing",
					p.name, score, fwk.MinScore, fwk.MaxScore))
			}
			weighted := score * h.weights[p.name]
			out[i].Scores = append(out[i].Scores, fwk.PluginScore{Name: p.name, Score: weighted})
			out[i].TotalScore += weighted
		}
	}
	for i := range out {
		slices.SortStableFunc(out[i].Scores, func(a, b fwk.PluginScore) int {
			return h.place(pointScore, a.Name) - h.place(pointScore, b.Name)
		})
	}
	return out, nil
}
