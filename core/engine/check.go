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
		e.keyBuf = appendKey(e.keyBuf[:0], e.table, v.profile, v.pod, anyLocality)
		if !v.current(e.table) || string(e.keyBuf) != key {
			continue // it will be made anew before it is used, or its pod is of another class now
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
			if s := &v.scorers[k]; s.Normalize != nil && s.cells == nil && s.raw()[r] != s.ask(r) {
				return fmt.Errorf("node %q: %s kept %d, fresh %d", t.Name(r), s.Name, s.raw()[r], s.ask(r))
			}
		}
	}
	if v.feasible != fresh.feasible || v.poisoned != fresh.poisoned || !maps.Equal(v.tally, fresh.tally) {
		return fmt.Errorf("kept %d feasible (%d invalid) and blockers %v; fresh %d (%d) and %v",
			v.feasible, v.poisoned, v.tally, fresh.feasible, fresh.poisoned, fresh.tally)
	}
	if err := v.compareCells(fresh, t); err != nil || v.index == nil {
		return err
	}
	return v.index.check(v)
}

// fresh is a view of the same class that shares nothing with v.
func (v *view) fresh(t *table.Table) *view {
	f := prepare(t, v.profile, v.pod, v.class.key)
	s := &static{}
	s.take(f)
	s.refresh(t, 1)
	f.stand(s)
	f.sync()
	f.rebuild(t, 1)
	return f
}

// compareCells holds what is kept of domains against fresh counts: each row's
// verdicts and scores by cells. Cells themselves may be numbered otherwise.
func (v *view) compareCells(f *view, t *table.Table) error {
	for k, c := range v.cellFilters {
		o := f.cellFilters[k]
		for r := range t.Rows() {
			if t.Node(table.Row(r)) == nil {
				continue
			}
			kept, now := c.CellFilter.Verdict(&c.in, c.cells.at[r]), o.CellFilter.Verdict(&o.in, o.cells.at[r])
			if kept != now {
				return fmt.Errorf("node %q: %s kept verdict %d, fresh %d", t.Name(table.Row(r)), c.Name, kept, now)
			}
		}
	}
	for k := range v.scorers {
		c, o := &v.scorers[k], &f.scorers[k]
		if c.cells == nil {
			continue
		}
		v.weighAll(c)
		f.weighAll(o)
		for r := range t.Rows() {
			if v.first[r] != feasible {
				continue
			}
			kept, now := c.CellScore.Score(&c.in, c.cells.at[r]), o.CellScore.Score(&o.in, o.cells.at[r])
			if kept != now {
				return fmt.Errorf("node %q: %s kept score %d, fresh %d", t.Name(table.Row(r)), c.Name, kept, now)
			}
		}
	}
	return nil
}

// weighAll weighs the scorer as if no filter by cells objected.
func (v *view) weighAll(s *scorer) {
	if s.CellScore.Weigh == nil {
		return
	}
	counts := map[int64]int{}
	for r, first := range v.first {
		if first == feasible {
			counts[s.cells.at[r]]++
		}
	}
	s.CellScore.Weigh(&s.in, sortedCells(counts))
}

// check compares the index with the view's columns.
func (x *index) check(v *view) error {
	total := 0
	for id := range x.groups {
		rows, err := x.checkGroup(v, int32(id))
		if err != nil {
			return err
		}
		total += rows
	}
	if total != v.feasible {
		return fmt.Errorf("%d rows are ranked, %d feasible", total, v.feasible)
	}
	return nil
}

func (x *index) checkGroup(v *view, id int32) (rows int, err error) {
	g := &x.groups[id]
	for score := range g.first {
		count, before := int32(0), table.Row(none)
		for r := g.first[score]; r != none; before, r = r, x.next[r] {
			count++
			switch {
			case v.first[r] != feasible:
				return 0, fmt.Errorf("row %d is ranked but not feasible", r)
			case x.groupOf[r] != id || x.prev[r] != before || !x.same(r, id):
				return 0, fmt.Errorf("row %d is not where the index says", r)
			case int64(score) != v.final[r] || x.final[r] != int32(score):
				return 0, fmt.Errorf("row %d is ranked by score %d, it has %d", r, score, v.final[r])
			}
		}
		if count != g.having[score] || (count > 0 && int32(score) > g.top) {
			return 0, fmt.Errorf("group %d counts %d rows of score %d and %d as the highest, has %d", id, g.having[score], score, g.top, count)
		}
		rows += int(count)
	}
	if rows != g.rows || (rows > 0 && g.having[g.top] == 0) {
		return 0, fmt.Errorf("group %d counts %d rows, the highest %d; has %d", id, g.rows, g.top, rows)
	}
	return rows, nil
}
