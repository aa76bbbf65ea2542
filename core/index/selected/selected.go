// Package selected keeps which nodes of a table meet the requirements of selectors, by sets of
// rows.
package selected

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/index/nodelabels"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/table"
)

// Index answers which rows' nodes a node selector matches. It keeps results for single
// requirements and brings them up to date with the table when it is asked.
type Index struct {
	table        *table.Table
	requirements requirements
	columns      valueColumns
}

// index registers the Index, so that every table has one.
var index = table.Follow(func(t *table.Table) table.Follower[*Index] {
	x := &Index{table: t}
	x.requirements.byKey, x.columns.byKey = map[string]*metRequirement{}, map[string]*valueColumn{}
	return table.Follower[*Index]{Index: x, Check: x.check}
})

// Of returns the table's index of the rows that selectors match.
func Of(t *table.Table) *Index { return index.Of(t) }

// Selection is the set of rows whose nodes a selector matches, as of one revision of the
// table. It does not change, and knows nothing of nodes that changed since.
//
// A selector is a combination of requirements, such as "zone In [a b]", and the index keeps
// the rows that meet each requirement. Pods whose selectors differ share most of these. So
// a new selector takes a few operations on sets, and no look at labels.
type Selection struct {
	rows     table.RowSet
	revision uint64 // of the table, when the selection was made
}

// Admits reports whether the selector matches the row's node. known is false if the node was
// added, changed or removed since the selection was made: then the caller must look at its
// labels.
func (s *Selection) Admits(t *table.Table, r table.Row) (admits, known bool) {
	return s.rows.Has(r), t.NodeChangedAt(r) <= s.revision
}

// Select returns the rows whose nodes the selector matches now. Rows without a node may be
// among them. Only the table's owner may call it.
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

// WeightedSelection is the set of rows whose nodes a term of preferred node affinity
// matches, with its weight.
type WeightedSelection struct {
	Selection
	Weight int64
}

// SelectPreferred returns, for each term of preferred node affinity that parses, the rows whose
// nodes it matches now. Rows without a node may be among them. Only the table's owner may call
// it.
func (x *Index) SelectPreferred(p *match.PreferredNodes) (terms []WeightedSelection) {
	weights, lists := p.Clauses()
	for i, list := range lists {
		terms = append(terms, WeightedSelection{Selection{x.rowsMeetingAll(list), x.table.Revision()}, weights[i]})
	}
	return terms
}

// rowsMeetingAll returns a new set of the rows whose nodes meet all of the requirements. Rows
// without a node may be in it. Requirements on labels that no node has, of which there may be
// thousands, are not kept.
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

// everyRow returns a new set of all rows, those without a node included. Bits beyond the last
// row are set, too.
func (x *Index) everyRow() table.RowSet {
	rows := make(table.RowSet, (x.table.Rows()+63)/64)
	for i := range rows {
		rows[i] = ^uint64(0)
	}
	return rows
}

// requirements keeps the rows that meet requirements of selectors, by Requirement.AppendKey.
type requirements struct {
	byKey map[string]*metRequirement
	uses  uint64 // counter, for the age of entries
	key   []byte // scratch of rowsMeeting
}

// metRequirement is a requirement with the rows whose nodes meet it.
type metRequirement struct {
	of       match.Requirement // the requirement
	rows     table.RowSet
	revision uint64 // of the table, up to which rows is right
	used     uint64 // value of uses at the last use
}

// mostRequirements is the most requirements that are kept; with more, those used longest ago
// are dropped. Each takes one bit a row.
const mostRequirements = 512

// rowsMeeting returns the set of rows whose nodes meet the requirement now, and keeps it unless
// it is one on node names. The set is valid until the next call. Read only.
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

// rowsNamed returns the rows that meet a requirement on node names: those of the named nodes,
// or, if among is false, all others, rows without a node included. The set is new.
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

// rowsMeetingNow brings the rows of m, which is kept for requirement r, up to date and
// returns them.
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

// check returns an error if a kept set is wrong about a node that did not change since.
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
