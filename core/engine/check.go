package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-scheduler/berth/core/answers"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// Check brings every view up to date and compares it with a fresh evaluation of all rows.
// It returns an error that names the first difference; nil if there is none. It is for
// tests and audits: it takes long.
func (e *Engine) Check() error {
	for _, signature := range slices.Sorted(maps.Keys(e.cache.views)) {
		if err := e.checkView(e.cache.views[signature]); err != nil {
			return fmt.Errorf("engine: class %q: %w", signature, err)
		}
	}
	return nil
}

// checkView refreshes the view and returns an error if it then differs from a new one. It skips a
// view that would not be used again as it is: it is to be made anew, or its pod is of another class
// now.
func (e *Engine) checkView(v *view) error {
	if !v.current() || string(v.keys.AppendSignature(nil, e.table, v.pod)) != v.class.Signature {
		return nil // it will be made anew before it is used, or its pod is of another class now
	}
	v.refresh(&e.cache.store, 1, &e.scratch)
	(&feasibility{engine: e, view: v, pod: v.pod}).setNominated(nil) // those that count are of the last decision
	return v.compareFresh(e.table)
}

// compareFresh returns the first difference between the view and a new view of the class
// over the whole table: causes, scores, kept values, counts, cells, then the index's own
// invariants. nil means none.
func (v *view) compareFresh(t *table.Table) error {
	if err := v.comparePartitions(t); err != nil {
		return err
	}
	fresh := v.fresh(t)
	for _, r := range t.All() {
		if kept, now := v.cause(r), fresh.cause(r); kept != now {
			return fmt.Errorf("node %q: kept filter %d verdict %d, fresh %d and %d", t.Name(r), kept.Filter, kept.Verdict, now.Filter, now.Verdict)
		}
		if !v.index.IsFeasible(r) {
			continue
		}
		if kept, now := v.index.Score(r), fresh.index.Score(r); kept != now {
			return fmt.Errorf("node %q: kept score %d, fresh %d", t.Name(r), kept, now)
		}
		for k := range v.scorers {
			if s := &v.scorers[k]; s.column.kept && s.cells == nil && (s.partition == nil || v.index.Bucketed) && v.index.Value(r, s.column.at) != s.scoreAt(r) {
				return fmt.Errorf("node %q: %s kept %d, fresh %d", t.Name(r), s.Name, v.index.Value(r, s.column.at), s.scoreAt(r))
			}
		}
	}
	kept, now := v.index, fresh.index
	causes, causesNow := maps.Collect(kept.Causes()), maps.Collect(now.Causes())
	if kept.Feasible != now.Feasible || kept.OutOfRange != now.OutOfRange || !maps.Equal(causes, causesNow) {
		return fmt.Errorf("kept %d feasible (%d out of range) and causes %v; fresh %d (%d) and %v",
			kept.Feasible, kept.OutOfRange, causes, now.Feasible, now.OutOfRange, causesNow)
	}
	if err := v.compareCells(fresh, t); err != nil || !v.index.Bucketed {
		return err
	}
	return v.index.Check()
}

// comparePartitions returns an error for the first node for which a kept verdict or score
// in a partition differs from the plugin's answer now.
func (v *view) comparePartitions(t *table.Table) error {
	for _, r := range t.All() {
		if t.Node(r) == nil {
			continue
		}
		for k := range v.filters[:v.closing] {
			if f := &v.filters[k]; f.partition.At(r) != uint64(f.verdictAt(r)) {
				return fmt.Errorf("node %q: %s kept verdict %d, fresh %d", t.Name(r), f.Name, f.partition.At(r), f.verdictAt(r))
			}
		}
		for k := range v.scorers {
			if s := &v.scorers[k]; s.partition != nil && int64(s.partition.At(r)) != s.scoreAt(r) {
				return fmt.Errorf("node %q: %s kept score %d, fresh %d", t.Name(r), s.Name, int64(s.partition.At(r)), s.scoreAt(r))
			}
		}
	}
	return nil
}

// fresh returns a new, evaluated view of the same class that shares nothing with v, for
// compareFresh. It keeps cells, and each plugin is asked itself, without a pass.
func (v *view) fresh(t *table.Table) *view {
	f, store := prepare(t, v.keys, v.pod), answers.Store{}
	var found scratch
	f.keepCells()
	f.build(&store, &ranking.Index{})
	f.leavePass()
	f.refresh(&store, 1, &found)
	return f
}

// askAt asks the plugin for the cell of one row; the kept cell is not used.
func (c *cells) askAt(t *table.Table, r table.Row) int64 {
	var cell [1]int64
	c.of(c.in, one(t, r), cell[:])
	return cell[0]
}

// compareCells compares, by row and by kept cell, the verdicts of cell filters and the
// scores of cell scorers with those of fresh. It compares answers, not cells, since a cell
// may have another number in fresh. It returns an error for the first difference.
func (v *view) compareCells(fresh *view, t *table.Table) error {
	for k, f := range v.cellFilters {
		o := fresh.cellFilters[k]
		f.cells.sync(&f.in)
		byRow := make([]framework.Verdict, t.Rows())
		f.ask(t.All(), byRow)
		for _, r := range t.All() {
			if c := v.cause(r); t.Node(r) == nil || c.Rejects() && c.Filter < f.position {
				continue // nobody asks about its cell
			}
			now := o.CellFilter.Filter(&o.in, o.cells.askAt(t, r))
			if byRow[r] != now {
				return fmt.Errorf("node %q: %s by row verdict %d, fresh %d", t.Name(r), f.Name, byRow[r], now)
			}
			if !v.cellsKept || !v.index.IsFeasible(r) {
				continue
			}
			if kept := f.CellFilter.Filter(&f.in, v.index.Value(r, f.column.at)); kept != now {
				return fmt.Errorf("node %q: %s kept verdict %d, fresh %d", t.Name(r), f.Name, kept, now)
			}
		}
	}
	for k := range v.scorers {
		if s := &v.scorers[k]; s.cells != nil {
			if err := v.compareCellScores(s, fresh, &fresh.scorers[k], t); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareCellScores compares the scores that s, a scorer by cells, gives by row and by kept
// cell with those of o, the same scorer in the view fresh. All rows that pass the other
// filters count as feasible; cell filters are ignored.
func (v *view) compareCellScores(s *scorer, fresh *view, o *scorer, t *table.Table) error {
	var feasible []table.Row
	for r := range v.index.FeasibleRows() {
		feasible = append(feasible, r)
	}
	s.cells.sync(&s.in)
	if s.CellScore.FeasibleNodes != nil {
		counts := map[int64]int{}
		for _, r := range feasible {
			counts[o.cells.askAt(t, r)]++
		}
		o.CellScore.FeasibleNodes(&o.in, sortedCells(counts))
		s.CellScore.TellFeasible(&s.in, feasible)
	}
	byRow := make([]int64, len(feasible))
	s.CellScore.AskRows(&s.in, feasible, byRow)
	for i, r := range feasible {
		now := o.CellScore.Score(&o.in, o.cells.askAt(t, r))
		if byRow[i] != now {
			return fmt.Errorf("node %q: %s by row score %d, fresh %d", t.Name(r), s.Name, byRow[i], now)
		}
		if !v.cellsKept {
			continue
		}
		if kept := s.CellScore.Score(&s.in, v.index.Value(r, s.column.at)); kept != now {
			return fmt.Errorf("node %q: %s kept score %d, fresh %d", t.Name(r), s.Name, kept, now)
		}
	}
	return nil
}
