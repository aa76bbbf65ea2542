package engine

import (
	"math"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// static is what node objects alone decide: the answers of the NodeOnly
// plugins, shared by all classes that these plugins cannot tell apart. Only a
// change of a node object dirties a row of it; placements do not.
type static struct {
	table   *table.Table
	key     string
	filters []filter
	scorers []scorer

	first   []int16 // the first of the filters that rejects, by its place in the profile
	verdict []framework.Verdict
	final   []int64   // weighted sum of the scores that need no normalising
	raw     [][]int64 // by scorer; nil where it needs no normalising

	// tuples are the different combinations of raw scores on rows that pass
	// the filters, tupleOf which of them each row has.
	tuples  []tuple
	ids     map[tuple]int32
	tupleOf []int32
	// scattered: there are too many tuples, and they are not kept.
	scattered bool

	revision uint64
	// generation counts the times when every row was made anew.
	generation uint64
}

// newStatic takes over the view's plugins that read node objects alone.
func newStatic(t *table.Table, v *view) *static {
	s := &static{table: t}
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
	return s
}

// refresh evaluates the rows whose node changed since.
func (s *static) refresh(t *table.Table, workers int, found *scratch) {
	if s.revision == t.Revision() && len(s.first) == t.Rows() {
		return
	}
	if s.revision == 0 || !s.replay(t, found) {
		s.rebuild(t, workers, found)
	}
	s.revision = t.Revision()
}

func (s *static) replay(t *table.Table, found *scratch) bool {
	found.rows = append(found.rows[:0], t.All()[len(s.first):]...) // those of unknown nodes, too
	t.NodesChanged(s.revision, func(r table.Row) bool {
		found.rows = append(found.rows, r)
		return true
	})
	s.size(t.Rows())
	return again(found, s.evaluate, s.keep)
}

func (s *static) rebuild(t *table.Table, workers int, found *scratch) {
	s.generation++
	s.size(t.Rows())
	s.tuples, s.scattered = s.tuples[:0], len(s.raw) > maxParts
	clear(s.ids)
	if !pass(t, workers, found, s.evaluate, s.keep) {
		s.scattered = true
		pass(t, workers, found, s.evaluate, s.keep)
	}
}

// size gives the part columns of n rows; what was in them stays.
func (s *static) size(n int) {
	s.first, s.verdict, s.final = extend(s.first, n), extend(s.verdict, n), extend(s.final, n)
	s.tupleOf = extend(s.tupleOf, n)
	if s.raw == nil {
		s.raw = make([][]int64, len(s.scorers))
	}
	for k := range s.scorers {
		if s.scorers[k].NormalizeScore != nil {
			s.raw[k] = extend(s.raw[k], n)
		}
	}
}

// evaluate asks the plugins about the rows.
func (s *static) evaluate(rows []table.Row, found *scratch) {
	t := s.table
	for i, r := range rows {
		found.first[i], found.verdict[i], found.final[i] = feasible, framework.Fits, 0
		if t.Node(r) == nil {
			found.first[i] = noNode
		}
	}
	for k := range s.filters {
		s.filters[k].run(rows, found)
	}
	for k := range s.scorers {
		if c := &s.scorers[k]; s.raw[k] != nil {
			c.write(s.raw[k], rows, found)
		} else {
			c.add(rows, found)
		}
	}
}

// keep notes what was found out about the rows; false when there are too many
// tuples.
func (s *static) keep(rows []table.Row, found *scratch) bool {
	for i, r := range rows {
		s.first[r], s.verdict[r], s.final[r] = found.first[i], found.verdict[i], found.final[i]
		if found.first[i] != feasible || s.scattered {
			continue
		}
		var key tuple
		n := 0
		for k := range s.raw {
			if s.raw[k] != nil {
				key[n] = s.raw[k][r]
				n++
			}
		}
		if last := s.tupleOf[r]; int(last) < len(s.tuples) && s.tuples[last] == key {
			continue
		}
		id, known := s.ids[key]
		if !known {
			if len(s.tuples) >= manyGroups(len(s.first)) {
				return false
			}
			if s.ids == nil {
				s.ids = map[tuple]int32{}
			}
			id = int32(len(s.tuples))
			s.ids[key], s.tuples = id, append(s.tuples, key)
		}
		s.tupleOf[r] = id
	}
	return true
}

// run asks the filter about the rows and notes its rejections on those that
// no earlier filter rejects.
func (f *filter) run(rows []table.Row, found *scratch) {
	verdicts := found.verdicts[:len(rows)]
	f.Filter(&f.in, rows, verdicts)
	for i, v := range verdicts {
		if v != framework.Fits && (found.first[i] == feasible || found.first[i] > f.place) {
			found.first[i], found.verdict[i] = f.place, v
		}
	}
}

// add adds the scorer's weighted scores to the sums.
func (s *scorer) add(rows []table.Row, found *scratch) {
	scores := found.scores[:len(rows)]
	s.Score(&s.in, rows, scores)
	final, weight := found.final[:len(scores)], s.weight
	for i, score := range scores {
		if uint64(score) > maxScore { // or below 0
			final[i] += poison
			continue
		}
		final[i] += weight * score
	}
}

// write puts the scorer's raw scores into the column.
func (s *scorer) write(column []int64, rows []table.Row, found *scratch) {
	scores := found.scores[:len(rows)]
	s.Score(&s.in, rows, scores)
	for i, score := range scores {
		column[rows[i]] = score
	}
}

// poison makes a sum negative, for good: one of its scores was out of range.
const poison = math.MinInt64 / 1024

// one lists a single row.
func one(t *table.Table, r table.Row) []table.Row { return t.All()[r : r+1] }
