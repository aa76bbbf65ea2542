package engine

import (
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/table"
)

// Check brings every kept view up to date, compares it with a fresh
// evaluation of all rows, and names the first difference.
func (e *Engine) Check() error {
	for _, key := range sortedViews(e.views) {
		v := e.views[key]
		if !v.current(e.table) {
			continue // it will be made anew before it is used
		}
		v.refresh(e.table, 1)
		if err := v.compareFresh(e.table); err != nil {
			return fmt.Errorf("engine: class %q: %w", key, err)
		}
	}
	return nil
}

func sortedViews(views map[string]*view) []string {
	keys := make([]string, 0, len(views))
	for k := range views { // any order: sorted below
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (v *view) compareFresh(t *table.Table) error {
	fresh := &view{filters: v.filters, tally: map[blockKey]int{}}
	for _, s := range v.scorers {
		s.raw = nil
		fresh.scorers = append(fresh.scorers, s)
	}
	fresh.rebuild(t, 1)
	for r := range t.Rows() {
		row := table.Row(r)
		if v.first[r] != fresh.first[r] || v.verdict[r] != fresh.verdict[r] {
			return fmt.Errorf("node %q: kept filter %d verdict %d, fresh %d and %d", t.Name(row), v.first[r], v.verdict[r], fresh.first[r], fresh.verdict[r])
		}
		if v.first[r] != feasible {
			continue
		}
		for k := range v.scorers {
			if kept, now := v.scorers[k].raw[r], fresh.scorers[k].raw[r]; kept != now {
				return fmt.Errorf("node %q: %s kept %d, fresh %d", t.Name(row), v.scorers[k].Name, kept, now)
			}
		}
		if v.final[r] != fresh.final[r] {
			return fmt.Errorf("node %q: kept sum %d, fresh %d", t.Name(row), v.final[r], fresh.final[r])
		}
	}
	for k := range v.scorers {
		if kept, now := v.scorers[k].extremes, fresh.scorers[k].extremes; v.feasible > 0 && kept.known && kept != now {
			return fmt.Errorf("%s keeps extremes %+v, fresh %+v", v.scorers[k].Name, kept, now)
		}
	}
	if v.feasible != fresh.feasible || len(v.tally) != len(fresh.tally) {
		return fmt.Errorf("kept %d feasible, %d kinds of blockers; fresh %d and %d", v.feasible, len(v.tally), fresh.feasible, len(fresh.tally))
	}
	for k, n := range v.tally { // any order: an error is an error
		if fresh.tally[k] != n {
			return fmt.Errorf("filter %d verdict %d counted %d times, fresh %d", k.filter, k.verdict, n, fresh.tally[k])
		}
	}
	return nil
}
