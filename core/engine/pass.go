package engine

import (
	"github.com/berth-scheduler/berth/core/headroom"
	"github.com/berth-scheduler/berth/core/ranking"
	"github.com/berth-scheduler/berth/core/table"
)

// pass is the work of a filter and two scorers in one loop over the rows, where the
// class asks of them no more than that.
type pass struct {
	headroom.Pass
	table   *table.Table
	filters []filter
	scorers []scorer
}

// joinPass moves the plugins that a pass can evaluate from the view's own plugins to the
// pass.
func (v *view) joinPass(t *table.Table) {
	p := &pass{table: t}
	filters := toFront(v.rowFilters, func(f *filter) bool {
		return f.FilterInPass != nil && f.FilterInPass(&f.in, &p.Pass)
	})
	scorers := toFront(v.rowScorers, func(s *scorer) bool {
		return s.ScoreInPass != nil && s.ScoreInPass(&s.in, s.weight, &p.Pass)
	})
	if p.Complete() {
		p.filters, v.rowFilters = v.rowFilters[:filters], v.rowFilters[filters:]
		p.scorers, v.rowScorers = v.rowScorers[:scorers], v.rowScorers[scorers:]
		v.pass = p
	}
}

// toFront moves the plugins that join to the head of the list, and returns how many they
// are. The order of plugins is for speed alone.
func toFront[T any](list []T, joins func(*T) bool) (n int) {
	for i := range list {
		if joins(&list[i]) {
			list[n], list[i] = list[i], list[n]
			n++
		}
	}
	return n
}

// run evaluates the rows by the pass. Rows that its loop leaves out are evaluated by the
// plugins one by one.
func (p *pass) run(rows []table.Row, found *scratch) {
	at := found.at[:len(rows)]
	if at = at[:p.Add(p.table, rows, found.Answers.Score, at)]; len(at) == 0 {
		return
	}
	for k := range p.filters {
		p.filters[k].runSubset(found.pick(rows, at), at, found)
	}
	n := 0
	for _, i := range at {
		if found.Filter[i] == ranking.Feasible {
			at[n] = i
			n++
		}
	}
	at = at[:n]
	for k := range p.scorers {
		p.scorers[k].addSubset(found.pick(rows, at), at, found)
	}
}

// pick lists the rows that stand at these places. The list is good until the next one.
func (s *scratch) pick(rows []table.Row, at []int32) []table.Row {
	some := s.unrejected[:0]
	for _, i := range at {
		some = append(some, rows[i])
	}
	return some
}
