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

// adaptScore sets the fields of native.Hosted for scoring: PreScoreRows, ScoreRows,
// RawScoreRows, NormalizeRows and Bounded. The functions call the hosted plugin. Those that it
// does not implement stay nil.
func (h *Host) adaptScore(native *framework.Plugin, p *hostedPlugin) {
	if p.preScore != nil {
		native.Hosted.PreScoreRows = func(_ *table.Table, pod *object.Pod, feasible []table.Row) framework.PreScoreResult {
			return h.cycleOf(pod).preScore(p, feasible)
		}
	}
	if p.score != nil {
		native.Hosted.Bounded = p.score.ScoreExtensions() == nil
		native.Hosted.ScoreRows = func(in *framework.Input, feasible []table.Row, out []int64) *decision.Status {
			return h.cycleOf(in.Pod).score(p, feasible, out)
		}
		native.Hosted.RawScoreRows = func(in *framework.Input, rows []table.Row, out []int64) *decision.Status {
			return h.cycleOf(in.Pod).rawScore(p, rows, out)
		}
		if x := p.score.ScoreExtensions(); x != nil {
			native.Hosted.NormalizeRows = func(in *framework.Input, feasible []table.Row, scores []int64) *decision.Status {
				return h.cycleOf(in.Pod).normalize(p, x, in.Table, feasible, scores)
			}
		}
	}
}

// infos returns the snapshot's nodes of the rows.
func (c *cycle) infos(rows []table.Row) []fwk.NodeInfo {
	list := make([]fwk.NodeInfo, len(rows))
	for i, r := range rows {
		list[i] = c.snapshot.at(r)
	}
	return list
}

// preScore calls the plugin's PreScore with the feasible nodes. It records a Skip in the
// CycleState, too. A rejection is an error.
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

// errorOf returns the error of a status that is not a success. If the status has none, the error
// names its code.
func errorOf(s *fwk.Status) error {
	if err := s.AsError(); err != nil {
		return err
	}
	return fmt.Errorf("%s", s.Code())
}

// score calls the plugin's Score and NormalizeScore for all feasible nodes and writes the results
// to out. It returns nil for a success.
func (c *cycle) score(p *hostedPlugin, feasible []table.Row, out []int64) *decision.Status {
	return c.scoreBy(p, feasible, out, func(nodes []*nodeInfo, scores []int64) error { return scoreNodes(c, c.state, p, nodes, scores) })
}

// rawScore calls the plugin's Score, without NormalizeScore, for the nodes of rows, and writes the
// results to out. It returns nil for a success.
func (c *cycle) rawScore(p *hostedPlugin, rows []table.Row, out []int64) *decision.Status {
	return c.scoreBy(p, rows, out, func(nodes []*nodeInfo, scores []int64) error { return askScores(c, c.state, p, nodes, scores) })
}

// scoreBy calls f on a worker, within the attempt's time, for the nodes of the rows, and copies the
// scores that f writes to out. It returns an Error status if the call or f fails.
func (c *cycle) scoreBy(p *hostedPlugin, rows []table.Row, out []int64, f func([]*nodeInfo, []int64) error) *decision.Status {
	x := c.host.asked.take(len(rows))
	for i, r := range rows {
		x.nodes[i] = c.snapshot.at(r)
	}
	var failed error
	err := c.call("Score", p.name, func() { failed = f(x.nodes, x.scores) })
	if err != nil {
		return &decision.Status{Code: decision.Error, Err: fmt.Errorf("running Score plugins: %w", err)}
	}
	copy(out, x.scores)
	c.host.asked.release(x)
	if failed != nil {
		return &decision.Status{Code: decision.Error, Err: failed}
	}
	return nil
}

// normalize calls the plugin's NormalizeScore for all feasible nodes and replaces
// scores by the results.
func (c *cycle) normalize(p *hostedPlugin, x fwk.ScoreExtensions, t *table.Table, feasible []table.Row, scores []int64) *decision.Status {
	list := make(fwk.NodeScoreList, len(scores)) // the plugin may keep it
	for i, r := range feasible {
		list[i] = fwk.NodeScore{Name: t.Name(r), Score: scores[i]}
	}
	var failed error
	if err := c.call("NormalizeScore", p.name, func() { failed = normalizeList(c, c.state, p, x, list) }); err != nil {
		return &decision.Status{Code: decision.Error, Err: fmt.Errorf("running Score plugins: %w", err)}
	}
	if failed != nil {
		return &decision.Status{Code: decision.Error, Err: failed}
	}
	for i := range scores {
		scores[i] = list[i].Score
	}
	return nil
}

// askScores calls the plugin's Score for each node and writes the results to scores. It runs on the
// plugin's goroutine. If nodes fail, it returns the error of one of them. Errors have the text of
// kube-scheduler.
func askScores[N comparableNode](c *cycle, state fwk.CycleState, p *hostedPlugin, nodes []N, scores []int64) error {
	var failed atomic.Pointer[fwk.Status] // any of them
	each(c.host.Hosts, nodes, func(i int, n N) {
		score, status := p.score.Score(c.ctx, state, c.pod, n)
		if !status.IsSuccess() {
			failed.Store(status)
		}
		scores[i] = score
	})
	if status := failed.Load(); status != nil {
		return fmt.Errorf("running Score plugins: plugin %q failed with: %w", p.name, errorOf(status))
	}
	return nil
}

// scoreNodes calls the plugin's Score for each node and NormalizeScore for all, and
// writes the results to scores. It runs on the plugin's goroutine. Errors have the text
// of kube-scheduler.
func scoreNodes[N comparableNode](c *cycle, state fwk.CycleState, p *hostedPlugin, nodes []N, scores []int64) error {
	if err := askScores(c, state, p, nodes, scores); err != nil {
		return err
	}
	return normalizeNodes(c, state, p, nodes, scores)
}

// normalizeNodes calls the plugin's NormalizeScore, if it has one, for the nodes' scores and
// replaces them by the results. It runs on the plugin's goroutine.
func normalizeNodes[N comparableNode](c *cycle, state fwk.CycleState, p *hostedPlugin, nodes []N, scores []int64) error {
	x := p.score.ScoreExtensions()
	if x == nil {
		return nil
	}
	list := make(fwk.NodeScoreList, len(scores)) // the plugin may keep it
	for i, n := range nodes {
		list[i] = fwk.NodeScore{Name: n.Node().Name, Score: scores[i]}
	}
	if err := normalizeList(c, state, p, x, list); err != nil {
		return err
	}
	for i := range scores {
		scores[i] = list[i].Score
	}
	return nil
}

// normalizeList calls the plugin's NormalizeScore, which changes list.
func normalizeList(c *cycle, state fwk.CycleState, p *hostedPlugin, x fwk.ScoreExtensions, list fwk.NodeScoreList) error {
	if status := x.NormalizeScore(c.ctx, state, c.pod, list); !status.IsSuccess() {
		return fmt.Errorf("running Normalize on Score plugins: plugin %q failed with: %w", p.name, errorOf(status))
	}
	return nil
}
