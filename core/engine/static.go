package engine

import (
	"math"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/par"
	"github.com/berth-scheduler/berth/core/table"
)

// static is what node objects alone decide: the answers of the NodeOnly
// plugins, shared by all classes that these plugins cannot tell apart. Only a
// change of a node object dirties a row of it; placements do not.
type static struct {
	key     string
	filters []filter
	scorers []scorer

	first   []int16 // the first of the filters that rejects, by its place in the profile
	verdict []framework.Verdict
	final   []int64   // weighted sum of the scores that need no normalising
	raw     [][]int64 // by scorer; nil where it needs no normalising

	revision uint64
	// generation counts the times when every row was made anew.
	generation uint64
}

// take takes over the view's plugins that read node objects alone.
func (s *static) take(v *view) {
	for _, f := range v.filters {
		if f.Locality == framework.NodeOnly {
			s.filters = append(s.filters, f)
		}
	}
	for _, c := range v.scorers {
		if c.Locality == framework.NodeOnly {
			s.scorers = append(s.scorers, c)
		}
	}
}

// refresh evaluates the rows whose node changed since.
func (s *static) refresh(t *table.Table, workers int) {
	n := t.Rows()
	if s.revision == t.Revision() && len(s.first) == n {
		return
	}
	if s.revision == 0 || len(s.first) != n {
		s.rebuild(t, workers)
	} else {
		var buf scratch
		t.NodesChanged(s.revision, func(r table.Row) bool {
			s.evaluate(t, one(t, r), &buf)
			return true
		})
	}
	s.revision = t.Revision()
}

func (s *static) rebuild(t *table.Table, workers int) {
	n := t.Rows()
	s.generation++
	s.size(n)
	inChunks(t, workers, func(rows []table.Row, buf *scratch) { s.evaluate(t, rows, buf) })
}

// size gives the part columns of n rows.
func (s *static) size(n int) {
	s.first, s.verdict, s.final = resize(s.first, n), resize(s.verdict, n), resize(s.final, n)
	if s.raw == nil {
		s.raw = make([][]int64, len(s.scorers))
	}
	for k := range s.scorers {
		if s.scorers[k].Normalize != nil {
			s.raw[k] = resize(s.raw[k], n)
		}
	}
}

func (s *static) evaluate(t *table.Table, rows []table.Row, buf *scratch) {
	for _, r := range rows {
		s.first[r], s.verdict[r], s.final[r] = feasible, framework.Fits, 0
		if t.Node(r) == nil {
			s.first[r] = noNode
		}
	}
	for k := range s.filters {
		s.filters[k].run(rows, buf, s.first, s.verdict)
	}
	for k := range s.scorers {
		c := &s.scorers[k]
		if s.raw[k] != nil {
			c.write(s.raw[k], rows, buf)
		} else {
			c.addTo(s.final, rows, buf)
		}
	}
}

// scratch is room for one plugin's answers on a range of rows.
type scratch struct {
	verdicts []framework.Verdict
	scores   []int64
}

// chunk is the number of rows that all plugins see to before they go on, so
// that what they write stays near.
const chunk = 512

// inChunks calls f on all rows, over the cores.
func inChunks(t *table.Table, workers int, f func([]table.Row, *scratch)) {
	all := t.All()
	par.Rows(len(all), workers, grain, func(rows par.Range) {
		var buf scratch
		for from := rows.From; from < rows.To; from += chunk {
			f(all[from:min(from+chunk, rows.To)], &buf)
		}
	})
}

// run asks the filter about the rows and notes its rejections on those that
// no earlier filter rejects.
func (f *filter) run(rows []table.Row, buf *scratch, first []int16, verdict []framework.Verdict) {
	buf.verdicts = resize(buf.verdicts, len(rows))
	f.Filter(&f.in, rows, buf.verdicts)
	for i, v := range buf.verdicts {
		if r := rows[i]; v != framework.Fits && (first[r] == feasible || first[r] > f.place) {
			first[r], verdict[r] = f.place, v
		}
	}
}

// addTo adds the scorer's weighted scores to the sums.
func (s *scorer) addTo(final []int64, rows []table.Row, buf *scratch) {
	buf.scores = resize(buf.scores, len(rows))
	s.Score(&s.in, rows, buf.scores)
	for i, score := range buf.scores {
		if score < 0 || score > maxScore {
			final[rows[i]] += poison
			continue
		}
		final[rows[i]] += s.weight * score
	}
}

// poison makes a sum negative, for good: one of its scores was out of range.
const poison = math.MinInt64 / 1024

// write puts the scorer's raw scores into the column.
func (s *scorer) write(column []int64, rows []table.Row, buf *scratch) {
	buf.scores = resize(buf.scores, len(rows))
	s.Score(&s.in, rows, buf.scores)
	for i, score := range buf.scores {
		column[rows[i]] = score
	}
}

// one lists a single row.
func one(t *table.Table, r table.Row) []table.Row { return t.All()[r : r+1] }

func resize[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	return slices.Grow(s[:0], n+n/8)[:n]
}
