package engine

import (
	"fmt"
	"math"

	"github.com/berth-scheduler/berth/core/classes"
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// Decide evaluates every node for the pod and chooses the best. Pods of at least its priority that
// are nominated to a node count as placed there, but the pod must fit without them, too. A nil
// nominated means no nominations. The outcome is valid until the table changes, the next decision
// or Reuse; nothing is placed.
func (e *Engine) Decide(r *Request, nominated Nominator) *Outcome {
	return e.decide(r, nominated, nil, nil)
}

// DecideWithin chooses the best node among the rows of a placement (the nodes that a pod
// bucket may use), which are ascending; nil means all nodes. Plugins still count pods on all
// nodes.
func (e *Engine) DecideWithin(placement []table.Row, r *Request, nominated Nominator) *Outcome {
	return e.decide(r, nominated, nil, placement)
}

// decider makes one decision: it finds the feasible rows and chooses the best of them.
type decider struct {
	feasibility
	Choice
	hosted   hostedScores // answers of hosted scorers
	extremes []extremes   // of the raw scores over the feasible rows, by scorer; nil: not scored
}

// decide runs one decision from the pod's class to the choice; doc.go traces it. rv is what
// extenders answered, nil: none; placement holds the only rows that may be chosen, nil: all. The
// table learns the terms and volumes of nominated pods.
func (e *Engine) decide(r *Request, nominated Nominator, rv *extenderResults, placement []table.Row) *Outcome {
	e.tracked.Follow(e.table, nominated)
	o := e.newOutcome()
	d := o.work
	d.feasibility = feasibility{engine: e, buffers: &e.buffers, pod: r.Pod, extenders: rv, placement: placement}
	d.Row = -1
	if e.plain {
		d.view = prepare(e.table, classes.KeysOf(r.Profile), r.Pod)
		d.decidePlainly(r, nominated) // plain.go
	} else {
		e.runs.next()
		c := e.classOf(r)
		d.view = e.cache.viewOf(c, r.known.Keys(), r.Pod) // cache.go
		o.work = d.decide(r, nominated)
	}
	o.Choice = o.work.Choice
	return o
}

// decide chooses the row with the help of the view. It returns the decider that holds the
// choice: usually d, another one where kept answers of hosted plugins settled the decision.
func (d *decider) decide(r *Request, nominated Nominator) *decider {
	e, v := d.engine, d.view
	d.preFilterHosted(r)                             // hosted.go
	if d.rejectWhole(nominated); d.Rejected != nil { // whole.go
		return d
	}
	d.nominated.Nominator = nominated
	if v.narrowed != nil {
		d.evaluateNarrowed() // narrowed.go
	} else {
		v.refresh(&e.cache.store, e.workers, &e.scratch) // view.go
	}
	d.keepWithin()                                  // narrowed.go
	d.setNominated(nominated)                       // nominated.go
	if own, feasible := d.feasibleOwn(); feasible { // nominated.go
		d.Row, d.Feasible = own, 1
		return d
	}
	d.tryNominated() // nominated.go
	v.syncCells()    // with nominated pods placed, the domains had other counts
	x := d.runOf(r)  // run.go
	by := x.decide(d)
	if by == nil {
		by = d
		d.decideAnew()
	}
	e.runs.record(x, by)
	return by
}

// decideAnew chooses the row without kept answers of hosted plugins. It asks these about as
// few rows as it can.
func (d *decider) decideAnew() {
	if d.bestFirst() { // bestfirst.go
		return
	}
	if len(d.view.hostedFilters) > 0 {
		d.askHostedFilters() // hosted.go
	}
	if d.Rejected = d.failure(); d.Rejected != nil {
		return
	}
	if d.Feasible = d.countFeasible(); d.Feasible > 0 {
		d.choose()
	}
}

// choose sets Row, Score and Ties to the feasible row with the highest total; a draw decides
// between ties. Feasible must be set, and not 0: a single feasible row is taken without scoring.
// Rejected is set, and no row chosen, if a scorer or a PreScore fails or a score is out of range.
func (d *decider) choose() {
	v := d.view
	switch {
	case d.Feasible == 1:
		d.Row = d.feasibleRows()[0]
	case v.failed != nil:
		d.Rejected = v.failed
	case v.index.OutOfRange > 0 && d.findOutOfRange():
	case v.keys.Profile.Host != nil && !d.scoreHosted(): // hosted.go
	case d.hosted.bonus == nil && d.decidedByBuckets():
		d.scoreBuckets(nil)
		d.Row, d.Score, d.Ties = v.index.Pick(d.drawSeed())
	default:
		d.scan() // scan.go
	}
	if d.Rejected != nil {
		d.Row, d.Score, d.Ties = -1, 0, 0
	}
}

// drawSeed returns the seed of the draw between ties. It depends on the engine's seed and
// the pod's UID, not on earlier choices.
func (d *decider) drawSeed() uint64 { return draw.Seed(d.engine.seed, d.pod.UID, 0) }

// scoreBuckets sets the bonus of each bucket that fits: the weighted scores, equal for all its rows,
// from scorers that are normalised or answer by cells. If passes is not nil, scores are normalised
// over the rows for which it is true, and Fits of buckets without such rows may be cleared. Rejected
// is set if a score is out of range.
func (d *decider) scoreBuckets(passes func(table.Row) bool) {
	v, buckets := d.view, d.view.index.Buckets()
	d.weighBuckets()
	d.extremes = d.buffers.clearedExtremes(len(v.scorers))
	for i := range buckets {
		buckets[i].Bonus = 0
	}
	for k := range v.scorers {
		s := &v.scorers[k]
		if !s.column.kept {
			continue
		}
		d.extremes[k] = d.bucketExtremes(s, passes)
		for i := range buckets {
			bucket := &buckets[i]
			if !bucket.Fits {
				continue
			}
			raw := s.rawOf(bucket.Value(s.column.at))
			if passes != nil && d.extremes[k].excludes(raw) {
				bucket.Fits = false // none of its rows passes
				continue
			}
			bucket.Bonus += d.normalisedScore(k, raw)
		}
	}
}

// bucketExtremes returns the minimum and maximum of the scorer's raw scores over the buckets
// that fit, by which they are normalised. If passes is not nil, only rows for which it
// returns true count.
func (d *decider) bucketExtremes(s *scorer, passes func(table.Row) bool) extremes {
	if passes != nil {
		return d.extremesThat(s, passes)
	}
	e, buckets := noExtremes, d.view.index.Buckets()
	for i := range buckets {
		if bucket := &buckets[i]; bucket.Fits {
			e.add(s.rawOf(bucket.Value(s.column.at)))
		}
	}
	return e
}

// extremes are the least and the greatest of some raw scores, framework.NoScore left out.
type extremes struct{ low, high int64 }

// noExtremes are the extremes of no scores: low is above high.
var noExtremes = extremes{math.MaxInt64, math.MinInt64}

// excludes reports whether the raw score is outside the range. NoScore is never outside.
func (e extremes) excludes(raw int64) bool {
	return raw != framework.NoScore && (raw < e.low || raw > e.high)
}

// add makes the range of raw scores include one more. NoScore changes nothing.
func (e *extremes) add(raw int64) {
	if raw != framework.NoScore {
		e.low, e.high = min(e.low, raw), max(e.high, raw)
	}
}

// rawOf returns the raw score for a value of the scorer's column: for a scorer by cells the
// value is a cell, and the plugin is asked for its score.
func (s *scorer) rawOf(value int64) int64 {
	if s.cells != nil {
		return s.CellScore.Score(&s.in, value)
	}
	return value
}

// normalisedScore returns the k-th scorer's normalised score for a raw one, times its weight. If
// the score before weighting is not within 0 to 100, Rejected is set to an error.
func (d *decider) normalisedScore(k int, raw int64) int64 {
	s := &d.view.scorers[k]
	score := s.normal(raw, d.extremes[k])
	if score < 0 || score > maxScore {
		d.Rejected = invalidScore(s.Name, score)
	}
	return s.weight * score
}

// normal returns the scorer's score, without weight, for a raw one; e are the extremes over
// the feasible rows. NoScore becomes 0, and a scorer without NormalizeScore keeps the raw
// score.
func (s *scorer) normal(raw int64, e extremes) int64 {
	switch {
	case raw == framework.NoScore:
		return 0
	case s.NormalizeScore == nil:
		return raw
	}
	return s.NormalizeScore(raw, e.low, e.high)
}

// findOutOfRange sets Rejected to an error for the first feasible row to which a scorer that is not
// normalised gives a score out of range. It reports whether there is one.
func (d *decider) findOutOfRange() bool {
	for _, r := range d.feasibleRows() {
		if d.view.index.Score(r) >= 0 {
			continue
		}
		for k := range d.view.scorers {
			s := &d.view.scorers[k]
			if score := s.scoreAt(r); s.NormalizeScore == nil && (score < 0 || score > maxScore) {
				d.Rejected = invalidScore(s.Name, score)
				return true
			}
		}
	}
	return false
}

// invalidScore returns kube-scheduler's error for a normalised score that is not within 0
// to 100.
func invalidScore(plugin string, score int64) *decision.Status {
	return &decision.Status{
		Code: decision.Error, Plugin: plugin,
		Err: fmt.Errorf("plugin %q returns an invalid score %d, it should in the range of [0, %d] after normalizing", plugin, score, maxScore),
	}
}
