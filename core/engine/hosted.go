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

// hosted holds the answers of hosted plugins in one decision.
type hosted struct {
	verdicts [][]framework.Verdict // by filter, then row; nil: none was asked
	rejected int                   // rows that fit otherwise
	failed   bool                  // a filter failed somewhere
	first    ranking.Cause         // how it failed first, and where
	firstAt  table.Row
	scored   bool
	scores   []hostedScores
	bonus    []int64 // by row: the weighted sum of the scores
}

// hostedScores are one plugin's, by row.
type hostedScores struct {
	plugin string
	weight int64
	byRow  []int64
}

// unasked is the verdict of a hosted filter that was not asked about the row.
const unasked framework.Verdict = 1<<64 - 1

// preFilterHosted begins the attempt for hosted plugins and runs their PreFilter. It
// merges the results with the known ones of native plugins, in the profile's order.
func (o *Outcome) preFilterHosted(r *Request) {
	o.pre = o.view.preFiltered
	if host := r.Profile.Host; host != nil {
		host.Begin(o.engine.table, r.Pod)
		o.mergePreFilter(r)
	}
	o.Rejected = o.pre.rejected
}

func (o *Outcome) mergePreFilter(r *Request) {
	hosted := map[*framework.Plugin]framework.PreFilterResult{}
	o.pre = preFiltered{}
	for i, pl := range r.Profile.PreFilter[:len(o.view.preFilterResults)] {
		out := o.view.preFilterResults[i]
		if isHosted(pl) {
			out = pl.PreFilter(o.engine.table, r.Pod)
			hosted[pl] = out
		}
		if !o.pre.take(pl.Name, out) {
			break
		}
	}
	o.view.hostFor(r.Pod, hosted)
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
func (o *Outcome) hostedVerdict(k int, r table.Row) framework.Verdict {
	f := o.view.hostedFilters[k]
	if f.skip {
		return framework.Fits
	}
	known := o.knownVerdicts(k)
	if known[r] == unasked {
		o.noteVerdicts(k, one(o.engine.table, r))
	}
	return known[r]
}

// knownVerdicts returns the verdicts of the k-th hosted filter, by row; unasked where it
// was not asked.
func (o *Outcome) knownVerdicts(k int) []framework.Verdict {
	h := &o.hosted
	if h.verdicts == nil {
		h.verdicts = make([][]framework.Verdict, len(o.view.hostedFilters))
	}
	if h.verdicts[k] == nil {
		h.verdicts[k] = o.engine.verdictsFor(k)
	}
	return h.verdicts[k]
}

// verdictsFor returns scratch for the verdicts of the k-th hosted filter, by row, with
// every row unasked.
func (e *Engine) verdictsFor(k int) []framework.Verdict {
	for len(e.verdicts) <= k {
		e.verdicts = append(e.verdicts, nil)
	}
	e.verdicts[k] = resize(e.verdicts[k], e.table.Rows())
	for r := range e.verdicts[k] {
		e.verdicts[k][r] = unasked
	}
	return e.verdicts[k]
}

// scoresFor returns scratch for the scores of the k-th hosted scorer, by row, all 0.
func (e *Engine) scoresFor(k int) []int64 {
	for len(e.scores) <= k {
		e.scores = append(e.scores, nil)
	}
	e.scores[k] = resize(e.scores[k], e.table.Rows())
	clear(e.scores[k])
	return e.scores[k]
}

// noteVerdicts asks the k-th hosted filter about the rows and records the verdicts.
func (o *Outcome) noteVerdicts(k int, rows []table.Row) {
	if len(rows) == 0 {
		return
	}
	f, known := o.view.hostedFilters[k], o.knownVerdicts(k)
	out := resize(o.engine.noted, len(rows))
	o.engine.noted = out
	o.engine.questions += len(rows)
	f.Filter(&f.in, rows, out)
	for i, r := range rows {
		if known[r] = out[i]; out[i] != framework.Fits && o.view.index.Fits(r) {
			o.hosted.rejected++
		}
		if !o.hosted.failed && f.ErrorsFrom != 0 && out[i] >= f.ErrorsFrom {
			o.hosted.failed, o.hosted.first, o.hosted.firstAt = true, ranking.Cause{Filter: f.position, Verdict: uint64(out[i])}, r
		}
	}
}

// askHostedFilters asks each hosted filter about all rows that no filter before it
// rejects.
func (o *Outcome) askHostedFilters() {
	o.askCells()
	for k, f := range o.view.hostedFilters {
		if f.skip {
			continue
		}
		known := o.knownVerdicts(k)
		var rows []table.Row
		for i, n := 0, o.candidates(); i < n; i++ {
			r := o.candidate(i)
			if c := o.causeBefore(r, k); known[r] == unasked && c.Filter != noNode && !(c.Rejects() && c.Filter < f.position) {
				rows = append(rows, r)
			}
		}
		o.noteVerdicts(k, rows)
	}
}

// hostedFailure returns how a hosted filter failed on a row that no filter before rejects.
func (o *Outcome) hostedFailure() *decision.Status {
	return filterFailure(o.explain(o.hosted.first, o.hosted.firstAt))
}

// scoreHosted asks the hosted scorers about the feasible rows. It returns false if one
// fails or scores out of range.
func (o *Outcome) scoreHosted() bool {
	h, p := &o.hosted, o.view.keys.profile
	if h.scored || p.Host == nil || !o.hasHostedScores() {
		return true
	}
	h.scored = true
	rows, t := o.feasibleRows(), o.engine.table
	skipped := map[*framework.Plugin]bool{}
	for _, pl := range p.PreScore {
		if pl.PreScoreRows == nil {
			continue
		}
		out := pl.PreScoreRows(t, o.pod, rows)
		if skipped[pl] = out.Skip; out.Status != nil && out.Status.Code != decision.Success {
			o.Rejected = failed("PreScore", pl.Name, out.Status)
			return false
		}
	}
	h.bonus = o.engine.scoresFor(0)
	for _, s := range p.Score {
		if s.ScoreRows != nil && !skipped[s.Plugin] && !o.addHostedScores(s, rows) {
			return false
		}
	}
	return true
}

func (o *Outcome) hasHostedScores() bool {
	p := o.view.keys.profile
	for _, s := range p.Score {
		if s.ScoreRows != nil {
			return true
		}
	}
	return slices.ContainsFunc(p.PreScore, func(pl *framework.Plugin) bool { return pl.PreScoreRows != nil })
}

func (o *Outcome) addHostedScores(s profile.Scorer, rows []table.Row) bool {
	e := o.engine
	out := resize(e.answers, len(rows))
	if e.answers = out; !o.askHostedScores(s.Plugin, rows, out) {
		return false
	}
	o.addBonus(s, rows, out)
	return true
}

// addBonus records the scores that a hosted scorer gave the rows, and adds them,
// weighted, to the rows' bonus.
func (o *Outcome) addBonus(s profile.Scorer, rows []table.Row, out []int64) {
	scores := hostedScores{plugin: s.Name, weight: s.Weight, byRow: o.engine.scoresFor(1 + len(o.hosted.scores))}
	for i, r := range rows {
		scores.byRow[r] = out[i]
		o.hosted.bonus[r] += s.Weight * out[i]
	}
	o.hosted.scores = append(o.hosted.scores, scores)
}

// askHostedScores asks a hosted scorer about the rows. It returns false if the scorer
// fails or scores out of range.
func (o *Outcome) askHostedScores(pl *framework.Plugin, rows []table.Row, out []int64) bool {
	in := framework.Input{Table: o.engine.table, Pod: o.pod}
	o.engine.questions += len(rows)
	if s := pl.ScoreRows(&in, rows, out); s != nil && s.Code != decision.Success {
		s.Plugin, s.Point = pl.Name, "Score"
		o.Rejected = s
		return false
	}
	for _, score := range out {
		if score < 0 || score > maxScore {
			o.Rejected = invalidScore(pl.Name, score)
			return false
		}
	}
	return true
}

// hostedBonus returns what hosted plugins add to the row's total.
func (o *Outcome) hostedBonus(r table.Row) int64 {
	if o.hosted.bonus == nil {
		return 0
	}
	return o.hosted.bonus[r]
}

// appendHostedScores appends the row's score from each hosted plugin.
func (o *Outcome) appendHostedScores(scores []decision.Score, r table.Row) []decision.Score {
	for _, s := range o.hosted.scores {
		scores = append(scores, decision.Score{Plugin: s.plugin, Score: s.byRow[r], Weight: s.weight})
	}
	return scores
}
