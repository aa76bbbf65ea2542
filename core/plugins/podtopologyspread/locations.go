package podtopologyspread

import (
	"encoding/binary"
	"github.com/berth-scheduler/berth/core/domain"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// Domain says where a node is by one topology key: the domain with an id, or
// one of the values below.
type Domain int32

const (
	Missing Domain = -1 // the node lacks the label
	Own     Domain = -2 // the node is a domain of its own, counted with its row
)

// ID is the id of the domain, which is neither Missing nor Own.
func (d Domain) ID() int32 { return int32(d >> 1) }

// Unlabelled tells whether the node lacks the label and is, all the same, in
// the domain of the empty value.
func (d Domain) Unlabelled() bool { return d >= 0 && d&1 != 0 }

// Topology is the nodes by one label. The domains are the label's values. Each
// has a C for what is counted in it.
type Topology[C any] struct {
	Key     string
	Domains domain.Ids[C]
}

// Locations says where nodes are by some topology keys. Nodes with the same
// domains share a location. The rows hold their locations, the locations hold
// their domains.
type Locations[C any] struct {
	Topologies []Topology[C]
	// UniquePerNode is the topology by a label of which nodes have values of
	// their own, -1: there is none. Such a node is a domain of its own.
	UniquePerNode int
	// Lenient: a node that lacks a label is in the domain of the empty value.
	Lenient bool

	ids domain.Ids[[]Domain]
	buf []byte // room for Join
}

// Count is what is counted in the topology's domain, which is neither Missing
// nor Own. It is valid until the next Hold.
func (l *Locations[C]) Count(topology int, d Domain) *C {
	return l.Topologies[topology].Domains.At(d.ID())
}

// Domains are the location's, by topology. They are valid until the location's
// last row leaves.
func (l *Locations[C]) Domains(location int32) []Domain { return *l.ids.At(location) }

// Held is the number of locations. Len is the number of ids, from 0, that
// there are.
func (l *Locations[C]) Held() int { return l.ids.Held() }
func (l *Locations[C]) Len() int  { return l.ids.Len() }

// DomainOf returns the node's domain in the topology, for one more holder.
func (l *Locations[C]) DomainOf(t *table.Table, n *object.Node, topology int) Domain {
	key := l.Topologies[topology].Key
	value, has := n.Labels[key]
	switch {
	case !has && !l.Lenient:
		return Missing
	case !has:
		return l.Hold(topology, "") | 1
	case topology == l.UniquePerNode && t.NodesWithUnique(key, value) == 1:
		return Own
	}
	return l.Hold(topology, value)
}

// Hold returns the domain of the value, for one more holder.
func (l *Locations[C]) Hold(topology int, value string) Domain {
	id, _ := l.Topologies[topology].Domains.Hold(value)
	return Domain(id << 1)
}

// Release takes a holder off each of the domains, which are by topology.
func (l *Locations[C]) Release(domains []Domain) {
	for i, d := range domains {
		if d >= 0 {
			l.Topologies[i].Domains.Release(d.ID())
		}
	}
}

// Join returns the location with the domains, for one more row. The location
// holds the domains from then on, in place of the caller.
func (l *Locations[C]) Join(domains []Domain) int32 {
	l.buf = l.buf[:0]
	for _, d := range domains {
		l.buf = binary.LittleEndian.AppendUint32(l.buf, uint32(d))
	}
	id, known := l.ids.HoldBytes(l.buf)
	if known {
		l.Release(domains) // the location holds them already
	} else {
		*l.ids.At(id) = append([]Domain(nil), domains...)
	}
	return id
}

// JoinAt takes n rows more into a location that has rows.
func (l *Locations[C]) JoinAt(location int32, n int) { l.ids.HoldID(location, n) }

// Leave takes a row off the location.
func (l *Locations[C]) Leave(location int32) {
	if domains, last := l.ids.Release(location); last {
		l.Release(domains)
	}
}
