package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// A hosted filter is slow beside what is kept. It need not be asked about every row:
// the index knows the order of the rows, except for the extremes of normalised scores,
// which are those over the feasible rows. So hosted filters are asked about rows that
// hold an extreme, until one passes, and then about the best rows, until one passes.
// What is chosen is what would be if all had been asked.

// mostAsked is the number of rows after which hosted filters are asked about all rows at
// once: one call for all is cheaper than that many calls for one row.
const mostAsked = 32

// bestFirst chooses the row while asking hosted plugins about as few rows as possible. It sets the
// Choice, or Rejected if a hosted filter fails or a score is out of range, and returns true. It
// returns false, with no row chosen, if there is no hosted plugin, the choice depends on answers
// about all rows, fewer than two rows pass the native filters, or none passes the hosted ones.
func (d *decider) bestFirst() bool {
	v := d.view
	if v.keys.Profile.Host == nil {
		return false // there is nobody to ask
	}
	scorers, bounded := d.boundedScorers() // bounded.go
	if !bounded || len(v.hostedFilters)+len(scorers) == 0 || !d.hasBuckets() || v.fallible || v.failed != nil ||
		v.index.OutOfRange > 0 || slices.ContainsFunc(v.scorers, weighsNodes) {
		return false
	}
	feasible := d.filterBuckets()
	if feasible < 2 {
		return false
	}
	d.scoreBuckets(d.passes())
	row, score, ties := d.pickHosted(scorers)
	d.Feasible = feasible - d.hostedVerdicts.rejected
	switch {
	case d.hostedVerdicts.failed:
		d.Rejected = d.hostedFailure()
	case d.Rejected != nil && len(scorers) > 0: // it counts if more than one row passes
		d.Rejected, d.Row = nil, -1
		return false
	case d.Rejected != nil: // a score out of range
	case row < 0:
		return false
	default:
		d.Row, d.Score, d.Ties = row, score, ties
	}
	return true
}

// passes returns a function that reports whether a row passes all filters, hosted ones
// included; nil if there are no hosted filters. The function asks hosted filters about a
// row whose verdict is not known. As that is slow row by row, its mostAsked-th call asks
// them about all rows at once.
func (d *decider) passes() func(table.Row) bool {
	if len(d.view.hostedFilters) == 0 {
		return nil
	}
	asked := 0
	return func(r table.Row) bool {
		if asked++; asked == mostAsked {
			d.askHostedFilters()
		}
		return d.causeBefore(r, len(d.view.hostedFilters)).Filter == ranking.Feasible
	}
}

// weighsNodes reports whether the scorer needs the number of feasible nodes of each cell
// (topology domain) before it scores.
func weighsNodes(s scorer) bool { return s.CellScore != nil && s.CellScore.FeasibleNodes != nil }

// extremesThat returns the extremes of the scorer's raw scores over the rows for which passes is
// true, in buckets that fit; noExtremes if there are none. It calls passes for as few rows as it
// can. If the buckets have one raw score only, it returns that without calling passes.
func (d *decider) extremesThat(s *scorer, passes func(table.Row) bool) extremes {
	var values []int64
	buckets := d.view.index.Buckets()
	rawOf := func(bucket *ranking.Bucket) int64 { return s.rawOf(bucket.Value(s.column.at)) }
	for i := range buckets {
		if bucket := &buckets[i]; bucket.Fits && rawOf(bucket) != framework.NoScore {
			values = append(values, rawOf(bucket))
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	if len(values) < 2 {
		return extremesOver(values)
	}
	holds := make([]bool, len(buckets)) // the value in question
	held := func(value int64) bool {
		for i := range buckets {
			holds[i] = buckets[i].Fits && rawOf(&buckets[i]) == value
		}
		for r, bucket := range d.view.index.FeasibleRows() {
			if holds[bucket] && passes(r) {
				return true
			}
		}
		return false
	}
	low := slices.IndexFunc(values, held)
	if low < 0 {
		return noExtremes
	}
	high := len(values) - 1
	for high > low && !held(values[high]) {
		high--
	}
	return extremes{values[low], values[high]}
}

// extremesOver returns the least and the greatest of the raw scores; noExtremes if there
// are none.
func extremesOver(values []int64) extremes {
	e := noExtremes
	for _, raw := range values {
		e.add(raw)
	}
	return e
}
