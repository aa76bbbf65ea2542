package engine

import (
	"encoding/binary"
	"slices"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// parts keeps the verdicts of single NodeOnly filters. Classes that are all different
// share most parts: they tolerate the same taints, or have the same node selector. A new
// class then asks few filters, and intersects sets of rows for the rest.
type parts struct {
	byKey map[partKey]*part
	uses  uint64
	key   []byte // scratch, as rows and verdicts are
	rows  []table.Row
	said  []framework.Verdict
	hit   table.RowSet // scratch of askPart

	live     table.RowSet // the rows with nodes
	revision uint64       // of live
}

// partKey is a plugin, and its signature of pods.
type partKey struct {
	plugin    *framework.Plugin
	signature string
}

// part holds the rows that a filter rejects, by verdict, for all pods with one signature.
type part struct {
	rejected []rejectedRows
	many     bool // there are more verdicts than are kept, and nothing is
	revision uint64
	used     uint64
}

type rejectedRows struct {
	verdict framework.Verdict
	rows    table.RowSet
}

// What is kept at most: parts, and verdicts of each, an eighth of a byte a row each.
const (
	mostParts    = 512
	mostVerdicts = 4
)

// of returns the filter's part, up to date, or nil if it is not kept. validity is a
// number that changes when the filter may answer otherwise though no node changed.
func (l *parts) of(f *filter, validity uint64) *part {
	if f.Costly {
		return nil // asked about few rows
	}
	l.key = binary.AppendUvarint(l.key[:0], validity)
	if sign := amongNodes(f.Plugin); sign != nil {
		l.key = sign(l.key, f.in.Table, f.in.Pod)
	}
	p := l.byKey[partKey{f.Plugin, string(l.key)}]
	if p == nil {
		if len(l.byKey) >= mostParts {
			table.DropOldest(l.byKey, func(p *part) uint64 { return p.used })
		}
		if l.byKey == nil {
			l.byKey = map[partKey]*part{}
		}
		p = &part{}
		l.byKey[partKey{f.Plugin, string(l.key)}] = p
	}
	l.uses++
	p.used = l.uses
	if l.follow(p, f); p.many {
		return nil
	}
	return p
}

// follow asks the filter about the nodes that changed since the part's revision.
func (l *parts) follow(p *part, f *filter) {
	t := f.in.Table
	if p.many || p.revision != 0 && t.NodeRevision() <= p.revision {
		return
	}
	rows := t.All()
	if p.revision != 0 {
		l.rows = l.rows[:0]
		t.NodesChanged(p.revision, func(r table.Row) bool {
			l.rows = append(l.rows, r)
			return true
		})
		rows = l.rows
	}
	l.said = resize(l.said, len(rows))
	f.Filter(&f.in, rows, l.said)
	if p.revision != 0 || !p.recordFirst(l.said) {
		p.record(rows, l.said, t.Rows())
	}
	p.revision = t.Revision()
}

// recordFirst records the verdicts on all rows in an empty part. It returns false, and
// records nothing, if more than one verdict rejects. It does not branch on the rows.
func (p *part) recordFirst(said []framework.Verdict) bool {
	at := slices.IndexFunc(said, func(v framework.Verdict) bool { return v != framework.Fits })
	if at < 0 {
		return true
	}
	one, other := said[at], framework.Fits
	rows := make(table.RowSet, (len(said)+63)/64)
	for i := range rows {
		word := uint64(0)
		for j, v := range said[i<<6 : min(i<<6+64, len(said))] {
			hit := uint64(0)
			if v == one {
				hit, v = 1, framework.Fits
			}
			word |= hit << j
			other |= v
		}
		rows[i] = word
	}
	if other == framework.Fits {
		p.rejected = append(p.rejected, rejectedRows{one, rows})
	}
	return other == framework.Fits
}

// record replaces the verdicts on the rows; all is the number of rows of the table. A
// part with too many verdicts is given up.
func (p *part) record(rows []table.Row, said []framework.Verdict, all int) {
	for k := range p.rejected {
		set := &p.rejected[k]
		set.rows = extend(set.rows, (all+63)/64)
		for _, r := range rows {
			set.rows.Set(r, false)
		}
	}
	for i, v := range said {
		if v == framework.Fits {
			continue
		}
		k := slices.IndexFunc(p.rejected, func(set rejectedRows) bool { return set.verdict == v })
		if k < 0 {
			if k = len(p.rejected); k == mostVerdicts {
				p.rejected, p.many = nil, true
				return
			}
			p.rejected = append(p.rejected, rejectedRows{v, make(table.RowSet, (all+63)/64)})
		}
		p.rejected[k].rows.Set(rows[i], true)
	}
}

// liveRows adds the rows with nodes to the set, which is empty.
func (l *parts) liveRows(t *table.Table, rows table.RowSet) {
	l.live = extend(l.live, len(rows))
	t.NodesChanged(l.revision, func(r table.Row) bool {
		l.live.Set(r, t.Node(r) != nil)
		return true
	})
	l.revision = t.Revision()
	copy(rows, l.live)
}
