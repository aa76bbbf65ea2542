package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// signedView is a view of a class in which the answers of hosted plugins are kept, too,
// during a run.
type signedView struct {
	*view
	skipped []bool      // by hosted filter: its PreFilter skipped it
	scores  *keptScores // of hosted scorers that normalise or have PreScore; nil: none do
	asked   []table.Row // rows that a hosted filter was asked about in this decision
	failed  bool        // a hosted plugin failed, or scored out of range, in this decision
}

// newSignedView returns a signed view, with no row evaluated, for the class of the decision
// at hand; nil if PreFilter or PreScore rejects the pod, fails, or narrows it to named
// nodes.
func newSignedView(d *decider) *signedView {
	e := d.engine
	s := &signedView{view: prepare(e.table, d.view.keys, d.pod)}
	if s.view.rejected != nil || s.view.failed != nil || s.narrowed != nil {
		return nil
	}
	s.class, s.hostedFilters = d.view.class, nil
	for _, f := range d.view.hostedFilters {
		mine := &s.filters[f.position-1]
		if mine.skip = f.skip; !f.skip {
			s.keepFilter(d.engine, mine)
		}
		s.skipped = append(s.skipped, f.skip)
	}
	if scorers, bounded := d.boundedScorers(); bounded {
		for _, hosted := range scorers {
			s.keepScorer(d, hosted)
		}
	} else {
		s.scores = newKeptScores(d.view.keys.Profile)
	}
	s.keepCells()
	s.build(&e.cache.store, &ranking.Index{})
	return s
}

// keepFilter replaces the hosted filter in f by one whose verdicts the view keeps, like those of a
// native filter. The new one counts questions, records the rows asked about, and sets failed at an
// error.
func (s *signedView) keepFilter(e *Engine, f *filter) {
	kept, ask := *f.Plugin, f.Plugin.Filter
	kept.Costly = true // it is asked about rows alone that no filter before it rejects
	kept.Filter = func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
		e.runs.questions += len(rows)
		s.asked = append(s.asked, rows...)
		ask(in, rows, out)
		s.failed = s.failed || slices.ContainsFunc(out, func(v framework.Verdict) bool { return v >= kept.ErrorsFrom && kept.ErrorsFrom != 0 })
	}
	f.Plugin, f.hosted = &kept, false
}

// keepScorer adds the hosted scorer, which does not normalise, to the view's own scorers, so that
// its scores are kept for the next pods of the run like those of native scorers. The added one
// counts questions, and sets failed if the plugin fails or scores out of range.
func (s *signedView) keepScorer(d *decider, hosted profile.Scorer) {
	kept, ask := *hosted.Plugin, hosted.Hosted.ScoreRows
	kept.Costly = true // it is asked about feasible rows alone
	kept.Score = func(in *framework.Input, rows []table.Row, out []int64) {
		d.engine.runs.questions += len(rows)
		if status := ask(in, rows, out); status != nil && status.Code != decision.Success || slices.ContainsFunc(out, outside) {
			s.failed = true
			clear(out)
		}
	}
	in := framework.Input{Table: d.engine.table, Pod: d.pod}
	s.view.scorers = append(s.view.scorers, scorer{Plugin: &kept, in: in, weight: hosted.Weight})
	s.highest += maxScore * hosted.Weight
}

// outside reports whether a score is not within 0 to 100.
func outside(score int64) bool { return score < 0 || score > maxScore }

// decide decides with kept answers; hosted plugins are asked only about rows that changed and the
// chosen one. It returns the decider that holds the choice, nil if kept answers do not settle the
// decision: the view is out of date, a plugin failed, no row is feasible, or a hosted filter now
// rejects the chosen row.
func (s *signedView) decide(d *decider) *decider {
	e := d.engine
	if !s.current() || !s.forPod(d) {
		return nil
	}
	s.asked, s.failed = s.asked[:0], false
	s.refresh(&e.cache.store, 1, &e.scratch) // the host asks about several nodes at a time
	if s.failed || s.index.OutOfRange > 0 {
		return nil
	}
	by := &decider{feasibility: d.feasibility, Choice: Choice{Row: -1}}
	by.view, by.hosted.scored = s.view, true
	if by.Feasible = by.countFeasible(); by.Feasible == 0 || by.Feasible > 1 && s.scores != nil && !s.scores.add(by) {
		return nil
	}
	if by.choose(); by.Rejected != nil || !s.confirms(by) {
		return nil
	}
	return by
}

// forPod sets the pod that hosted plugins are asked about. It returns false, and sets nothing, if
// their PreFilter skips other filters for this pod than it did for the view.
func (s *signedView) forPod(d *decider) bool {
	for k, f := range d.view.hostedFilters {
		if f.skip != s.skipped[k] {
			return false
		}
	}
	for k := range s.filters {
		if f := &s.filters[k]; f.Hosted != nil {
			f.in.Pod = d.pod
		}
	}
	for k := range s.view.scorers {
		if c := &s.view.scorers[k]; c.Hosted != nil {
			c.in.Pod = d.pod
		}
	}
	return true
}

// confirms reports whether the hosted filters still pass the chosen row. It asks them
// unless they were asked about it in this decision.
func (s *signedView) confirms(d *decider) bool {
	if slices.Contains(s.asked, d.Row) {
		return true
	}
	for _, f := range s.rowFilters {
		if f.Hosted != nil && f.verdictAt(d.Row) != framework.Fits {
			return false
		}
	}
	return true
}

// keptScores keeps, during a run, what hosted scorers answered before normalisation, and
// with which rows their PreScore was called last.
type keptScores struct {
	scorers  []profile.Scorer    // the hosted score plugins, in the profile's order
	byRow    [][]int64           // raw scores by scorer, then row; notScored: not asked
	revision uint64              // of the table at the last decision of the run; 0: there was none
	preScore []*framework.Plugin // the hosted plugins with PreScore
	skipped  []bool              // by preScore: its PreScore skipped the plugin
	feasible []table.Row         // the rows that PreScore was last called with
}

// notScored stands for the kept score of a row that a hosted scorer was not asked about in
// the run.
const notScored = -1

// newKeptScores returns a keptScores without scores, for all hosted score plugins of the
// profile. It serves one run.
func newKeptScores(p *profile.Profile) *keptScores {
	x := &keptScores{}
	for _, pl := range p.PreScore {
		if pl.PreScoresRows() {
			x.preScore = append(x.preScore, pl)
		}
	}
	x.skipped = make([]bool, len(x.preScore))
	for _, s := range p.Score {
		if s.ScoresRows() {
			x.scorers, x.byRow = append(x.scorers, s), append(x.byRow, nil)
		}
	}
	return x
}

// add adds the hosted scores of the feasible rows to the decision. Scorers are asked only about
// rows without a kept score. It returns false if a plugin, or a PreScore, fails or a score is out
// of range; Rejected is not set.
func (x *keptScores) add(d *decider) bool {
	e, rows := d.engine, d.feasibleRows()
	if !x.runPreScore(d, rows) {
		return false
	}
	d.hosted.bonus = d.buffers.zeroScores(0, e.table.Rows())
	for k, s := range x.scorers {
		if i := slices.Index(x.preScore, s.Plugin); i >= 0 && x.skipped[i] {
			continue
		}
		if !x.ask(d, k, rows) || !d.addNormalised(s, rows, x.byRow[k]) {
			return false
		}
	}
	return true
}

// runPreScore runs the hosted plugins' PreScore with the feasible rows, and drops kept
// scores that may have changed: those of rows that changed, or all if PreScore got other
// rows or skips otherwise than before. It returns false if PreScore fails.
func (x *keptScores) runPreScore(d *decider, rows []table.Row) bool {
	t, anew := d.engine.table, x.revision == 0
	if len(x.preScore) > 0 && !slices.Equal(rows, x.feasible) {
		x.feasible, anew = append(x.feasible[:0], rows...), true
	}
	for i, pl := range x.preScore {
		out := pl.Hosted.PreScoreRows(t, d.pod, rows)
		if out.Status != nil && out.Status.Code != decision.Success {
			return false
		}
		anew, x.skipped[i] = anew || out.Skip != x.skipped[i], out.Skip
	}
	changed := t.All()
	if !anew {
		changed = t.AppendChanged(nil, x.revision, t.Rows())
	}
	for k := range x.byRow {
		for len(x.byRow[k]) < t.Rows() {
			x.byRow[k] = append(x.byRow[k], notScored)
		}
		for _, r := range changed {
			x.byRow[k][r] = notScored
		}
	}
	x.revision = t.Revision()
	return true
}

// ask asks the k-th hosted scorer about those of the rows that have no kept score, and
// keeps the answers. It returns false if the scorer fails.
func (x *keptScores) ask(d *decider, k int, rows []table.Row) bool {
	e := d.engine
	d.buffers.asked = d.buffers.asked[:0]
	for _, r := range rows {
		if x.byRow[k][r] == notScored {
			d.buffers.asked = append(d.buffers.asked, r)
		}
	}
	if len(d.buffers.asked) == 0 {
		return true
	}
	e.runs.questions += len(d.buffers.asked)
	d.buffers.scores = resize(d.buffers.scores, len(d.buffers.asked))
	in := framework.Input{Table: e.table, Pod: d.pod}
	if s := x.scorers[k].Hosted.RawScoreRows(&in, d.buffers.asked, d.buffers.scores); s != nil && s.Code != decision.Success {
		return false
	}
	for i, r := range d.buffers.asked {
		x.byRow[k][r] = d.buffers.scores[i]
	}
	return true
}

// addNormalised normalises the raw scores (by row) of a hosted scorer over the rows, if it
// normalises, and adds them to the decision. It returns false if normalising fails or a
// score is out of range.
func (d *decider) addNormalised(s profile.Scorer, rows []table.Row, raw []int64) bool {
	e := d.engine
	out := resize(d.buffers.scores, len(rows))
	d.buffers.scores = out
	for i, r := range rows {
		out[i] = raw[r]
	}
	if s.Hosted.NormalizeRows != nil {
		in := framework.Input{Table: e.table, Pod: d.pod}
		if status := s.Hosted.NormalizeRows(&in, rows, out); status != nil && status.Code != decision.Success {
			return false
		}
	}
	if slices.ContainsFunc(out, outside) {
		return false
	}
	d.addBonus(s, rows, out)
	return true
}
