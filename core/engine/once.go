package engine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/table"
)

// Questions that hosted plugins ask about the others, on the table as it stands and
// whatever is decided on meanwhile. They touch no view.

// Fit returns why the pod does not fit on one row, by native plugins; nil if it fits.
func (e *Engine) Fit(r *Request, row table.Row) *decision.Status {
	v := prepare(e.table, newKeys(r.Profile), r.Pod)
	if v.rejected != nil {
		return v.rejected
	}
	for k := range v.filters {
		v.filters[k].skip = v.filters[k].hosted
	}
	o := &Outcome{engine: e, view: v, pod: r.Pod}
	b := o.Refit(row, nil)
	if b == nil {
		return nil
	}
	if b.Code == decision.Error {
		return filterFailure(*b)
	}
	return &decision.Status{Code: b.Code, Plugin: b.Plugin, Reasons: b.Reasons}
}

// ScoresOf returns what the native score plugins give each of the nodes. It leaves out
// nodes that do not exist.
func (e *Engine) ScoresOf(r *Request, nodes []string) (map[string][]decision.Score, *decision.Status) {
	v := prepare(e.table, newKeys(r.Profile), r.Pod)
	switch {
	case v.rejected != nil:
		return nil, v.rejected
	case v.failed != nil:
		return nil, v.failed
	}
	v.filters = nil // the nodes are given
	v.cellFilters, v.hostedFilters = nil, nil
	o := &Outcome{engine: e, view: v, pod: r.Pod, narrowed: e.rowsOf(nodes)}
	v.askAll(e.table)
	scores := map[string][]decision.Score{}
	o.hosted.scored = true
	list, extremes := e.list, e.extremes // of the decision that is under way
	e.list, e.extremes = nil, nil
	for _, row := range o.narrowed {
		_, scores[e.table.Name(row)] = o.scores(row)
	}
	e.list, e.extremes = list, extremes
	return scores, nil
}
