package engine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// sharedAnswers holds the answers of the NodeOnly plugins. All classes that these plugins
// cannot tell apart share them. Only a change of a node object makes the answers for its
// row stale; placements do not.
type sharedAnswers struct {
	table     *table.Table
	signature string // "": of one view alone
	madeFor   uint64 // the class, by hash
	used      uint64 // when, in decisions
	filters   []filter
	scorers   []scorer

	parts  *parts
	scored bool // else there are neither scores nor combinations
	// scores holds, by row, the weighted sum of the scores that are not normalised, for
	// rows that pass the filters.
	scores []int64
	raw    [][]int64 // the columns of raw scores that are normalised
	spare  [][]int64 // columns that nobody uses
	// combinations holds, by row, the combination of raw scores, for rows that pass the
	// filters.
	combinations ranking.Combinations
	start        ranking.Start
	// leading is how many of the filters come before all others of a class. Rows that one
	// of them rejects need no other filter; open holds the other rows.
	leading int16
	isOpen  table.RowSet
	open    []table.Row // the rows of isOpen
	late    bool        // a filter that is not leading rejects some of the open rows
	buffer  table.RowSet

	rows     int    // so far
	validity uint64 // of the filters' parts
	revision uint64
	// generation counts the times when every row was evaluated anew.
	generation uint64
}

// newSharedAnswers returns empty shared answers for the view's NodeOnly plugins.
func newSharedAnswers(t *table.Table, v *view, p *parts) *sharedAnswers {
	s := &sharedAnswers{table: t, parts: p, scored: true}
	s.filters = selected(v.filters, nodeOnlyFilter)
	s.scorers = selected(v.scorers, nodeOnlyScorer)
	for i := range s.scorers {
		if s.scorers[i].column.kept {
			s.raw = append(s.raw, nil)
		}
	}
	for int(s.leading) < len(s.filters) && s.filters[s.leading].position == s.leading+1 {
		s.leading++
	}
	s.validity = v.epochs + v.columns // each only grows
	return s
}

func nodeOnlyFilter(f *filter) bool { return f.Locality == framework.NodeOnly }
func nodeOnlyScorer(s *scorer) bool { return s.Locality == framework.NodeOnly }

// selected returns the elements that are wanted, in a slice of exactly their number.
func selected[T any](list []T, wanted func(*T) bool) []T {
	n := 0
	for i := range list {
		if wanted(&list[i]) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	some := make([]T, 0, n)
	for i := range list {
		if wanted(&list[i]) {
			some = append(some, list[i])
		}
	}
	return some
}

// agrees reports whether the view has the same NodeOnly plugins, and its filters the same
// positions. Positions may differ: a pod filter that is skipped moves the ones after it,
// and a PreScore that fails removes the scorers after it.
func (s *sharedAnswers) agrees(v *view) bool {
	filters, scorers := s.filters, s.scorers
	for i := range v.filters {
		if f := &v.filters[i]; nodeOnlyFilter(f) {
			if len(filters) == 0 || filters[0].position != f.position || filters[0].Plugin != f.Plugin {
				return false
			}
			filters = filters[1:]
		}
	}
	for i := range v.scorers {
		if c := &v.scorers[i]; nodeOnlyScorer(c) {
			if len(scorers) == 0 || scorers[0].Plugin != c.Plugin {
				return false
			}
			scorers = scorers[1:]
		}
	}
	return len(filters)+len(scorers) == 0
}

// reuse takes over the buffers of old, which no view uses any more.
func (s *sharedAnswers) reuse(old *sharedAnswers) {
	s.scores = old.scores
	s.combinations.Reuse(&old.combinations)
	s.start = old.start
	s.start.Reset()
	s.isOpen, s.open, s.buffer = old.isOpen, old.open, old.buffer
	spare := append(old.raw, old.spare...)
	n := copy(s.raw, spare)
	s.spare = spare[n:]
}

// refresh evaluates the rows whose node changed since the last refresh, or all at first.
func (s *sharedAnswers) refresh(workers int, found *scratch) {
	t := s.table
	if s.revision != 0 && t.NodeRevision() <= s.revision && s.rows == t.Rows() {
		return
	}
	if s.revision == 0 || !s.replay(found) {
		s.rebuild(workers, found)
	}
	s.open = s.isOpen.Append(s.open[:0])
	s.revision = t.Revision()
}

func (s *sharedAnswers) replay(found *scratch) bool {
	t := s.table
	found.rows = append(found.rows[:0], t.All()[s.rows:]...) // those of unknown nodes, too
	t.NodesChanged(s.revision, func(r table.Row) bool {
		found.rows = append(found.rows, r)
		return true
	})
	s.size(t.Rows())
	return evaluateRows(found.rows, found, s.evaluate, s.keep) && !s.start.Full()
}

func (s *sharedAnswers) rebuild(workers int, found *scratch) {
	s.generation++
	s.size(s.table.Rows())
	s.combinations.Reset(len(s.raw))
	s.start.Reset()
	s.open = s.askParts().Append(s.open[:0])
	if !s.scored {
		s.start.AdmitAll(s.open)
		return
	}
	if !evaluateAll(s.open, workers, grain, found, s.scoreFitting, s.keep) {
		evaluateAll(s.open, workers, grain, found, s.scoreFitting, s.keep) // without combinations
	}
}

// askParts asks the filters about all rows, and returns those that pass all.
func (s *sharedAnswers) askParts() (left table.RowSet) {
	left = resize(s.buffer, len(s.isOpen))
	s.buffer = left
	s.parts.liveRows(s.table, left)
	copy(s.isOpen, left)
	for k := range s.filters {
		if f := &s.filters[k]; !s.askPart(f, left) {
			s.askFilter(f, left)
		}
		if k < int(s.leading) {
			copy(s.isOpen, left)
		}
	}
	s.late = !slices.Equal(s.isOpen, left)
	return left
}

// askPart records the rows that the filter rejects, by its kept part, and removes them
// from left. It returns false if the filter's part is not kept.
func (s *sharedAnswers) askPart(f *filter, left table.RowSet) bool {
	p := s.parts.of(f, s.validity)
	if p == nil {
		return false
	}
	for _, set := range p.rejected {
		s.parts.hit = s.parts.hit[:0]
		for i, word := range set.rows {
			s.parts.hit = append(s.parts.hit, word&left[i])
			left[i] &^= word
		}
		s.start.RejectAll(s.parts.hit, ranking.Cause{Filter: f.position, Verdict: uint64(set.verdict)})
	}
	return true
}

// askFilter asks the filter itself about the rows of left. It records the rows that the
// filter rejects and removes them from left.
func (s *sharedAnswers) askFilter(f *filter, left table.RowSet) {
	rows := left.Append(nil)
	verdicts := make([]framework.Verdict, len(rows))
	f.Filter(&f.in, rows, verdicts)
	for i, r := range rows {
		if verdicts[i] != framework.Fits {
			left.Set(r, false)
			s.start.Reject(r, ranking.Cause{Filter: f.position, Verdict: uint64(verdicts[i])})
		}
	}
}

// size extends the columns to n rows. Entries of known rows stay.
func (s *sharedAnswers) size(n int) {
	s.rows = n
	s.isOpen = extend(s.isOpen, (n+63)/64)
	s.start.Resize(n)
	if !s.scored {
		return
	}
	s.scores = extend(s.scores, n)
	s.combinations.Resize(n)
	for k := range s.raw {
		s.raw[k] = extend(s.raw[k], n)
	}
}

// extend returns the slice with n elements: those that it has, then zeros.
func extend[S ~[]T, T any](s S, n int) S {
	if n <= len(s) {
		return s[:n]
	}
	return append(s, make([]T, n-len(s))...)
}

// evaluate asks the plugins about the rows: each filter about those that none before it
// rejects, and the scorers about those that are left.
func (s *sharedAnswers) evaluate(rows []table.Row, found *scratch) {
	left, at := found.unrejected[:0], found.at[:0]
	for i, r := range rows {
		found.Filter[i], found.Verdict[i], found.Score[i] = ranking.NoNode, 0, 0
		if s.table.Node(r) != nil {
			found.Filter[i] = ranking.Feasible
			left, at = append(left, r), append(at, int32(i))
		}
	}
	for k := range s.filters {
		left, at = s.filters[k].narrow(left, at, found)
	}
	if s.scored {
		s.scoreOn(left, at, found)
	}
}

// scoreFitting marks the rows, which passed all filters, as feasible, and asks the
// scorers about them.
func (s *sharedAnswers) scoreFitting(rows []table.Row, found *scratch) {
	at := found.at[:0]
	for i := range rows {
		found.Filter[i], found.Verdict[i], found.Score[i] = ranking.Feasible, 0, 0
		at = append(at, int32(i))
	}
	s.scoreOn(rows, at, found)
}

func (s *sharedAnswers) scoreOn(rows []table.Row, at []int32, found *scratch) {
	for k := range s.scorers {
		if c := &s.scorers[k]; c.column.kept {
			c.writeRows(s.raw[c.column.at], rows, found)
		} else {
			c.addSubset(rows, at, found)
		}
	}
}

// keep stores the answers about the rows. It returns false if there are too many
// combinations of raw scores.
func (s *sharedAnswers) keep(rows []table.Row, found *scratch) bool {
	for i, r := range rows {
		c := ranking.Cause{Filter: found.Filter[i], Verdict: found.Verdict[i]}
		s.isOpen.Set(r, s.leavesOpen(c.Filter))
		if c.Rejects() {
			s.start.Reject(r, c)
			s.late = s.late || s.leavesOpen(c.Filter)
			continue
		}
		if c.Filter == ranking.NoNode {
			s.start.Vacate(r)
			continue
		}
		if !s.scored {
			s.start.Admit(r)
			continue
		}
		if s.scores[r] = found.Score[i]; !s.combinations.Set(r, s.raw) {
			return false
		}
		s.start.AdmitScored(r, &s.combinations, s.scores[r])
	}
	return true
}

// leavesOpen reports whether a class still asks its own filters about a row that the
// given shared filter rejects first. Feasible stands for no filter.
func (s *sharedAnswers) leavesOpen(filter int16) bool {
	return filter == ranking.Feasible || filter > s.leading
}

// copyOpen copies the shared answers about open rows, which are in order. It is faster
// than a copy for any rows: unless a late filter rejects some, all are feasible, and rows
// without gaps need one copy of memory.
func (s *sharedAnswers) copyOpen(rows []table.Row, found *scratch) {
	if s.late {
		s.copyTo(rows, found)
		return
	}
	clear(found.Filter[:len(rows)])
	if first, last := rows[0], rows[len(rows)-1]; s.scored && int(last-first) == len(rows)-1 { // none is left out
		copy(found.Score, s.scores[first:last+1])
		return
	}
	s.copyScores(rows, found)
}

// copyTo copies the shared answers about the rows, whatever they are.
func (s *sharedAnswers) copyTo(rows []table.Row, found *scratch) {
	for i, r := range rows {
		c := s.start.Cause(r)
		found.Filter[i], found.Verdict[i] = c.Filter, c.Verdict
	}
	s.copyScores(rows, found)
}

// copyScores copies the scores of the rows.
func (s *sharedAnswers) copyScores(rows []table.Row, found *scratch) {
	if !s.scored {
		clear(found.Score[:len(rows)])
		return
	}
	for i, r := range rows {
		found.Score[i] = s.scores[r]
	}
}
