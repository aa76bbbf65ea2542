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

// Layout gives each row a location: a number that is equal for nodes in the same domains of
// all its topologies. All classes that count by the same topologies share one layout. It
// belongs to the owner of the table.
type Layout struct {
	Topologies []*Topology // sorted by Key
	// UniquePerNode is the index in Topologies of the one in which most nodes are domains of
	// their own, as by hostname; -1: there is none. Such nodes share locations, in which that
	// domain is Own.
	UniquePerNode int
	// Moves changes whenever the location of a row does, or its domain in Owns.
	Moves uint64

	ids      ids      // locations by the bytes of their domains
	domains  []Domain // by location, then topology
	rows     []int32  // the location of each row
	own      []Domain // by row, the domain that is Own in its location; None where there is none
	revision uint64   // of the table, up to which changed nodes are followed
	buf      []byte   // scratch of move
	found    []Domain // scratch of move
}

// Locations returns the location of each row, NoNode where there is no node. It is valid
// until Follow. Read only.
func (l *Layout) Locations() []int32 { return l.rows }

// Owns returns, by row, the domain of UniquePerNode that only this node is in, such as its
// hostname; None for rows without one. A location names that domain as Own, so that nodes
// can share locations. It is valid until Follow. Read only.
func (l *Layout) Owns() []Domain { return l.own }

// Domains returns the domains of a location, by topology. They are valid until Follow. Read
// only.
func (l *Layout) Domains(location int32) []Domain {
	n := len(l.Topologies)
	return l.domains[int(location)*n : (int(location)+1)*n]
}

// Held returns the number of locations that have rows, for checks of memory.
func (l *Layout) Held() int { return l.ids.held() }

// Len returns a number greater than every location, free ones included.
func (l *Layout) Len() int { return l.ids.len() }

// Follow brings the layout and its topologies up to date with the table.
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

// move finds the row's location and own domain again after its node changed. It counts a move
// if one of them is another.
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
		l.ids.release(was)
	}
	if l.rows[r] = is; was != is || own != l.own[r] {
		l.Moves++
	}
}

// join returns the number of the location with the domains in found, a new one if there is
// none, and counts one more row on it. The key of the location must be in buf.
func (l *Layout) join() int32 {
	id, known := l.ids.holdBytes(l.buf)
	if known {
		return id
	}
	if n := len(l.Topologies) * (int(id) + 1); len(l.domains) < n {
		l.domains = append(l.domains, make([]Domain, n-len(l.domains))...)
	}
	copy(l.Domains(id), l.found)
	return id
}

// Most topologies and layouts that Prepare keeps. With more topologies it drops all of both,
// with more layouts all layouts. Until the next Prepare there may be more.
const (
	topologiesKept = 128
	layoutsKept    = 64
)

// Layouts makes topologies and layouts once for each key, so that classes share them. It
// serves one table at a time. The zero value is ready to use.
type Layouts struct {
	table      *table.Table
	generation uint64 // number of times that topologies were dropped
	topologies map[Key]*Topology
	layouts    map[string]*Layout // by the keys of their topologies
	revision   uint64             // UniqueRevision of nodelabels for which layouts were made
	name       []byte             // scratch for the key of a layout
}

// Prepare drops all topologies and layouts if t is another table or there are too many
// topologies. It drops the layouts alone if there are too many, or if nodes began or ceased to
// be alone with a label value. Call it before a class asks for topologies and layouts. The
// generation changes when topologies were dropped: only those of one generation are shared.
func (s *Layouts) Prepare(t *table.Table) (generation uint64) {
	if s.table != t || len(s.topologies) > topologiesKept {
		*s = Layouts{table: t, generation: s.generation + 1, topologies: map[Key]*Topology{}, name: s.name}
	}
	if s.layouts == nil || s.revision != nodelabels.Of(t).UniqueRevision() || len(s.layouts) > layoutsKept {
		s.layouts, s.revision = map[string]*Layout{}, nodelabels.Of(t).UniqueRevision()
	}
	return s.generation
}

// Topology returns the topology with the key, which all classes of pods share; a new one
// if there is none. A new one knows no row until Follow.
func (s *Layouts) Topology(key Key) *Topology {
	p := s.topologies[key]
	if p == nil {
		p = newTopology(key)
		s.topologies[key] = p
	}
	return p
}

// Layout returns the layout over the topologies of keys, a new one if there is none. It sorts
// keys in place and ignores repeated ones. With own, one topology may have nodes that are
// domains of their own (UniquePerNode).
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

// newLayout returns a new layout over the sorted keys. It knows no row until Follow.
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

// compareKeys compares by label; of equal labels the key with PerNode comes last.
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

// uniquePerNode returns the index of the key in which most nodes are domains of their own,
// so that locations need not tell these apart: one with PerNode, else hostname, else any
// whose values are mostly unique; -1: there is none.
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
