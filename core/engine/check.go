package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/table"
)

// Check brings every view that is kept, or was made ahead of its turn, up to
// date, compares it with a fresh evaluation of all rows, and names the first
// difference.
func (e *Engine) Check() error {
	for _, views := range []map[string]*view{e.views, e.guests} {
		if err := e.check(views); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) check(views map[string]*view) error {
	for _, key := range slices.Sorted(maps.Keys(views)) {
		v := views[key]
		if v.class.narrowed != nil {
			continue // a few of its rows are looked at when its turn comes
		}
		e.keyBuf = v.reading.appendKey(e.keyBuf[:0], e.table, v.pod)
		if !v.current(e.table) || string(e.keyBuf) != key {
			continue // it will be made anew before it is used, or its pod is of another class now
		}
		v.refresh(e.table, 1, &e.found[0])
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
		if kept, now := v.first(r), fresh.first(r); kept != now {
			return fmt.Errorf("node %q: kept filter %d verdict %d, fresh %d and %d", t.Name(r), kept.filter, kept.verdict, now.filter, now.verdict)
		}
		if !v.at[r].feasible() {
			continue
		}
		if kept, now := v.score(r), fresh.score(r); kept != now {
			return fmt.Errorf("node %q: kept score %d, fresh %d", t.Name(r), kept, now)
		}
		for k := range v.scorers {
			if s := &v.scorers[k]; s.NormalizeScore != nil && s.cells == nil && s.raw()[r] != s.ask(r) {
				return fmt.Errorf("node %q: %s kept %d, fresh %d", t.Name(r), s.Name, s.raw()[r], s.ask(r))
			}
		}
	}
	if kept, now := v.causes.tally(), fresh.causes.tally(); v.feasible != fresh.feasible || v.poisoned != fresh.poisoned || !maps.Equal(kept, now) {
		return fmt.Errorf("kept %d feasible (%d invalid) and blockers %v; fresh %d (%d) and %v",
			v.feasible, v.poisoned, kept, fresh.feasible, fresh.poisoned, now)
	}
	if err := v.compareCells(fresh, t); err != nil || v.scattered() {
		return err
	}
	return v.check()
}

// fresh is a view of the same class that shares nothing with v.
func (v *view) fresh(t *table.Table) *view {
	f := prepare(t, v.reading, v.pod, v.class.key)
	var found scratch
	f.stand(newStatic(t, f))
	f.refresh(t, 1, &found)
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
			kept, now := c.CellFilter.Filter(&c.in, c.cells.at[r]), o.CellFilter.Filter(&o.in, o.cells.at[r])
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
			if !v.at[r].feasible() {
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
	if s.CellScore.FeasibleNodes == nil {
		return
	}
	counts := map[int64]int{}
	for r, at := range v.at {
		if at.feasible() {
			counts[s.cells.at[r]]++
		}
	}
	s.CellScore.FeasibleNodes(&s.in, sortedCells(counts))
}

// check compares the groups with where the rows stand.
func (s *standings) check() error {
	for id := range s.groups {
		if err := s.checkGroup(int32(id)); err != nil {
			return fmt.Errorf("group %d: %w", id, err)
		}
	}
	return nil
}

func (s *standings) checkGroup(id int32) error {
	g := &s.groups[id]
	having, rows := make([]int32, len(g.having)), 0
	for i, at := range s.at {
		r := table.Row(i)
		if s.groupOf(r) != g {
			continue
		}
		score := s.below(at)
		for k := range s.parts {
			if p := &s.parts[k]; s.number(g, p) != p.column()[r] {
				return fmt.Errorf("row %d belongs to another", r)
			}
		}
		if int(score) >= len(having) || score > g.top {
			return fmt.Errorf("row %d has score %d, the highest is %d", r, score, g.top)
		}
		if score >= g.from && !slices.Contains(g.lists[score-g.from], r) {
			return fmt.Errorf("row %d is not in the list for %d", r, score)
		}
		having[score]++
		rows++
	}
	if !slices.Equal(having, g.having) || rows != g.rows || (rows > 0 && having[g.top] == 0) {
		return fmt.Errorf("counts %d rows, the highest %d, by score %v; has %d, %v", g.rows, g.top, g.having, rows, having)
	}
	return nil
}
