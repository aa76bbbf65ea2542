package engine

import (
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// sharedAnswers is what node objects alone decide: the answers of the NodeOnly plugins,
// shared by all classes that these plugins cannot tell apart. Only a change of a
// node object makes the answers for its row stale; placements do not.
type sharedAnswers struct {
	table     *table.Table
	signature string // "": of one view alone
	used      uint64 // when, in decisions
	filters   []filter
	scorers   []scorer

	answers ranking.Answers // by row; the score is the weighted sum of final ones
	raw     [][]int64       // the columns of raw scores that are normalised
	spare   [][]int64       // columns that nobody uses
	// combinations are those of the raw scores, on rows that pass the filters.
	combinations ranking.Combinations

	revision uint64
	// generation counts the times when every row was evaluated anew.
	generation uint64
}

// newSharedAnswers takes over the view's plugins that read node objects alone.
func newSharedAnswers(t *table.Table, v *view) *sharedAnswers {
	s := &sharedAnswers{table: t}
	s.filters = selected(v.filters, nodeOnlyFilter)
	s.scorers = selected(v.scorers, nodeOnlyScorer)
	for i := range s.scorers {
		if s.scorers[i].column.kept {
			s.raw = append(s.raw, nil)
		}
	}
	return s
}

func nodeOnlyFilter(f *filter) bool { return f.Locality == framework.NodeOnly }
func nodeOnlyScorer(s *scorer) bool { return s.Locality == framework.NodeOnly }

// selected lists what is wanted of the list, with room for no more.
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

// agrees tells whether the view has the same plugins that read node objects alone,
// and its filters the same places in the order: a plugin that looks at pods and is
// skipped moves them, one whose PreScore fails leaves out those after it.
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

// reuse takes the room of one that nobody uses any more.
func (s *sharedAnswers) reuse(old *sharedAnswers) {
	s.answers = old.answers
	s.combinations.Reuse(&old.combinations)
	spare := append(old.raw, old.spare...)
	n := copy(s.raw, spare)
	s.spare = spare[n:]
}

// refresh evaluates the rows whose node changed since.
func (s *sharedAnswers) refresh(workers int, found *scratch) {
	t := s.table
	if s.revision != 0 && t.NodeRevision() <= s.revision && len(s.answers.Filter) == t.Rows() {
		return
	}
	if s.revision == 0 || !s.replay(found) {
		s.rebuild(workers, found)
	}
	s.revision = t.Revision()
}

func (s *sharedAnswers) replay(found *scratch) bool {
	t := s.table
	found.rows = append(found.rows[:0], t.All()[len(s.answers.Filter):]...) // those of unknown nodes, too
	t.NodesChanged(s.revision, func(r table.Row) bool {
		found.rows = append(found.rows, r)
		return true
	})
	s.size(t.Rows())
	return evaluateRows(found.rows, found, s.evaluate, s.keep)
}

func (s *sharedAnswers) rebuild(workers int, found *scratch) {
	s.generation++
	s.size(s.table.Rows())
	s.combinations.Reset(len(s.raw))
	if !evaluateAll(s.table, workers, found, s.evaluate, s.keep) {
		evaluateAll(s.table, workers, found, s.evaluate, s.keep) // without combinations
	}
}

// size makes room for n rows; what was there stays.
func (s *sharedAnswers) size(n int) {
	a := &s.answers
	a.Filter, a.Verdict, a.Score = extend(a.Filter, n), extend(a.Verdict, n), extend(a.Score, n)
	s.combinations.Resize(n)
	for k := range s.raw {
		s.raw[k] = extend(s.raw[k], n)
	}
}

// extend returns the slice with n elements: those that it has, then zeros.
func extend[T any](s []T, n int) []T {
	if n <= len(s) {
		return s[:n]
	}
	return append(s, make([]T, n-len(s))...)
}

// evaluate asks the plugins about the rows.
func (s *sharedAnswers) evaluate(rows []table.Row, found *scratch) {
	for i, r := range rows {
		found.Filter[i], found.Verdict[i], found.Score[i] = ranking.Feasible, 0, 0
		if s.table.Node(r) == nil {
			found.Filter[i] = ranking.NoNode
		}
	}
	for k := range s.filters {
		s.filters[k].run(rows, found)
	}
	for k := range s.scorers {
		if c := &s.scorers[k]; c.column.kept {
			c.write(s.raw[c.column.at], rows, found)
		} else {
			c.add(rows, found)
		}
	}
}

// keep notes what was found out about the rows; false when there are too many
// combinations.
func (s *sharedAnswers) keep(rows []table.Row, found *scratch) bool {
	for i, r := range rows {
		s.answers.Filter[r], s.answers.Verdict[r], s.answers.Score[r] = found.Filter[i], found.Verdict[i], found.Score[i]
		if found.Filter[i] == ranking.Feasible && !s.combinations.Set(r, s.raw) {
			return false
		}
	}
	return true
}

// copyTo copies what is known of the rows.
func (s *sharedAnswers) copyTo(rows []table.Row, found *scratch) {
	known := &s.answers
	if len(rows) > 0 && &rows[0] == &s.table.All()[rows[0]] { // rows that follow each other
		from, to := rows[0], int(rows[0])+len(rows)
		copy(found.Filter, known.Filter[from:to])
		copy(found.Verdict, known.Verdict[from:to])
		copy(found.Score, known.Score[from:to])
		return
	}
	for i, r := range rows {
		found.Filter[i], found.Verdict[i], found.Score[i] = known.Filter[r], known.Verdict[r], known.Score[r]
	}
}
