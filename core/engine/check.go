package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/table"
)

// Check brings every kept view up to date, compares it with a fresh
// evaluation of all rows, and names the first difference.
func (e *Engine) Check() error {
	for _, key := range slices.Sorted(maps.Keys(e.views)) {
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

func (v *view) compareFresh(t *table.Table) error {
	fresh := v.fresh(t)
	for i := range t.Rows() {
		r := table.Row(i)
		if v.first[r] != fresh.first[r] || v.verdict[r] != fresh.verdict[r] {
			return fmt.Errorf("node %q: kept filter %d verdict %d, fresh %d and %d", t.Name(r), v.first[r], v.verdict[r], fresh.first[r], fresh.verdict[r])
		}
		if v.first[r] != feasible {
			continue
		}
		if v.final[r] != fresh.final[r] {
			return fmt.Errorf("node %q: kept score %d, fresh %d", t.Name(r), v.final[r], fresh.final[r])
		}
		for k := range v.scorers {
			if s := &v.scorers[k]; s.Normalize != nil && s.raw()[r] != s.ask(r) {
				return fmt.Errorf("node %q: %s kept %d, fresh %d", t.Name(r), s.Name, s.raw()[r], s.ask(r))
			}
		}
	}
	if v.feasible != fresh.feasible || v.poisoned != fresh.poisoned || !maps.Equal(v.tally, fresh.tally) {
		return fmt.Errorf("kept %d feasible (%d invalid) and blockers %v; fresh %d (%d) and %v",
			v.feasible, v.poisoned, v.tally, fresh.feasible, fresh.poisoned, fresh.tally)
	}
	if v.index != nil {
		return v.index.check(v)
	}
	return nil
}

// fresh is a view of the same class that shares nothing with v.
func (v *view) fresh(t *table.Table) *view {
	s := &static{filters: v.static.filters, scorers: v.static.scorers}
	s.refresh(t, 1)
	f := &view{filters: v.filters, scorers: slices.Clone(v.scorers), tally: map[blockKey]int{}}
	f.stand(s)
	f.rebuild(t, 1)
	return f
}

// check compares the index with the view's columns.
func (x *index) check(v *view) error {
	total := 0
	for id := range x.groups {
		g := &x.groups[id]
		total += len(g.heap)
		having := make([]int32, len(g.having))
		for i, e := range g.heap {
			having[e.final]++
			switch {
			case v.first[e.row] != feasible:
				return fmt.Errorf("row %d is ranked but not feasible", e.row)
			case x.groupOf[e.row] != int32(id) || x.at[e.row] != int32(i):
				return fmt.Errorf("row %d is not where the index says", e.row)
			case int64(e.final) != v.final[e.row]:
				return fmt.Errorf("row %d is ranked by score %d, it has %d", e.row, e.final, v.final[e.row])
			case !x.same(v, e.row, int32(id)):
				return fmt.Errorf("row %d is in the wrong group", e.row)
			case i > 0 && e.final > g.heap[(i-1)/2].final:
				return fmt.Errorf("row %d is ranked after a lesser one", e.row)
			}
		}
		if !slices.Equal(having, g.having) {
			return fmt.Errorf("group %d counts %v rows by score, has %v", id, g.having, having)
		}
	}
	if total != v.feasible {
		return fmt.Errorf("%d rows are ranked, %d feasible", total, v.feasible)
	}
	return nil
}
