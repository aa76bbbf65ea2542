package domain

import (
	"encoding/binary"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/index/nodelabels"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/table"
)

// Layout holds the location of each row by some topologies. Nodes that are in the same
// domains share a location. All classes that count by the same topologies share one
// layout. It belongs to the owner of the table.
type Layout struct {
	Topologies []*Topology
	// UniquePerNode is the topology in which most nodes are domains of their own, -1:
	// there is none. Such nodes share locations, in which that domain is Own.
	UniquePerNode int
	// Moves changes whenever the location of a row does.
	Moves uint64

	ids      Ids[struct{}]
	domains  []Domain // by location and topology
	rows     []int32  // the location of each row
	own      []Domain // by row, the domain that is Own in its location; None where there is none
	revision uint64   // up to which the changes of nodes are followed
	buf      []byte   // scratch of move
	found    []Domain // scratch of move
}

// Locations returns the locations of all rows, NoNode where there is no node. They are
// valid until Follow. Read only.
func (l *Layout) Locations() []int32 { return l.rows }

// Owns returns the domains of rows whose nodes are domains of their own, None of others.
// They are valid until Follow. Read only.
func (l *Layout) Owns() []Domain { return l.own }

// Domains returns the location's, by topology. They are valid until Follow. Read only.
func (l *Layout) Domains(location int32) []Domain {
	n := len(l.Topologies)
	return l.domains[int(location)*n : (int(location)+1)*n]
}

// Held returns the number of locations that have rows, Len more than the number of any.
func (l *Layout) Held() int { return l.ids.Held() }
func (l *Layout) Len() int  { return l.ids.Len() }

// Follow brings the layout and its topologies up to the table.
func (l *Layout) Follow(t *table.Table) {
	for _, p := range l.Topologies {
		p.Follow(t)
	}
	for len(l.rows) < t.Rows() {
		l.rows, l.own = append(l.rows, NoNode), append(l.own, None)
	}
	if t.NodeRevision() <= l.revision {
		return
	}
	t.NodesChanged(l.revision, func(r table.Row) bool {
		l.move(t, r)
		return true
	})
	l.revision = t.Revision()
}

// move updates the row's location after its node changed.
func (l *Layout) move(t *table.Table, r table.Row) {
	was, is, own := l.rows[r], int32(NoNode), l.own[r]
	l.own[r] = None
	if n := t.Node(r); n != nil {
		l.found, l.buf = l.found[:0], l.buf[:0]
		for i, p := range l.Topologies {
			d := p.of[r]
			if i == l.UniquePerNode && d != Missing && (p.PerNode || nodelabels.Of(t).NodesWithUnique(p.Label, n.Labels[p.Label]) == 1) {
				l.own[r], d = d, Own
			}
			l.found = append(l.found, d)
			l.buf = binary.LittleEndian.AppendUint32(l.buf, uint32(d))
		}
		is = l.join()
	}
	if was != NoNode {
		l.ids.Release(was)
	}
	if l.rows[r] = is; was != is || own != l.own[r] {
		l.Moves++
	}
}

// join returns the location with the domains that were found, for one more row.
func (l *Layout) join() int32 {
	id, known := l.ids.HoldBytes(l.buf)
	if known {
		return id
	}
	if n := len(l.Topologies) * (int(id) + 1); len(l.domains) < n {
		l.domains = append(l.domains, make([]Domain, n-len(l.domains))...)
	}
	copy(l.Domains(id), l.found)
	return id
}

// What Layouts keeps at most, besides what one class asks for.
const (
	topologiesKept = 128
	layoutsKept    = 64
)

// Layouts finds topologies and layouts by their keys, for one table at a time. The zero
// value is ready to use.
type Layouts struct {
	table      *table.Table
	generation uint64
	topologies map[Key]*Topology
	layouts    map[string]*Layout
	revision   uint64 // UniquePerNodeRevision
	name       []byte
}

// Prepare must be called before a class asks for topologies and layouts. All that is
// returned until the next call is of one generation: topologies of one generation have
// one key each.
func (s *Layouts) Prepare(t *table.Table) (generation uint64) {
	if s.table != t || len(s.topologies) > topologiesKept {
		*s = Layouts{table: t, generation: s.generation + 1, topologies: map[Key]*Topology{}, name: s.name}
	}
	if s.layouts == nil || s.revision != nodelabels.Of(t).UniqueRevision() || len(s.layouts) > layoutsKept {
		s.layouts, s.revision = map[string]*Layout{}, nodelabels.Of(t).UniqueRevision()
	}
	return s.generation
}

// Topology returns the one with the key.
func (s *Layouts) Topology(key Key) *Topology {
	p := s.topologies[key]
	if p == nil {
		p = newTopology(key)
		s.topologies[key] = p
	}
	return p
}

// Layout returns the one by the keys, which it sorts. With own, nodes are domains of
// their own in one of the topologies, for as long as UniquePerNodeRevision stands.
func (s *Layouts) Layout(keys []Key, own bool) *Layout {
	slices.SortFunc(keys, compareKeys)
	keys = slices.Compact(keys)
	s.name = s.name[:0]
	for _, k := range keys {
		s.name = match.AppendField(s.name, k.Label)
		if k.PerNode {
			s.name = append(s.name, '+')
		}
	}
	if own {
		s.name = append(s.name, '!')
	}
	l := s.layouts[string(s.name)]
	if l == nil {
		l = s.newLayout(keys, own)
		s.layouts[string(s.name)] = l
	}
	return l
}

func (s *Layouts) newLayout(keys []Key, own bool) *Layout {
	l := &Layout{UniquePerNode: -1}
	for _, k := range keys {
		l.Topologies = append(l.Topologies, s.Topology(k))
	}
	if own {
		l.UniquePerNode = uniquePerNode(s.table, keys)
	}
	return l
}

func compareKeys(a, b Key) int {
	switch c := strings.Compare(a.Label, b.Label); {
	case c != 0:
		return c
	case a.PerNode == b.PerNode:
		return 0
	case a.PerNode:
		return 1
	}
	return -1
}

// uniquePerNode picks the key of which most nodes have a value of their own: each node
// by itself, else by hostname, else any; -1: there is none.
func uniquePerNode(t *table.Table, keys []Key) int {
	if i := slices.IndexFunc(keys, func(k Key) bool { return k.PerNode }); i >= 0 {
		return i
	}
	host := slices.Index(keys, Key{Label: v1.LabelHostname})
	if host >= 0 && nodelabels.Of(t).UniquePerNode(v1.LabelHostname) {
		return host
	}
	return slices.IndexFunc(keys, func(k Key) bool { return nodelabels.Of(t).UniquePerNode(k.Label) })
}
