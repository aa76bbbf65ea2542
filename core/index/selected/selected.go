// Package selected keeps which nodes of a table meet the requirements of selectors, by sets of
// rows.
package selected

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/index/nodelabels"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/table"
)

// Index follows the table by its revisions, when somebody asks.
type Index struct {
	table        *table.Table
	requirements requirements
	columns      valueColumns
}

var index = table.Follow(func(t *table.Table) table.Follower[*Index] {
	x := &Index{table: t}
	x.requirements.byKey, x.columns.byKey = map[string]*metRequirement{}, map[string]*valueColumn{}
	return table.Follower[*Index]{Index: x, Check: x.check}
})

// Of returns the table's index.
func Of(t *table.Table) *Index { return index.Of(t) }

// Selection is the rows whose nodes a selector admits, at one revision of the table. It
// does not change. Of a node that changed since, it says nothing.
//
// A selector is a combination of requirements, such as "zone In [a b]", and the index
// keeps which rows meet a requirement. Pods whose selectors differ share most of
// these. So a selector that comes by for the first time costs a few operations on sets,
// and no look at labels.
type Selection struct {
	rows     table.RowSet
	revision uint64
}

// Admits reports whether the selector admits the row's node. known is false if the node
// came or changed since the selection was made.
func (s *Selection) Admits(t *table.Table, r table.Row) (admits, known bool) {
	return s.rows.Has(r), t.NodeChangedAt(r) <= s.revision
}

// Select finds the rows whose nodes the selector admits. The owner calls it.
func (x *Index) Select(s *match.NodeSelector) Selection {
	all, others, demands := s.Clauses()
	rows := x.rowsMeetingAll(all)
	if demands {
		some := make(table.RowSet, len(rows))
		for _, list := range others {
			some.Add(x.rowsMeetingAll(list))
		}
		rows.Keep(some)
	}
	return Selection{rows, x.table.Revision()}
}

// WeightedSelection is the rows whose nodes a term of preferred node affinity counts for.
type WeightedSelection struct {
	Selection
	Weight int64
}

// SelectPreferred finds the rows whose nodes the terms count for. The owner calls it.
func (x *Index) SelectPreferred(p *match.PreferredNodes) (terms []WeightedSelection) {
	weights, lists := p.Clauses()
	for i, list := range lists {
		terms = append(terms, WeightedSelection{Selection{x.rowsMeetingAll(list), x.table.Revision()}, weights[i]})
	}
	return terms
}

// rowsMeetingAll returns the rows whose nodes meet all of the requirements. Of labels that
// no node has there may be thousands: the rows are looked up for no such label.
func (x *Index) rowsMeetingAll(list []match.Requirement) table.RowSet {
	rows := x.everyRow()
	for i := range list {
		key, of := list[i].Label()
		switch {
		case !of || nodelabels.Of(x.table).HasKey(key):
			rows.Keep(x.rowsMeeting(&list[i]))
		case !list[i].Accepts("", false):
			clear(rows)
			return rows
		}
	}
	return rows
}

func (x *Index) everyRow() table.RowSet {
	rows := make(table.RowSet, (x.table.Rows()+63)/64)
	for i := range rows {
		rows[i] = ^uint64(0)
	}
	return rows
}

// requirements keeps which rows meet the requirements of selectors that came by.
type requirements struct {
	byKey map[string]*metRequirement
	uses  uint64
	key   []byte
}

type metRequirement struct {
	of       match.Requirement
	rows     table.RowSet
	revision uint64
	used     uint64
}

// mostRequirements bounds the requirements that are kept: an eighth of a byte a row each.
const mostRequirements = 512

// rowsMeeting returns the set of rows whose nodes meet the requirement. It is the index's
// own, and valid until the next call.
func (x *Index) rowsMeeting(r *match.Requirement) table.RowSet {
	q := &x.requirements
	if names, among, of := r.Names(); of { // others hardly have it
		return x.rowsNamed(names, among)
	}
	q.key = r.AppendKey(q.key[:0])
	q.uses++
	m := q.byKey[string(q.key)]
	if m == nil {
		if len(q.byKey) >= mostRequirements {
			table.DropOldest(q.byKey, func(m *metRequirement) uint64 { return m.used })
		}
		m = &metRequirement{of: *r}
		q.byKey[string(q.key)] = m
	}
	m.used = q.uses
	return x.rowsMeetingNow(r, m)
}

// rowsNamed returns the rows with these names, or else all others.
func (x *Index) rowsNamed(names []string, among bool) table.RowSet {
	rows := make(table.RowSet, (x.table.Rows()+63)/64)
	if !among {
		rows = x.everyRow()
	}
	for _, name := range names {
		if r, known := x.table.Find(name); known {
			rows.Set(r, among)
		}
	}
	return rows
}

// rowsMeetingNow brings the set up to date.
func (x *Index) rowsMeetingNow(r *match.Requirement, m *metRequirement) table.RowSet {
	if n := (x.table.Rows() + 63) / 64; len(m.rows) < n {
		m.rows = append(m.rows, make(table.RowSet, n-len(m.rows))...)
	}
	if key, of := r.Label(); of && m.revision == 0 {
		x.valueColumn(key).rowsThat(r.Accepts, m.rows)
		m.revision = x.table.Revision()
		return m.rows
	}
	x.table.NodesChanged(m.revision, func(row table.Row) bool {
		n := x.table.Node(row)
		m.rows.Set(row, n != nil && r.MetBy(n.Subject()))
		return true
	})
	m.revision = x.table.Revision()
	return m.rows
}

// check compares the sets with the nodes that did not change since.
func (x *Index) check(*Index) error {
	for key, m := range x.requirements.byKey { // any order: an error is an error
		for _, r := range x.table.All() {
			n := x.table.Node(r)
			if want := n != nil && m.of.MetBy(n.Subject()); m.rows.Has(r) != want && x.table.NodeChangedAt(r) <= m.revision {
				return fmt.Errorf("node %q meets %q: %v, asked again %v", x.table.Name(r), key, !want, want)
			}
		}
	}
	return nil
}
