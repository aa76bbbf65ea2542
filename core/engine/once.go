package engine

import (
	"github.com/berth-scheduler/berth/core/classes"
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/table"
)

// Questions that hosted plugins ask about the others, on the table as it stands and
// whatever is decided on meanwhile. They touch no view.

// aside returns a decider for the pod with a new view and buffers, which shares nothing with the
// decision under way. PreFilter and PreScore have run; no row is evaluated.
func (e *Engine) aside(r *Request) *decider {
	return &decider{feasibility: feasibility{engine: e, buffers: &buffers{}, view: prepare(e.table, classes.KeysOf(r.Profile), r.Pod), pod: r.Pod}}
}

// Fit returns the status with which PreFilter or a native filter rejects the pod on one row, or
// fails; nil if the pod fits. Nominations are ignored. It serves hosted plugins that run the
// filters themselves.
func (e *Engine) Fit(r *Request, row table.Row) *decision.Status {
	d := e.aside(r)
	v := d.view
	if v.rejected != nil {
		return v.rejected
	}
	for k := range v.filters {
		v.filters[k].skip = v.filters[k].hosted
	}
	b := (&Outcome{work: d}).refilter(row, nil)
	if b == nil {
		return nil
	}
	if b.Code == decision.Error {
		return filterFailure(*b)
	}
	return &decision.Status{Code: b.Code, Plugin: b.Plugin, Reasons: b.Reasons}
}

// ScoresOf returns the scores of each of the named nodes from the native score plugins, as
// if these nodes were all feasible and the only ones. It leaves out nodes that do not
// exist. The status is not nil if PreFilter or PreScore rejects the pod or fails.
func (e *Engine) ScoresOf(r *Request, nodes []string) (map[string][]decision.Score, *decision.Status) {
	d := e.aside(r)
	v := d.view
	switch {
	case v.rejected != nil:
		return nil, v.rejected
	case v.failed != nil:
		return nil, v.failed
	}
	v.filters = nil // the nodes are given
	v.cellFilters, v.hostedFilters = nil, nil
	d.narrowed = e.rowsOf(nodes)
	v.askAll(e.table)
	scores := map[string][]decision.Score{}
	d.hosted.scored = true
	for _, row := range d.narrowed {
		_, scores[e.table.Name(row)] = d.scores(row)
	}
	return scores, nil
}
