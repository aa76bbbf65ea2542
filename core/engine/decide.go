package engine

import (
	"fmt"
	"math"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// Outcome is the answer for one pod. It is valid until the table changes.
type Outcome struct {
	// Row is the chosen node, -1 when there is none.
	Row table.Row
	// Feasible is the number of nodes that passed every filter. It includes nodes that
	// hosted filters were not asked about because a better one was found; Ties does as
	// well.
	Feasible int
	// Score is the chosen node's total, Ties the number of nodes that have it. Both
	// are 0 where a single node was feasible: nothing was scored.
	Score int64
	Ties  int
	// Rejected is set when the pod was rejected as a whole (PreFilter), or deciding
	// failed (Code Error).
	Rejected *decision.Status

	engine    *Engine
	view      *view
	pod       *object.Pod
	pre       preFiltered
	hosted    hosted
	nominated nominatedRows
	placement []table.Row      // the rows of the pod group's placement; nil: all
	narrowed  []table.Row      // the only rows considered; nil: all
	extenders *extenderResults // what extenders say; nil: nothing

	tallies []decision.Tally // once they were asked for; nil: not so far
	codes   byCause[decision.Code]
	// explained holds the blockers that RefitWithoutLower returned.
	explained byCause[*decision.Blocker]
	// own is the row that the pod itself is nominated to, -1 if none, once asked for.
	own      table.Row
	ownKnown bool
	// cellVerdicts holds the verdict of each cell filter on each row; nil means not asked
	// so far.
	cellVerdicts [][]framework.Verdict
	extremes     []extremes  // of the raw scores over the feasible rows, by scorer; nil: not scored
	list         []table.Row // the feasible rows, once listed; in the engine's buffer
	listed       bool
}

// Decide evaluates every node for the pod and chooses the best. Pods of at least
// its priority that are nominated to a node count as placed there, but must not be
// needed for the pod to fit.
func (e *Engine) Decide(r *Request, nominated Nominator) *Outcome {
	return e.decide(r, nominated, nil, nil)
}

// DecideWithin chooses the best node among the rows of a placement, which are ascending;
// nil means all nodes. Plugins still count pods on all nodes.
func (e *Engine) DecideWithin(placement []table.Row, r *Request, nominated Nominator) *Outcome {
	return e.decide(r, nominated, nil, placement)
}

// decide follows the route from the pod's class to the choice. doc.go traces one decision
// along it.
func (e *Engine) decide(r *Request, nominated Nominator, rv *extenderResults, placement []table.Row) *Outcome {
	e.trackTerms(nominated)
	if e.plain {
		return e.decidePlainly(r, nominated, rv, placement) // plain.go
	}
	e.decisions++
	e.questions = 0
	v := e.viewOf(r) // cache.go
	o := e.newOutcome()
	o.engine, o.view, o.pod, o.Row, o.extenders = e, v, r.Pod, -1, rv
	o.placement = placement
	if o.preFilterHosted(r); o.Rejected != nil { // hosted.go
		return o
	}
	o.nominated.Nominator = nominated
	if v.narrowed != nil {
		o.evaluateNarrowed() // narrowed.go
	} else {
		e.evaluated = v.refresh(&e.store, e.table, e.workers, &e.workerScratch[0]) // view.go
	}
	if o.pre.narrowed != nil {
		o.narrowed = e.rowsOf(o.pre.narrowed)
	}
	o.keepWithin()                                          // narrowed.go
	if r.Pod.NominatedNode != "" && o.takeOwnNomination() { // nominated.go
		return o
	}
	o.tryNominated() // nominated.go
	v.syncCells()    // with nominated pods placed, the domains had other counts
	x := o.runOf(r)  // run.go
	if x == nil || !x.decide(o) {
		o.decideAnew()
	}
	e.recordRun(x, o)
	return o
}

// decideAnew chooses the row, and asks hosted plugins about rows as far as the choice
// needs it.
func (o *Outcome) decideAnew() {
	if o.bestFirst() { // bestfirst.go
		return
	}
	if len(o.view.hostedFilters) > 0 {
		o.askHostedFilters() // hosted.go
	}
	if o.Rejected = o.failure(); o.Rejected != nil {
		return
	}
	if o.Feasible = o.countFeasible(); o.Feasible > 0 {
		o.choose()
	}
}

// newOutcome returns an empty Outcome. It reuses the last one that was released with
// Reuse.
func (e *Engine) newOutcome() *Outcome {
	if o := e.outcome; o != nil {
		e.outcome = nil
		return o
	}
	return &Outcome{}
}

// Reuse releases an outcome for the next decision. The caller may not read it afterwards.
func (e *Engine) Reuse(o *Outcome) {
	*o = Outcome{}
	e.outcome = o
}

// countFeasible returns the number of feasible nodes.
func (o *Outcome) countFeasible() int {
	if o.decidedByGroups() {
		return o.filterGroups()
	}
	if o.narrowed == nil && o.extenders == nil && len(o.view.cellFilters)+len(o.view.hostedFilters) == 0 {
		return o.view.index.Feasible - len(o.nominated.blocked)
	}
	return len(o.feasibleRows())
}

// decidedByGroups reports whether the choice can be made by groups of rows. It cannot if
// anything besides the view's filters rules out single rows, or hosted plugins filter or
// score.
func (o *Outcome) decidedByGroups() bool {
	return o.groupable() && len(o.view.hostedFilters) == 0 && o.hosted.bonus == nil
}

// groupable reports whether native plugins, nominations and extenders allow a choice by
// groups of rows.
func (o *Outcome) groupable() bool {
	return o.view.index.Grouped && o.view.grouped() && o.nominated.blocked == nil && o.narrowed == nil && o.extenders == nil
}

// choose picks the feasible row with the highest total; a draw decides between ties. A
// single feasible row is taken without scoring.
func (o *Outcome) choose() {
	v := o.view
	switch {
	case o.Feasible == 1:
		o.Row = o.feasibleRows()[0]
	case v.failed != nil:
		o.Rejected = v.failed
	case v.index.OutOfRange > 0 && o.findOutOfRange():
	case v.keys.profile.Host != nil && !o.scoreHosted(): // hosted.go
	case o.decidedByGroups():
		o.scoreGroups(nil)
		o.Row, o.Score, o.Ties = v.index.Pick(o.drawSeed())
	default:
		o.scan() // scan.go
	}
	if o.Rejected != nil {
		o.Row, o.Score, o.Ties = -1, 0, 0
	}
}

// drawSeed returns the seed of the draw between ties. It depends on the engine's seed and
// the pod's UID, not on earlier choices.
func (o *Outcome) drawSeed() uint64 { return draw.Seed(o.engine.seed, o.pod.UID, 0) }

// filterGroups asks the filters by cells about each group, and returns the number
// of feasible rows.
func (o *Outcome) filterGroups() int {
	v, rows := o.view, 0
	groups := v.index.Groups()
	for i := range groups {
		g := &groups[i]
		g.Fits = g.Rows > 0
		for _, f := range v.cellFilters {
			g.Fits = g.Fits && f.CellFilter.Filter(&f.in, g.Value(f.column.at)) == framework.Fits
		}
		if g.Fits {
			rows += g.Rows
		}
	}
	return rows
}

// scoreGroups sets the bonus of each group: the weighted scores that all its rows get
// from scorers that are normalised or answer by cells. If passes is not nil,
// normalisation considers only rows that pass, and a group of which none does fits no
// more.
func (o *Outcome) scoreGroups(passes func(table.Row) bool) {
	v, groups := o.view, o.view.index.Groups()
	o.weighGroups()
	o.extremes = o.engine.extremesBuffer(len(v.scorers))
	for i := range groups {
		groups[i].Bonus = 0
	}
	for k := range v.scorers {
		s := &v.scorers[k]
		if !s.column.kept {
			continue
		}
		o.extremes[k] = o.groupExtremes(s, passes)
		for i := range groups {
			g := &groups[i]
			if !g.Fits {
				continue
			}
			raw := s.rawOf(g.Value(s.column.at))
			if passes != nil && o.extremes[k].excludes(raw) {
				g.Fits = false // none of its rows passes
				continue
			}
			g.Bonus += o.normalisedScore(k, raw)
		}
	}
}

// groupExtremes returns the extremes of the scorer's raw scores over the groups that fit.
// If passes is not nil, only rows that pass count.
func (o *Outcome) groupExtremes(s *scorer, passes func(table.Row) bool) extremes {
	if passes != nil {
		return o.extremesThat(s, passes)
	}
	e, groups := noExtremes, o.view.index.Groups()
	for i := range groups {
		if g := &groups[i]; g.Fits {
			e.add(s.rawOf(g.Value(s.column.at)))
		}
	}
	return e
}

// extremes are the least and the greatest of some raw scores; NoScore is none.
type extremes struct{ low, high int64 }

var noExtremes = extremes{math.MaxInt64, math.MinInt64}

// extremesBuffer returns a cleared scratch slice of length n, one entry a scorer.
func (e *Engine) extremesBuffer(n int) []extremes {
	e.extremes = resize(e.extremes, n)
	clear(e.extremes)
	return e.extremes
}

// excludes reports whether the raw score is outside the range. NoScore never is.
func (e extremes) excludes(raw int64) bool {
	return raw != framework.NoScore && (raw < e.low || raw > e.high)
}

func (e *extremes) add(raw int64) {
	if raw != framework.NoScore {
		e.low, e.high = min(e.low, raw), max(e.high, raw)
	}
}

// rawOf returns the raw score that a value in the scorer's column stands for.
func (s *scorer) rawOf(value int64) int64 {
	if s.cells != nil {
		return s.CellScore.Score(&s.in, value)
	}
	return value
}

// normalisedScore returns the scorer's weighted, normalised score for a raw one. It rejects the
// pod with an error if the normalised score is out of range.
func (o *Outcome) normalisedScore(k int, raw int64) int64 {
	s := &o.view.scorers[k]
	score := s.normal(raw, o.extremes[k])
	if score < 0 || score > maxScore {
		o.Rejected = invalidScore(s.Name, score)
	}
	return s.weight * score
}

// normal returns the normalised score for a raw one.
func (s *scorer) normal(raw int64, e extremes) int64 {
	switch {
	case raw == framework.NoScore:
		return 0
	case s.NormalizeScore == nil:
		return raw
	}
	return s.NormalizeScore(raw, e.low, e.high)
}

// findOutOfRange reports a feasible row with a score out of range.
func (o *Outcome) findOutOfRange() bool {
	for _, r := range o.feasibleRows() {
		if o.view.index.Score(r) >= 0 {
			continue
		}
		for k := range o.view.scorers {
			s := &o.view.scorers[k]
			if score := s.scoreAt(r); s.NormalizeScore == nil && (score < 0 || score > maxScore) {
				o.Rejected = invalidScore(s.Name, score)
				return true
			}
		}
	}
	return false
}

func invalidScore(plugin string, score int64) *decision.Status {
	return &decision.Status{
		Code: decision.Error, Plugin: plugin,
		Err: fmt.Errorf("plugin %q returns an invalid score %d, it should in the range of [0, %d] after normalizing", plugin, score, maxScore),
	}
}

// fits reports whether the row is feasible: it passes all filters and extenders.
func (o *Outcome) fits(r table.Row) bool {
	return o.passesFilters(r) && (o.extenders == nil || o.extenders.passes(r))
}

func (o *Outcome) passesFilters(r table.Row) bool {
	if len(o.view.cellFilters)+len(o.view.hostedFilters) > 0 {
		return o.causeAt(r).Filter == ranking.Feasible
	}
	return o.view.index.IsFeasible(r) && !o.nominated.blocks(r)
}

// candidates returns the number of rows that the decision considers.
func (o *Outcome) candidates() int {
	if o.narrowed != nil {
		return len(o.narrowed)
	}
	return o.engine.table.Rows()
}

func (o *Outcome) candidate(i int) table.Row {
	if o.narrowed != nil {
		return o.narrowed[i]
	}
	return table.Row(i)
}

// isCandidate reports whether the decision considers the row at all.
func (o *Outcome) isCandidate(r table.Row) bool {
	return o.narrowed == nil || contains(o.narrowed, r)
}

// feasibleRows lists the feasible rows, in order.
func (o *Outcome) feasibleRows() []table.Row {
	if o.listed {
		return o.list
	}
	list := o.engine.list[:0]
	if o.narrowed == nil && o.extenders == nil && len(o.view.hostedFilters) == 0 {
		list = o.view.index.AppendFeasible(list)
		if o.nominated.blocked != nil {
			list = slices.DeleteFunc(list, o.nominated.blocks)
		}
		for _, f := range o.view.cellFilters {
			list = o.inCellsThatFit(list, f)
		}
	} else {
		for i, n := 0, o.candidates(); i < n; i++ {
			if r := o.candidate(i); o.fits(r) {
				list = append(list, r)
			}
		}
	}
	o.list, o.listed, o.engine.list = list, true, list
	return list
}
