package engine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// isFailure reports whether the cause's verdict stands for an error of the filter, not for
// a rejection of the node.
func (v *view) isFailure(c ranking.Cause) bool {
	if !c.Rejects() {
		return false
	}
	least := v.filters[c.Filter-1].ErrorsFrom
	return least != 0 && framework.Verdict(c.Verdict) >= least
}

// explain returns the blocker (plugin, code, reasons) for a cause that rejects the row; the cause
// must be a filter's. The error of a filter that failed may name the pod; reasons are those of the
// class.
func (v *view) explain(pod *object.Pod, c ranking.Cause, r table.Row) decision.Blocker {
	f := &v.filters[c.Filter-1]
	in := f.in
	if v.isFailure(c) {
		in.Pod = pod // the error may name what is the pod's own
	}
	b := f.Explain(&in, r, framework.Verdict(c.Verdict))
	b.Plugin = f.Name
	return b
}

// hasFailure reports whether a filter that answers by rows, hosted ones left out, failed on some
// row.
func (v *view) hasFailure() bool {
	for c := range v.index.Causes() {
		if v.isFailure(c) {
			return true
		}
	}
	return false
}

// failure returns an Error status if a filter failed on a node that no filter before it rejects;
// nil if none did. As in kube-scheduler the decision fails then, whatever the other nodes. Of
// several errors that with the lowest verdict counts, on the lowest row. The class's view is
// dropped if a kept verdict is an error.
func (x *feasibility) failure() *decision.Status {
	kept := x.view.fallible && x.view.hasFailure()
	if !kept && !x.hostedVerdicts.failed {
		return nil
	}
	if kept && x.view.class != nil {
		x.engine.cache.dropView(x.view.class.Signature)
	}
	at, found := table.Row(-1), ranking.Cause{}
	for i, n := 0, x.candidates(); i < n; i++ {
		r := x.candidate(i)
		if c := x.causeAt(r); x.view.isFailure(c) && (at < 0 || c.Verdict < found.Verdict) {
			at, found = r, c
		}
	}
	if at < 0 {
		return nil
	}
	return filterFailure(x.view.explain(x.pod, found, at))
}

// filterFailure returns the Error status for a filter that failed with that blocker.
func filterFailure(b decision.Blocker) *decision.Status {
	return &decision.Status{Code: decision.Error, Plugin: b.Plugin, Point: "Filter", Err: b.Failure()}
}
