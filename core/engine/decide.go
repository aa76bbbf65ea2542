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
	// Feasible is the number of nodes that passed every filter. Nodes that a hosted
	// filter was not asked about count, and those with the best total among the Ties.
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
	// explained are blockers that RefitWithoutLower named.
	explained byCause[*decision.Blocker]
	// own is the row that the pod itself is nominated to, -1 if none, once asked for.
	own      table.Row
	ownKnown bool
	// cellVerdicts are those of the filters by cells on all rows; nil: not asked so far.
	cellVerdicts [][]framework.Verdict
	extremes     []extremes  // of the raw scores over the feasible rows, by scorer; nil: not scored
	list         []table.Row // the feasible rows, once listed; the engine's room
	listed       bool
}

// Decide evaluates every node for the pod and chooses the best. Pods of at least
// its priority that are nominated to a node count as placed there, but must not be
// needed for the pod to fit.
func (e *Engine) Decide(r *Request, nominated Nominator) *Outcome {
	return e.decide(r, nominated, nil, nil)
}

// DecideWithin is Decide among the rows of a placement, which are ascending; nil: all. What
// plugins count, they count on all nodes.
func (e *Engine) DecideWithin(placement []table.Row, r *Request, nominated Nominator) *Outcome {
	return e.decide(r, nominated, nil, placement)
}

// decide is the route from the pod's class to the choice. doc.go follows one
// decision along it.
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
		e.evaluated = v.refresh(e.table, e.workers, &e.workerScratch[0]) // view.go
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
	e.noteRun(x, o)
	return o
}

// decideAnew asks hosted plugins afresh.
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

// newOutcome is room for one.
func (e *Engine) newOutcome() *Outcome {
	if o := e.outcome; o != nil {
		e.outcome = nil
		return o
	}
	return &Outcome{}
}

// Reuse gives the room of an outcome to the next decision. Whoever decided may say
// so once nobody looks at it any more.
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

// decidedByGroups tells whether the groups of the index can decide: whatever rules out
// single rows besides the view's filters makes a scan necessary.
func (o *Outcome) decidedByGroups() bool {
	return o.groupable() && len(o.view.hostedFilters) == 0 && o.hosted.bonus == nil
}

// groupable is decidedByGroups except for what hosted plugins say.
func (o *Outcome) groupable() bool {
	return o.view.index.Grouped && o.view.grouped() && o.nominated.blocked == nil && o.narrowed == nil && o.extenders == nil
}

// choose finds the feasible row with the highest total; among equals a draw
// decides. A single feasible row is taken without scoring.
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
		o.scoreGroups()
		o.Row, o.Score, o.Ties = v.index.Pick(o.drawSeed())
	default:
		o.scan() // scan.go
	}
	if o.Rejected != nil {
		o.Row, o.Score, o.Ties = -1, 0, 0
	}
}

// drawSeed decides among equals: the engine's seed and the pod's UID do, whatever
// was chosen before.
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
			g.Fits = g.Fits && f.CellFilter.Filter(&f.in, v.valueOf(g, f.column)) == framework.Fits
		}
		if g.Fits {
			rows += g.Rows
		}
	}
	return rows
}

// scoreGroups gives each group its bonus: the weighted scores that its rows have
// from scorers that are normalised or answer by cells.
func (o *Outcome) scoreGroups() { o.scoreGroupsThat(nil) }

// scoreGroupsThat is scoreGroups where feasible rows have to pass, too.
func (o *Outcome) scoreGroupsThat(passes func(table.Row) bool) {
	v, groups := o.view, o.view.index.Groups()
	o.weighGroups()
	o.extremes = o.engine.extremesOf(len(v.scorers))
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
			raw := s.rawOf(v.valueOf(g, s.column))
			if passes != nil && o.extremes[k].excludes(raw) {
				g.Fits = false // none of its rows passes
				continue
			}
			g.Bonus += o.normalisedScore(k, raw)
		}
	}
}

// groupExtremes are the extremes of the scorer's raw scores over the groups.
func (o *Outcome) groupExtremes(s *scorer, passes func(table.Row) bool) extremes {
	if passes != nil {
		return o.extremesThat(s, passes)
	}
	e, groups := noExtremes, o.view.index.Groups()
	for i := range groups {
		if g := &groups[i]; g.Fits {
			e.add(s.rawOf(o.view.valueOf(g, s.column)))
		}
	}
	return e
}

// extremes are the least and the greatest of some raw scores; NoScore is none.
type extremes struct{ low, high int64 }

var noExtremes = extremes{math.MaxInt64, math.MinInt64}

// extremesOf is room for those of n scorers.
func (e *Engine) extremesOf(n int) []extremes {
	e.extremes = resize(e.extremes, n)
	clear(e.extremes)
	return e.extremes
}

// excludes tells whether the raw score is outside of the extremes.
func (e extremes) excludes(raw int64) bool {
	return raw != framework.NoScore && (raw < e.low || raw > e.high)
}

func (e *extremes) add(raw int64) {
	if raw != framework.NoScore {
		e.low, e.high = min(e.low, raw), max(e.high, raw)
	}
}

// valueOf is the group's value for the column.
func (v *view) valueOf(g *ranking.Group, c column) int64 {
	if c.shared {
		return v.shared.combinations.Value(g, c.at)
	}
	return g.Own(c.at)
}

// rawOf is the raw score that a value in the scorer's column stands for.
func (s *scorer) rawOf(value int64) int64 {
	if s.cells != nil {
		return s.CellScore.Score(&s.in, value)
	}
	return value
}

// normalisedScore is the scorer's weighted, normalised score for a raw one.
func (o *Outcome) normalisedScore(k int, raw int64) int64 {
	s := &o.view.scorers[k]
	score := s.normal(raw, o.extremes[k])
	if score < 0 || score > maxScore {
		o.Rejected = invalidScore(s.Name, score)
	}
	return s.weight * score
}

// normal is the normalised score for a raw one.
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

// fits tells whether the row is feasible.
func (o *Outcome) fits(r table.Row) bool {
	return o.passesFilters(r) && (o.extenders == nil || o.extenders.passes(r))
}

func (o *Outcome) passesFilters(r table.Row) bool {
	if len(o.view.cellFilters)+len(o.view.hostedFilters) > 0 {
		return o.causeAt(r).Filter == ranking.Feasible
	}
	return o.view.index.IsFeasible(r) && !o.nominated.blocks(r)
}

// candidates is the number of rows to look at, candidate the i-th of them.
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

// isCandidate tells whether the row is looked at.
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
