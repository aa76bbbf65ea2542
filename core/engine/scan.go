package engine

import (
	"math"
	"slices"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/draw"
	"github.com/berth-scheduler/berth/core/table"
)

// scan sets Row, Score and Ties to the best of the feasible rows, whose totals it adds up one by
// one; Rejected if a score is out of range. It is used where the index has no buckets, or hosted
// plugins, nominations or extenders decide on single rows.
func (d *decider) scan() {
	rows := d.feasibleRows()
	raws := d.findExtremes()
	totals := d.buffers.columns.next(len(rows))
	for i, r := range rows {
		totals[i] = d.view.index.Score(r) + d.hostedBonus(r)
	}
	if d.extenders != nil {
		for i, r := range rows {
			totals[i] += d.extenders.bonus[r]
		}
	}
	base := d.addToTotals(totals, raws)
	if d.Rejected != nil { // a score out of range
		return
	}
	best, tied := int64(math.MinInt64), d.buffers.tied[:0]
	for i, sum := range totals {
		switch {
		case sum > best:
			best, tied = sum, append(tied[:0], rows[i])
		case sum == best:
			tied = append(tied, rows[i])
		}
	}
	d.buffers.tied = tied
	if d.Row, d.Score, d.Ties = tied[0], base+best, len(tied); d.Ties > 1 {
		d.draw(tied, func(r table.Row) bool { _, is := slices.BinarySearch(tied, r); return is })
	}
}

// draw sets Row to one of the tied rows, by the decision's seed. The result is independent
// of how the rows are listed; isTied reports whether a row is among them.
func (d *decider) draw(tied []table.Row, isTied func(table.Row) bool) {
	d.Row = draw.Row(d.drawSeed(), len(tied), draw.Rows{
		Candidates: d.candidates(),
		Candidate:  d.candidate,
		Tied:       isTied,
		Each: func(f func(table.Row)) {
			for _, r := range tied {
				f(r)
			}
		},
	})
}

// findExtremes sets extremes to the minimum and maximum of the raw scores over the feasible rows,
// for each scorer that is normalised or answers by cells. It returns these raw scores by scorer,
// then in the order of the feasible rows; nil for other scorers. It reclaims the column buffers.
func (d *decider) findExtremes() (raws [][]int64) {
	d.weighRows()
	d.extremes = d.buffers.clearedExtremes(len(d.view.scorers))
	raws = resize(d.buffers.raws, len(d.view.scorers))
	clear(raws)
	d.buffers.raws = raws
	d.buffers.columns.begin()
	for k := range d.view.scorers {
		s := &d.view.scorers[k]
		if s.cells == nil && !s.column.kept {
			continue
		}
		e := noExtremes
		raws[k] = d.rawScores(s)
		for _, raw := range raws[k] {
			e.add(raw)
		}
		d.extremes[k] = e
	}
	return raws
}

// rawScores returns the scorer's raw scores of the feasible rows, in their order, from
// cells, a partition or the index. The slice is valid until the next findExtremes.
func (d *decider) rawScores(s *scorer) []int64 {
	rows := d.feasibleRows()
	scores := d.buffers.columns.next(len(rows))
	if s.cells != nil {
		s.CellScore.AskRows(&s.in, rows, scores)
		return scores
	}
	if s.partition != nil {
		s.partition.Write(rows, scores)
		return scores
	}
	for i, r := range rows {
		scores[i] = d.view.index.Value(r, s.column.at)
	}
	return scores
}

// addToTotals adds the weighted, normalised scores to totals, by feasible row. raws are those of
// findExtremes. A score that every row gets is not added but returned in base. Rejected is set if a
// score is out of range.
func (d *decider) addToTotals(totals []int64, raws [][]int64) (base int64) {
	for k, raw := range raws {
		e := d.extremes[k]
		if raw == nil || e.low > e.high {
			continue
		}
		if e.low == e.high && d.view.scorers[k].cells == nil {
			base += d.normalisedScore(k, e.low)
			continue
		}
		for i, score := range raw {
			totals[i] += d.normalisedScore(k, score)
		}
	}
	return base
}

// scores returns the row's weighted total and its score from each plugin, hosted plugins and
// extenders included; none if the pod was rejected or scoring fails. Plugins are asked as needed.
// It is for reports.
func (d *decider) scores(r table.Row) (total int64, scores []decision.Score) {
	if d.view.failed != nil || d.Rejected != nil {
		return 0, nil
	}
	if d.extremes == nil {
		d.findExtremes()
	}
	if !d.scoreHosted() { // nothing was scored, and nobody wants to know any more
		d.Rejected = nil
		return 0, nil
	}
	for k := range d.view.scorers {
		s := &d.view.scorers[k]
		score := s.normal(s.scoreAt(r), d.extremes[k])
		scores = append(scores, decision.Score{Plugin: s.Name, Score: score, Weight: s.weight})
		total += s.weight * score
	}
	scores, total = d.appendHostedScores(scores, r), total+d.hostedBonus(r)
	if d.extenders != nil {
		scores, total = append(scores, d.extenders.scores[r]...), total+d.extenders.bonus[r]
	}
	return total, scores
}
