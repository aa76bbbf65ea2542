package engine

import (
	"fmt"
	"strings"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/table"
)

// failing tells whether the verdict says that the filter failed.
func (v *view) failing(k blockKey) bool {
	if k.filter <= 0 {
		return false
	}
	least := v.filters[k.filter-1].ErrorsFrom
	return least != 0 && k.verdict >= least
}

// broken tells whether a filter failed on some row that no filter by rows
// rejects before it.
func (v *view) broken() bool {
	for id := range v.causes.keys {
		if v.causes.rows[id] > 0 && v.failing(v.causes.keys[id]) {
			return true
		}
	}
	return false
}

// failure is how a filter failed on a node that no filter before it rejects;
// nil where none did. As with v1.36, deciding on the pod then fails, whatever
// other nodes say. What is kept of such a class is dropped.
func (o *Outcome) failure() *decision.Status {
	if !o.view.fallible || !o.view.broken() {
		return nil
	}
	o.engine.drop(o.view.class.key)
	at, found := table.Row(-1), blockKey{}
	for i, n := 0, o.candidates(); i < n; i++ {
		r := o.candidate(i)
		if k := o.blockAt(r); o.view.failing(k) && (at < 0 || k.verdict < found.verdict) {
			at, found = r, k
		}
	}
	if at < 0 {
		return nil
	}
	b := o.explain(found, at)
	return &decision.Status{Code: decision.Error, Plugin: b.Plugin, Err: fmt.Errorf("running %q filter plugin: %s", b.Plugin, strings.Join(b.Reasons, ", "))}
}
