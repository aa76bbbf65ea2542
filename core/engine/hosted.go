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
// sign pods (run.go). The view is that of the other plugins; hosted filters are asked in
// each decision about the rows that these let pass, and hosted scores are added to theirs.

// hostedVerdicts holds the verdicts of hosted filters in one decision.
type hostedVerdicts struct {
	known    [][]framework.Verdict // verdicts by filter, then row; nil: none was asked
	rejected int                   // how many rejections concern rows that fit otherwise
	failed   bool                  // a filter returned an error for some row
	first    ranking.Cause         // filter and verdict of the first error
	firstAt  table.Row             // row of the first error
}

// hostedScores holds the answers of hosted scorers in one decision.
type hostedScores struct {
	scored bool           // the scorers were asked
	by     []pluginScores // normalised scores of each plugin, unweighted
	bonus  []int64        // weighted sum of all, by row; nil: no hosted plugin scored
}

// pluginScores are the scores, normalised but not weighted, that one hosted plugin gave to
// rows, for explanations.
type pluginScores struct {
	plugin string
	weight int64
	byRow  []int64
}

// unasked stands for the verdict of a hosted filter that was not asked about the row.
const unasked framework.Verdict = 1<<64 - 1

// preFilterHosted begins the scheduling attempt for hosted plugins and runs their
// PreFilter. It sets pre to the results of all PreFilter plugins in the profile's order,
// and Rejected if one rejects the pod.
func (d *decider) preFilterHosted(r *Request) {
	d.pre = d.view.preFiltered
	if host := r.Profile.Host; host != nil {
		host.Begin(d.engine.table, r.Pod)
		d.mergePreFilter(r)
	}
	d.Rejected = d.pre.rejected
}

// mergePreFilter runs the PreFilter of hosted plugins and merges the results with the
// view's native ones into pre, in the profile's order, up to a plugin that ends PreFilter.
// It sets the states of the view's hosted filters.
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

// hostFor sets pod, state and skip of the view's hosted filters for this decision. states holds the
// PreFilter results by plugin.
func (v *view) hostFor(pod *object.Pod, states map[*framework.Plugin]framework.PreFilterResult) {
	for k := range v.filters {
		if f := &v.filters[k]; f.hosted {
			out := states[f.Plugin]
			f.in.Pod, f.in.State, f.skip = pod, out.State, out.Skip
		}
	}
}

// hostedVerdict returns the k-th hosted filter's verdict on the row. The filter is asked
// about a row at most once a decision; a skipped filter fits.
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

// knownVerdicts returns the verdicts so far of the k-th hosted filter in this decision, by
// row; unasked where it was not asked. The caller may read it while more rows are asked.
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

// noteVerdicts asks the k-th hosted filter about the rows in one call. It records the
// verdicts, counts rejections, and keeps the first error.
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

// askHostedFilters asks each hosted filter, in one call, about all considered rows that no filter
// before it rejects and that it was not asked about. It asks cell filters first.
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

// hostedFailure returns an Error status for the first error of a hosted filter in this
// decision. Call it only if hostedVerdicts.failed is set.
func (x *feasibility) hostedFailure() *decision.Status {
	return filterFailure(x.view.explain(x.pod, x.hostedVerdicts.first, x.hostedVerdicts.firstAt))
}

// scoreHosted runs PreScore and Score of the hosted plugins over the feasible rows, once a
// decision; it returns true if that is done. It returns false, with Rejected set, if one fails or
// scores out of range.
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

// hasHostedScores reports whether the profile has a hosted plugin with Score or PreScore.
func (d *decider) hasHostedScores() bool {
	p := d.view.keys.Profile
	for _, s := range p.Score {
		if s.ScoresRows() {
			return true
		}
	}
	return slices.ContainsFunc(p.PreScore, (*framework.Plugin).PreScoresRows)
}

// addHostedScores asks the hosted scorer s about the rows and adds its scores to the decision. It
// returns false, with Rejected set, if it fails or scores out of range.
func (d *decider) addHostedScores(s profile.Scorer, rows []table.Row) bool {
	out := resize(d.buffers.scores, len(rows))
	if d.buffers.scores = out; !d.askHostedScores(s.Plugin, rows, out) {
		return false
	}
	d.addBonus(s, rows, out)
	return true
}

// addBonus records out, the unweighted scores that a hosted scorer gave the rows, and adds
// them, weighted, to the bonus of each row.
func (d *decider) addBonus(s profile.Scorer, rows []table.Row, out []int64) {
	scores := pluginScores{plugin: s.Name, weight: s.Weight, byRow: d.buffers.zeroScores(1+len(d.hosted.by), d.engine.table.Rows())}
	for i, r := range rows {
		scores.byRow[r] = out[i]
		d.hosted.bonus[r] += s.Weight * out[i]
	}
	d.hosted.by = append(d.hosted.by, scores)
}

// askHostedScores writes the normalised scores of the hosted scorer pl for the rows to out. It
// returns false, with Rejected set, if the scorer fails or scores outside of 0 to 100.
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

// hostedBonus returns what the hosted scorers add to the row's total: the sum of their
// weighted scores, 0 if no hosted plugin scored.
func (d *decider) hostedBonus(r table.Row) int64 {
	if d.hosted.bonus == nil {
		return 0
	}
	return d.hosted.bonus[r]
}

// appendHostedScores appends the row's unweighted score from each hosted plugin that
// scored, for a report.
func (d *decider) appendHostedScores(scores []decision.Score, r table.Row) []decision.Score {
	for _, s := range d.hosted.by {
		scores = append(scores, decision.Score{Plugin: s.plugin, Score: s.byRow[r], Weight: s.weight})
	}
	return scores
}
