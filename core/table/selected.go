package table

import (
	"math/bits"

	"github.com/berth-scheduler/berth/core/match"
)

// RowSet is a set of rows, 64 to a word. Rows beyond its end are not in it.
type RowSet []uint64

// Has reports whether the row is in the set.
func (s RowSet) Has(r Row) bool {
	word := int(r) >> 6
	return word < len(s) && s[word]>>(r&63)&1 != 0
}

// Set adds the row, or removes it. The set must reach that far.
func (s RowSet) Set(r Row, in bool) {
	if bit := uint64(1) << (r & 63); in {
		s[r>>6] |= bit
	} else {
		s[r>>6] &^= bit
	}
}

// Selection is the rows whose nodes a selector admits, at one revision of the table. It
// does not change. Of a node that changed since, it says nothing.
//
// A selector is a combination of requirements, such as "zone In [a b]", and the table
// keeps which rows meet a requirement. Pods whose selectors differ share most of
// these. So a selector that comes by for the first time costs a few operations on sets,
// and no look at labels.
type Selection struct {
	rows     RowSet
	revision uint64
}

// Admits reports whether the selector admits the row's node. known is false if the node
// came or changed since the selection was made.
func (s *Selection) Admits(t *Table, r Row) (admits, known bool) {
	return s.rows.Has(r), t.nodeChanges.at[r] <= s.revision
}

// Select finds the rows whose nodes the selector admits. The owner calls it.
func (t *Table) Select(s *match.NodeSelector) Selection {
	all, others, demands := s.Clauses()
	rows := t.rowsMeetingAll(all)
	if demands {
		some := make(RowSet, len(rows))
		for _, list := range others {
			some.add(t.rowsMeetingAll(list))
		}
		rows.keep(some)
	}
	return Selection{rows, t.revision}
}

// WeightedSelection is the rows whose nodes a term of preferred node affinity counts for.
type WeightedSelection struct {
	Selection
	Weight int64
}

// SelectPreferred finds the rows whose nodes the terms count for. The owner calls it.
func (t *Table) SelectPreferred(p *match.PreferredNodes) (terms []WeightedSelection) {
	weights, lists := p.Clauses()
	for i, list := range lists {
		terms = append(terms, WeightedSelection{Selection{t.rowsMeetingAll(list), t.revision}, weights[i]})
	}
	return terms
}

// rowsMeetingAll returns the rows whose nodes meet all of the requirements. Of labels that
// no node has there may be thousands: the rows are looked up for no such label.
func (t *Table) rowsMeetingAll(list []match.Requirement) RowSet {
	rows := t.everyRow()
	for i := range list {
		key, of := list[i].Label()
		switch {
		case !of || t.HasLabelKey(key):
			rows.keep(t.rowsMeeting(&list[i]))
		case !list[i].Accepts("", false):
			clear(rows)
			return rows
		}
	}
	return rows
}

func (t *Table) everyRow() RowSet {
	rows := make(RowSet, (t.Rows()+63)/64)
	for i := range rows {
		rows[i] = ^uint64(0)
	}
	return rows
}

// Append appends the rows of the set to the list, in order.
func (s RowSet) Append(rows []Row) []Row {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			rows = append(rows, Row(i<<6+bits.TrailingZeros64(word)))
		}
	}
	return rows
}

// Len returns the number of rows in the set.
func (s RowSet) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// First returns the lowest row of the set, -1 if it is empty.
func (s RowSet) First() Row {
	for i, word := range s {
		if word != 0 {
			return Row(i<<6 + bits.TrailingZeros64(word))
		}
	}
	return -1
}

// keep removes rows that are not in the other set, which is of equal length.
func (s RowSet) keep(o RowSet) {
	for i := range s {
		s[i] &= o[i]
	}
}

// add adds the rows of the other set, which is of equal length.
func (s RowSet) add(o RowSet) {
	for i := range s {
		s[i] |= o[i]
	}
}

// requirements keeps which rows meet the requirements of selectors that came by.
type requirements struct {
	byKey map[string]*metRequirement
	uses  uint64
	key   []byte
}

type metRequirement struct {
	rows     RowSet
	revision uint64
	used     uint64
}

// mostRequirements bounds the requirements that are kept: an eighth of a byte a row each.
const mostRequirements = 512

// rowsMeeting returns the set of rows whose nodes meet the requirement. It is the table's
// own, and valid until the next call.
func (t *Table) rowsMeeting(r *match.Requirement) RowSet {
	q := &t.requirements
	if names, among, of := r.Names(); of { // others hardly have it
		return t.rowsNamed(names, among)
	}
	q.key = r.AppendKey(q.key[:0])
	q.uses++
	m := q.byKey[string(q.key)]
	if m == nil {
		if len(q.byKey) >= mostRequirements {
			DropOldest(q.byKey, func(m *metRequirement) uint64 { return m.used })
		}
		m = &metRequirement{}
		q.byKey[string(q.key)] = m
	}
	m.used = q.uses
	return t.rowsMeetingNow(r, m)
}

// rowsNamed returns the rows with these names, or else all others.
func (t *Table) rowsNamed(names []string, among bool) RowSet {
	rows := make(RowSet, (t.Rows()+63)/64)
	if !among {
		rows = t.everyRow()
	}
	for _, name := range names {
		if r, known := t.Find(name); known {
			rows.Set(r, among)
		}
	}
	return rows
}

// rowsMeetingNow brings the set up to date.
func (t *Table) rowsMeetingNow(r *match.Requirement, m *metRequirement) RowSet {
	if n := (t.Rows() + 63) / 64; len(m.rows) < n {
		m.rows = append(m.rows, make(RowSet, n-len(m.rows))...)
	}
	if key, of := r.Label(); of && m.revision == 0 {
		t.valueColumn(key).rowsThat(r.Accepts, m.rows)
		m.revision = t.revision
		return m.rows
	}
	t.NodesChanged(m.revision, func(row Row) bool {
		n := t.nodes[row]
		m.rows.Set(row, n != nil && r.MetBy(n.Subject()))
		return true
	})
	m.revision = t.revision
	return m.rows
}
