package compat_test

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"

	. "github.com/berth-scheduler/berth/scheduler/schedulertest"
)

// asking is a plugin whose PostFilter asks what a test wants to know of the handle.
type asking struct {
	named
	handle fwk.Handle
	ask    func(ctx context.Context, h fwk.Handle, state fwk.CycleState, p *v1.Pod, nodes []fwk.NodeInfo) string
	said   chan string
	asked  int // filters
	score  int64
}

func (a *asking) Filter(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) *fwk.Status {
	a.asked++
	return fwk.NewStatus(fwk.Unschedulable, "the plugin says no")
}
func (a *asking) PreScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	if len(nodes) == 0 {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}
func (a *asking) Score(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) (int64, *fwk.Status) {
	return a.score, nil
}
func (a *asking) ScoreExtensions() fwk.ScoreExtensions { return nil }
func (a *asking) PostFilter(ctx context.Context, state fwk.CycleState, p *v1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	nodes, err := a.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	select {
	case a.said <- a.ask(ctx, a.handle, state, p, nodes):
	default:
	}
	return nil, fwk.NewStatus(fwk.Unschedulable)
}

// answer is what the plugin's question brings about the pod big, which the plugin rejects
// everywhere and for which node a is too small.
func (a *asking) answer(t *testing.T, first bool, opts ...Option) string {
	a.said = make(chan string, 1)
	c := New(t, append(opts, WithPlugin("P", with(func(h fwk.Handle) fwk.Plugin { a.named, a.handle = "P", h; return a })),
		WithConfig(func(c *configv1.KubeSchedulerConfiguration) {
			plugins := c.Profiles[0].Plugins
			plugins.PostFilter.Disabled = []configv1.Plugin{{Name: "DefaultPreemption"}}
			if first {
				plugins.Filter.Enabled = []configv1.Plugin{{Name: "P"}}
				plugins.Score.Enabled = []configv1.Plugin{{Name: "P", Weight: new(int32(2))}}
			}
		}))...)
	big := Pod("big")
	big.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = Node("x").Status.Allocatable[v1.ResourceMemory]
	c.Add(Node("a"), big)
	return <-a.said
}

// A plugin that runs the filters is told of the first in the profile's order that rejects
// the node, be it one of Berth's or a hosted one, and those behind it are not asked.
func TestRunFilterPluginsInOrder(t *testing.T) {
	for _, tc := range []struct {
		first bool
		want  string
	}{
		{true, "P: the plugin says no, 1 asked"},
		{false, "NodeResourcesFit: Insufficient cpu, 0 asked"},
	} {
		a := &asking{}
		a.ask = func(ctx context.Context, h fwk.Handle, state fwk.CycleState, p *v1.Pod, nodes []fwk.NodeInfo) string {
			a.asked = 0
			s := h.RunFilterPlugins(ctx, state, p, nodes[0])
			return fmt.Sprintf("%s: %s, %d asked", s.Plugin(), s.Message(), a.asked)
		}
		if got := a.answer(t, tc.first); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

// The filters that run are those of the plugin's profile, whatever scheduler a pod names
// that is made up for a try.
func TestRunFilterPluginsForAnothersPod(t *testing.T) {
	a := &asking{}
	a.ask = func(ctx context.Context, h fwk.Handle, state fwk.CycleState, p *v1.Pod, nodes []fwk.NodeInfo) string {
		p = p.DeepCopy()
		p.Spec.SchedulerName = "another"
		return h.RunFilterPlugins(ctx, state, p, nodes[0]).Message()
	}
	if got := a.answer(t, false); got != "Insufficient cpu" {
		t.Errorf("got %q", got)
	}
}

// Scores come in the profile's order, weighted, and a plugin that PreScore skipped once
// is asked again when PreScore runs again and does not skip it.
func TestRunScorePluginsInOrder(t *testing.T) {
	a := &asking{score: 7}
	a.ask = func(ctx context.Context, h fwk.Handle, state fwk.CycleState, p *v1.Pod, nodes []fwk.NodeInfo) string {
		if s := h.RunPreScorePlugins(ctx, state, p, nil); !s.IsSuccess() || !state.GetSkipScorePlugins().Equal(sets.New("P")) {
			return fmt.Sprintf("without nodes: %v, skipped %v", s, state.GetSkipScorePlugins())
		}
		if s := h.RunPreScorePlugins(ctx, state, p, nodes); !s.IsSuccess() {
			return s.Message()
		}
		scores, s := h.RunScorePlugins(ctx, state, p, nodes)
		if !s.IsSuccess() || len(scores) != 1 || len(scores[0].Scores) < 2 {
			return fmt.Sprintf("%v: %+v", s, scores)
		}
		total := int64(0)
		for _, score := range scores[0].Scores {
			total += score.Score
		}
		return fmt.Sprintf("%s %d, total %t, raw %v", scores[0].Scores[0].Name, scores[0].Scores[0].Score, total == scores[0].TotalScore, scores[0].RawScores)
	}
	if got := a.answer(t, true); got != "P 14, total true, raw [{P 7}]" {
		t.Errorf("got %q", got)
	}
}

// reserver notes what it is asked to reserve, and refuses one node.
type reserver struct {
	named
	refuses string
	said    *[]string
}

func (r reserver) Reserve(_ context.Context, _ fwk.CycleState, p *v1.Pod, node string) *fwk.Status {
	*r.said = append(*r.said, fmt.Sprint("+", r.Name(), " ", p.Name, " ", node))
	switch r.refuses {
	case node:
		return fwk.NewStatus(fwk.Unschedulable, "refused")
	case "fails":
		return fwk.NewStatus(fwk.Error, "broken")
	}
	return nil
}

func (r reserver) Unreserve(_ context.Context, _ fwk.CycleState, _ *v1.Pod, node string) {
	*r.said = append(*r.said, fmt.Sprint("-", r.Name(), " ", node))
}

// A plugin may try reservations: they end with the first plugin that refuses or fails, and are
// undone in reverse order.
func TestRunReservePlugins(t *testing.T) {
	for refuses, want := range map[string]string{
		"":      "<nil>; [+Q big a +R big a -R a -Q a]",
		"a":     "R: refused; [+Q big a +R big a -R a -Q a]",
		"fails": `: running Reserve plugin "R": broken; [+Q big a +R big a -R a -Q a]`,
	} {
		var said []string
		a := &asking{}
		a.ask = func(ctx context.Context, h fwk.Handle, state fwk.CycleState, p *v1.Pod, _ []fwk.NodeInfo) string {
			s := h.RunReservePluginsReserve(ctx, state, p, "a")
			h.RunReservePluginsUnreserve(ctx, state, p, "a")
			if s == nil {
				return fmt.Sprint("<nil>; ", said)
			}
			return fmt.Sprintf("%s: %s; %v", s.Plugin(), s.Message(), said)
		}
		got := a.answer(t, false, WithPlugin("Q", with(func(fwk.Handle) fwk.Plugin { return reserver{"Q", "", &said} })),
			WithPlugin("R", with(func(fwk.Handle) fwk.Plugin { return reserver{"R", refuses, &said} })))
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
