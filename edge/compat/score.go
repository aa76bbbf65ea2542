package compat

import (
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// adaptScore sets PreScore and Score.
func (h *Host) adaptScore(native *framework.Plugin, p *hostedPlugin) {
	if p.preScore != nil {
		native.PreScoreRows = func(_ *table.Table, pod *object.Pod, feasible []table.Row) framework.PreScoreResult {
			return h.cycleOf(pod).preScore(p, feasible)
		}
	}
	if p.score != nil {
		native.Bounded = p.score.ScoreExtensions() == nil
		native.ScoreRows = func(in *framework.Input, feasible []table.Row, out []int64) *decision.Status {
			return h.cycleOf(in.Pod).score(p, feasible, out)
		}
	}
}

// infos are the nodes of rows.
func (c *cycle) infos(rows []table.Row) []fwk.NodeInfo {
	list := make([]fwk.NodeInfo, len(rows))
	for i, r := range rows {
		list[i] = c.snapshot.at(r)
	}
	return list
}

func (c *cycle) preScore(p *hostedPlugin, feasible []table.Row) framework.PreScoreResult {
	var status *fwk.Status
	nodes := c.infos(feasible)
	err := c.call("PreScore", p.name, func() { status = p.preScore.PreScore(c.ctx, c.state, c.pod, nodes) })
	switch {
	case err != nil:
		return framework.PreScoreResult{Status: failure(err)}
	case status.IsSkip():
		c.state.SetSkipScorePlugins(sets.New(p.name).Union(c.state.GetSkipScorePlugins()))
		return framework.PreScoreResult{Skip: true}
	case !status.IsSuccess():
		return framework.PreScoreResult{Status: failure(errorOf(status))}
	}
	return framework.PreScoreResult{}
}

// errorOf is why a status is no success.
func errorOf(s *fwk.Status) error {
	if err := s.AsError(); err != nil {
		return err
	}
	return fmt.Errorf("%s", s.Code())
}

// score asks for the final scores of all feasible nodes.
func (c *cycle) score(p *hostedPlugin, feasible []table.Row, out []int64) *decision.Status {
	x := c.host.room.of(len(feasible))
	for i, r := range feasible {
		x.nodes[i] = c.snapshot.at(r)
	}
	var failed error
	err := c.call("Score", p.name, func() {
		failed = scoreNodes(c, c.state, p, x.nodes, x.scores)
	})
	if err != nil {
		return &decision.Status{Code: decision.Error, Err: fmt.Errorf("running Score plugins: %w", err)}
	}
	copy(out, x.scores)
	c.host.room.back(x)
	if failed != nil {
		return &decision.Status{Code: decision.Error, Err: failed}
	}
	return nil
}

// scoreNodes is Score and NormalizeScore for the nodes, in v1.36's words where one fails.
func scoreNodes[N comparableNode](c *cycle, state fwk.CycleState, p *hostedPlugin, nodes []N, scores []int64) error {
	var failed atomic.Pointer[fwk.Status] // any of them
	x, list := p.score.ScoreExtensions(), fwk.NodeScoreList(nil)
	if x != nil {
		list = make(fwk.NodeScoreList, len(scores)) // the plugin may keep it
	}
	each(c.host.Hosts, nodes, func(i int, n N) {
		score, status := p.score.Score(c.ctx, state, c.pod, n)
		if !status.IsSuccess() {
			failed.Store(status)
		}
		if scores[i] = score; x != nil {
			list[i] = fwk.NodeScore{Name: n.Node().Name, Score: score}
		}
	})
	if status := failed.Load(); status != nil {
		return fmt.Errorf("running Score plugins: plugin %q failed with: %w", p.name, errorOf(status))
	}
	if x == nil {
		return nil
	}
	if status := x.NormalizeScore(c.ctx, state, c.pod, list); !status.IsSuccess() {
		return fmt.Errorf("running Normalize on Score plugins: plugin %q failed with: %w", p.name, errorOf(status))
	}
	for i := range scores {
		scores[i] = list[i].Score
	}
	return nil
}
