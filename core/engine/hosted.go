package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// Hosted plugins may read anything, so nothing is kept of their answers, unless they
// sign pods (run.go). The view is that of the other plugins; hosted filters are asked in each decision about the
// rows that these let pass, and hosted scores are added to theirs.

// hostedVerdicts holds the answers of hosted filters in one decision.
type hostedVerdicts struct {
	known    [][]framework.Verdict // by filter, then row; nil: none was asked
	rejected int                   // rows that fit otherwise
	failed   bool                  // a filter failed somewhere
	first    ranking.Cause         // how it failed first, and where
	firstAt  table.Row
}

// hostedScores holds the answers of hosted scorers in one decision.
type hostedScores struct {
	scored bool
	by     []pluginScores
	bonus  []int64 // by row: the weighted sum of the scores
}

// pluginScores are one plugin's, by row.
type pluginScores struct {
	plugin string
	weight int64
	byRow  []int64
}

// unasked is the verdict of a hosted filter that was not asked about the row.
const unasked framework.Verdict = 1<<64 - 1

// preFilterHosted begins the attempt for hosted plugins and runs their PreFilter. It
// merges the results with the known ones of native plugins, in the profile's order.
func (d *decider) preFilterHosted(r *Request) {
	d.pre = d.view.preFiltered
	if host := r.Profile.Host; host != nil {
		host.Begin(d.engine.table, r.Pod)
		d.mergePreFilter(r)
	}
	d.Rejected = d.pre.rejected
}

func (d *decider) mergePreFilter(r *Request) {
	hosted := map[*framework.Plugin]framework.PreFilterResult{}
	d.pre = preFiltered{}
	for i, pl := range r.Profile.PreFilter[:len(d.view.preFilterResults)] {
		out := d.view.preFilterResults[i]
		if isHosted(pl) {
			out = pl.PreFilter(d.engine.table, r.Pod)
			hosted[pl] = out
		}
		if !d.pre.take(pl.Name, out) {
			break
		}
	}
	d.view.hostFor(r.Pod, hosted)
}

// hostFor sets the pod and the PreFilter results of the view's hosted filters.
func (v *view) hostFor(pod *object.Pod, states map[*framework.Plugin]framework.PreFilterResult) {
	for k := range v.filters {
		if f := &v.filters[k]; f.hosted {
			out := states[f.Plugin]
			f.in.Pod, f.in.State, f.skip = pod, out.State, out.Skip
		}
	}
}

// hostedVerdict returns the hosted filter's verdict on the row, asked once a decision.
func (x *feasibility) hostedVerdict(k int, r table.Row) framework.Verdict {
	f := x.view.hostedFilters[k]
	if f.skip {
		return framework.Fits
	}
	known := x.knownVerdicts(k)
	if known[r] == unasked {
		x.noteVerdicts(k, one(x.engine.table, r))
	}
	return known[r]
}

// knownVerdicts returns the verdicts of the k-th hosted filter, by row; unasked where it
// was not asked.
func (x *feasibility) knownVerdicts(k int) []framework.Verdict {
	h := &x.hostedVerdicts
	if h.known == nil {
		h.known = make([][]framework.Verdict, len(x.view.hostedFilters))
	}
	if h.known[k] == nil {
		h.known[k] = x.buffers.unaskedVerdicts(k, x.engine.table.Rows())
	}
	return h.known[k]
}

// noteVerdicts asks the k-th hosted filter about the rows and records the verdicts.
func (x *feasibility) noteVerdicts(k int, rows []table.Row) {
	if len(rows) == 0 {
		return
	}
	f, known := x.view.hostedFilters[k], x.knownVerdicts(k)
	out := resize(x.buffers.verdicts, len(rows))
	x.buffers.verdicts = out
	x.engine.runs.questions += len(rows)
	f.ask(rows, out)
	for i, r := range rows {
		if known[r] = out[i]; out[i] != framework.Fits && x.view.index.Fits(r) {
			x.hostedVerdicts.rejected++
		}
		if !x.hostedVerdicts.failed && f.ErrorsFrom != 0 && out[i] >= f.ErrorsFrom {
			x.hostedVerdicts.failed, x.hostedVerdicts.first, x.hostedVerdicts.firstAt = true, ranking.Cause{Filter: f.position, Verdict: uint64(out[i])}, r
		}
	}
}

// askHostedFilters asks each hosted filter about all rows that no filter before it
// rejects.
func (x *feasibility) askHostedFilters() {
	x.askCells()
	for k, f := range x.view.hostedFilters {
		if f.skip {
			continue
		}
		known := x.knownVerdicts(k)
		var rows []table.Row
		for i, n := 0, x.candidates(); i < n; i++ {
			r := x.candidate(i)
			if c := x.causeBefore(r, k); known[r] == unasked && c.Filter != noNode && !(c.Rejects() && c.Filter < f.position) {
				rows = append(rows, r)
			}
		}
		x.noteVerdicts(k, rows)
	}
}

// hostedFailure returns how a hosted filter failed on a row that no filter before rejects.
func (x *feasibility) hostedFailure() *decision.Status {
	return filterFailure(x.view.explain(x.pod, x.hostedVerdicts.first, x.hostedVerdicts.firstAt))
}

// scoreHosted asks the hosted scorers about the feasible rows. It returns false if one
// fails or scores out of range.
func (d *decider) scoreHosted() bool {
	h, p := &d.hosted, d.view.keys.Profile
	if h.scored || p.Host == nil || !d.hasHostedScores() {
		return true
	}
	h.scored = true
	rows, t := d.feasibleRows(), d.engine.table
	skipped := map[*framework.Plugin]bool{}
	for _, pl := range p.PreScore {
		if !pl.PreScoresRows() {
			continue
		}
		out := pl.Hosted.PreScoreRows(t, d.pod, rows)
		if skipped[pl] = out.Skip; out.Status != nil && out.Status.Code != decision.Success {
			d.Rejected = failed("PreScore", pl.Name, out.Status)
			return false
		}
	}
	h.bonus = d.buffers.zeroScores(0, d.engine.table.Rows())
	for _, s := range p.Score {
		if s.ScoresRows() && !skipped[s.Plugin] && !d.addHostedScores(s, rows) {
			return false
		}
	}
	return true
}

func (d *decider) hasHostedScores() bool {
	p := d.view.keys.Profile
	for _, s := range p.Score {
		if s.ScoresRows() {
			return true
		}
	}
	return slices.ContainsFunc(p.PreScore, (*framework.Plugin).PreScoresRows)
}

func (d *decider) addHostedScores(s profile.Scorer, rows []table.Row) bool {
	out := resize(d.buffers.scores, len(rows))
	if d.buffers.scores = out; !d.askHostedScores(s.Plugin, rows, out) {
		return false
	}
	d.addBonus(s, rows, out)
	return true
}

// addBonus records the scores that a hosted scorer gave the rows, and adds them,
// weighted, to the rows' bonus.
func (d *decider) addBonus(s profile.Scorer, rows []table.Row, out []int64) {
	scores := pluginScores{plugin: s.Name, weight: s.Weight, byRow: d.buffers.zeroScores(1+len(d.hosted.by), d.engine.table.Rows())}
	for i, r := range rows {
		scores.byRow[r] = out[i]
		d.hosted.bonus[r] += s.Weight * out[i]
	}
	d.hosted.by = append(d.hosted.by, scores)
}

// askHostedScores asks a hosted scorer about the rows. It returns false if the scorer
// fails or scores out of range.
func (d *decider) askHostedScores(pl *framework.Plugin, rows []table.Row, out []int64) bool {
	in := framework.Input{Table: d.engine.table, Pod: d.pod}
	d.engine.runs.questions += len(rows)
	if s := pl.Hosted.ScoreRows(&in, rows, out); s != nil && s.Code != decision.Success {
		s.Plugin, s.Point = pl.Name, "Score"
		d.Rejected = s
		return false
	}
	for _, score := range out {
		if score < 0 || score > maxScore {
			d.Rejected = invalidScore(pl.Name, score)
			return false
		}
	}
	return true
}

// hostedBonus returns what hosted plugins add to the row's total.
func (d *decider) hostedBonus(r table.Row) int64 {
	if d.hosted.bonus == nil {
		return 0
	}
	return d.hosted.bonus[r]
}

// appendHostedScores appends the row's score from each hosted plugin.
func (d *decider) appendHostedScores(scores []decision.Score, r table.Row) []decision.Score {
	for _, s := range d.hosted.by {
		scores = append(scores, decision.Score{Plugin: s.plugin, Score: s.byRow[r], Weight: s.weight})
	}
	return scores
}
