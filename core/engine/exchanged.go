package engine

import (
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// causeExchanged returns the first filter that would reject the row if the pods of a priority lower
// than below left the node and the pods in came were added; the Cause rejects nothing if none
// would. Nothing is placed. known is false if only a trial placement with all filters can tell, and
// always on an engine of NewPlain.
func (x *feasibility) causeExchanged(r table.Row, below int32, came []*object.Pod) (c ranking.Cause, known bool) {
	if x.engine.plain {
		return c, false
	}
	now := x.view.cause(r)
	if now.Filter == noNode { // no filter was asked
		return c, false
	}
	for _, p := range came {
		if pl := x.engine.table.Pod(p.UID); pl != nil && (pl.Row != r || p.Priority >= below) { // it would move
			return c, false
		}
	}
	for k := range x.view.filters {
		f := &x.view.filters[k]
		if f.skip {
			continue
		}
		v, known := x.verdictExchanged(f, now, r, below, came)
		if !known || v != framework.Fits {
			return ranking.Cause{Filter: f.position, Verdict: uint64(v)}, known
		}
	}
	return ranking.Cause{Filter: ranking.Feasible}, true
}

// verdictExchanged returns the verdict of filter f on the row if the pods of a priority lower than
// below left and those in came were added. now is the row's present cause among filters that answer
// by rows. known is false if only a trial placement can tell.
func (x *feasibility) verdictExchanged(f *filter, now ranking.Cause, r table.Row, below int32, came []*object.Pod) (v framework.Verdict, known bool) {
	byRow := f.cells == nil && !f.hosted
	passes := byRow && (!now.Rejects() || f.position < now.Filter)
	switch {
	case byRow && f.Locality == framework.NodeOnly && passes:
		return framework.Fits, true
	case byRow && f.Locality == framework.NodeOnly && f.position == now.Filter:
		return framework.Verdict(now.Verdict), true
	case byRow && f.Locality == framework.NodeOnly:
		return f.verdictAt(r), true
	case passes && len(came) == 0 && (f.in.Sums != nil || f.in.Conflicts != nil): // fewer pods are in nobody's way
		return framework.Fits, true
	}
	if f.cells != nil {
		f.cells.sync(&f.in)
	}
	return f.Exchanged(&f.in, r, below, came)
}
