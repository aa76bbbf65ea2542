package answers

import (
	"encoding/binary"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/table"
)

// Store keeps the answers of plugins that read node objects alone, so that each is asked
// once about a node, for all classes of pods. It has a partition for each plugin and
// signature of pods. Its memory is bounded: partitions used longest ago are dropped. The
// zero value is ready to use.
type Store struct {
	byKey map[key]*Partition
	bytes int    // about the memory of all partitions
	uses  uint64 // counter, for the age of partitions

	live   table.RowSet // the rows with nodes, as of the revision liveAt
	liveAt uint64

	// scratch
	key      []byte
	rows     []table.Row
	verdicts []framework.Verdict
	scores   []int64
}

// key identifies a partition: a plugin, scores or verdicts, and its signature of pods.
type key struct {
	plugin    *framework.Plugin
	scores    bool
	signature string
}

// A store may use baseBytes, plus bytesPerRow for each row of the table, for all its
// partitions. Beyond that it drops the partitions used longest ago. A partition (the answers
// of one plugin for like pods) counts fixedBytes in addition to its sets or column.
const (
	baseBytes   = 1 << 20
	bytesPerRow = 256
	fixedBytes  = 256
)

// chunk is how many rows a plugin is asked about in one call, a multiple of 64.
const chunk = 512

// Keeps reports whether the plugin's answers can be kept in a store: it reads node objects
// alone, does not fail, and is cheap to ask about all rows.
func Keeps(pl *framework.Plugin) bool {
	return pl.Locality == framework.NodeOnly && !pl.Costly && pl.ErrorsFrom == 0
}

// Filter returns the partition of the plugin's verdicts for in.Pod, brought up to date with the
// table. A new one is made, and all rows are asked about, if there is none.
func (s *Store) Filter(pl *framework.Plugin, in *framework.Input) *Partition {
	return s.find(pl, in, false)
}

// Score returns the partition of the plugin's raw scores for in.Pod, brought up to date with the
// table. A new one is made, and all rows are asked about, if there is none.
func (s *Store) Score(pl *framework.Plugin, in *framework.Input) *Partition {
	return s.find(pl, in, true)
}

// find returns the partition of the plugin's scores, or of its verdicts if scores is false, up to
// date with the table; a new one if there is none.
func (s *Store) find(pl *framework.Plugin, in *framework.Input, scores bool) *Partition {
	s.sign(pl, in)
	p := s.byKey[key{pl, scores, string(s.key)}]
	made := p == nil
	if made {
		p = &Partition{scores: scores}
	}
	s.Follow(p, pl, in)
	s.uses++
	p.used = s.uses
	if made {
		s.add(key{pl, scores, string(s.key)}, p, in.Table.Rows())
	}
	return p
}

// sign writes the signature of the plugin's answers for the pod to s.key. It is equal for
// as long as the answers hold on nodes that do not change.
func (s *Store) sign(pl *framework.Plugin, in *framework.Input) {
	t, valid := in.Table, in.Table.ColumnRevision() // this and the epochs only grow
	if pl.Epoch != nil {
		valid += pl.Epoch(t)
	}
	s.key = binary.AppendUvarint(s.key[:0], valid)
	if pl.Sign != nil {
		s.key = pl.Sign(s.key, t, in.Pod)
	}
}

// add adds a partition. If the store then exceeds its bound, which grows with rows (the table's),
// it deletes the half that was used longest ago. Views may still hold deleted ones.
func (s *Store) add(k key, p *Partition, rows int) {
	if s.byKey == nil {
		s.byKey = map[key]*Partition{}
	}
	s.byKey[k] = p
	if s.bytes += len(k.signature); s.bytes <= baseBytes+bytesPerRow*rows {
		return
	}
	if s.recount(); s.bytes > baseBytes+bytesPerRow*rows {
		table.DropOldest(s.byKey, func(p *Partition) uint64 { return p.used })
		s.recount()
	}
}

// recount sets bytes to the memory of the partitions that the store keeps. Views may hold
// dropped ones.
func (s *Store) recount() {
	s.bytes = 0
	for k, p := range s.byKey { // any order: a sum
		s.bytes += p.bytes() + len(k.signature)
	}
}

// Follow brings a partition, which a view may hold, up to date with in.Table: it asks the plugin
// about the nodes that changed since the partition's revision, or about all rows if it has none.
func (s *Store) Follow(p *Partition, pl *framework.Plugin, in *framework.Input) {
	t := in.Table
	if p.revision != 0 && t.NodeRevision() <= p.revision && p.rows == t.Rows() {
		return
	}
	before := p.bytes()
	if p.resize(t.Rows()); p.revision == 0 {
		before = 0
		s.askAll(p, pl, in)
	} else {
		s.rows = s.rows[:0]
		t.NodesChanged(p.revision, func(r table.Row) bool {
			s.rows = append(s.rows, r)
			return true
		})
		s.ask(p, pl, in, s.rows)
		for i, r := range s.rows {
			if p.scores {
				p.set(r, uint64(s.scores[i]))
			} else {
				p.set(r, uint64(s.verdicts[i]))
			}
		}
	}
	p.revision = t.Revision()
	s.bytes += p.bytes() - before
}

// askAll asks the plugin about all rows and records the answers in a new partition.
func (s *Store) askAll(p *Partition, pl *framework.Plugin, in *framework.Input) {
	all := in.Table.All()
	for from := 0; from < len(all); from += chunk {
		rows := all[from:min(from+chunk, len(all))]
		s.ask(p, pl, in, rows)
		if p.scores {
			record(p, rows[0], s.scores)
		} else {
			record(p, rows[0], s.verdicts)
		}
	}
}

// ask writes the plugin's answers about the rows, of the kind that p holds, to s.scores or
// s.verdicts.
func (s *Store) ask(p *Partition, pl *framework.Plugin, in *framework.Input, rows []table.Row) {
	if p.scores {
		s.scores = resize(s.scores, len(rows))
		pl.Score(in, rows, s.scores)
		return
	}
	s.verdicts = resize(s.verdicts, len(rows))
	pl.Filter(in, rows, s.verdicts)
}

// resize returns a slice of length n with undefined content, in the memory of list if that
// is large enough.
func resize[T any](list []T, n int) []T {
	if n > cap(list) {
		return make([]T, n)
	}
	return list[:n]
}

// Live returns the set of rows with nodes, brought up to date. It belongs to the store,
// must not be written, and is valid until the table changes.
func (s *Store) Live(t *table.Table) table.RowSet {
	if words := (t.Rows() + 63) / 64; words > len(s.live) {
		s.live = append(s.live, make(table.RowSet, words-len(s.live))...)
	}
	t.NodesChanged(s.liveAt, func(r table.Row) bool {
		s.live.Set(r, t.Node(r) != nil)
		return true
	})
	s.liveAt = t.Revision()
	return s.live
}

// Len returns the number of kept partitions and about the bytes that they take.
func (s *Store) Len() (partitions, bytes int) { return len(s.byKey), s.bytes }
