package engine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// isFailure reports whether the cause is a filter's error, not a verdict on the node.
func (v *view) isFailure(c ranking.Cause) bool {
	if !c.Rejects() {
		return false
	}
	least := v.filters[c.Filter-1].ErrorsFrom
	return least != 0 && framework.Verdict(c.Verdict) >= least
}

// hasFailure reports whether a filter that the index covers failed on some row.
func (v *view) hasFailure() bool {
	for c := range v.index.Causes() {
		if v.isFailure(c) {
			return true
		}
	}
	return false
}

// failure returns how a filter failed on a node that no filter before it rejects; nil
// where none did. As with v1.36, deciding on the pod then fails, whatever other
// nodes say. What is kept of such a class is dropped.
func (o *Outcome) failure() *decision.Status {
	kept := o.view.fallible && o.view.hasFailure()
	if !kept && !o.hosted.failed {
		return nil
	}
	if kept && o.view.class != nil {
		o.engine.dropView(o.view.class.signature)
	}
	at, found := table.Row(-1), ranking.Cause{}
	for i, n := 0, o.candidates(); i < n; i++ {
		r := o.candidate(i)
		if c := o.causeAt(r); o.view.isFailure(c) && (at < 0 || c.Verdict < found.Verdict) {
			at, found = r, c
		}
	}
	if at < 0 {
		return nil
	}
	return filterFailure(o.explain(found, at))
}

func filterFailure(b decision.Blocker) *decision.Status {
	return &decision.Status{Code: decision.Error, Plugin: b.Plugin, Point: "Filter", Err: b.Failure()}
}
