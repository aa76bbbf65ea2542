package snapshot

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
)

// Snapshot is the node table at one moment. It never changes, and readers share it.
type Snapshot struct {
	// Revision is higher than that of each snapshot before in which a node differs; at least 1.
	Revision uint64
	Counts   Counts
	// Rows are those that have a node, by the node's name.
	Rows []table.Row
	// Nodes, Pods and Requested are by row: the node (nil: none), how many pods are on it, and what
	// these request.
	Nodes     []*object.Node
	Pods      []int64
	Requested []Requested // by name

	tableRevision, columnRevision uint64
	changed                       []uint64 // by row, the revision
	removed                       []removal
	forgotten                     uint64 // the newest revision of a removal that is not in removed
}

// Counts are how many pods are where.
type Counts struct {
	Queue           queue.Counts
	Nodes           int
	Placed, Assumed int // pods with a node, and those of them that the API does not show there yet
}

// Requested is what pods request of one resource.
type Requested struct {
	Name   v1.ResourceName
	Amount []int64 // by row, in the units of resource.Vector

	id table.Resource
}

// removal is a node that went.
type removal struct {
	name     string
	revision uint64
}

// mostRemovals bounds the removals that are kept: who has an older revision is told all.
const mostRemovals = 1024

// Since returns the rows whose nodes changed after the revision, by name, and the names of nodes
// that went. whole is set if all rows are returned, as what went is not known any more.
func (s *Snapshot) Since(revision uint64) (rows []table.Row, gone []string, whole bool) {
	if revision < max(1, s.forgotten) || revision > s.Revision {
		return s.Rows, nil, true
	}
	if revision == s.Revision {
		return nil, nil, false
	}
	back := map[string]bool{} // nodes that may have gone before
	for _, r := range s.Rows {
		if s.changed[r] > revision {
			rows = append(rows, r)
			back[s.Nodes[r].Name] = true
		}
	}
	for _, one := range s.removed {
		if one.revision > revision && !back[one.name] {
			back[one.name] = true // once
			gone = append(gone, one.name)
		}
	}
	return rows, gone, false
}

// IsReady reports whether no condition says that the node is not ready. A node that was written by
// hand has no conditions, and pods are placed on it.
func IsReady(n *object.Node) bool {
	return !slices.ContainsFunc(n.Conditions, func(c object.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status != v1.ConditionTrue
	})
}

// alike reports whether readers see no difference between two states of a row's node; nil
// stands for none.
func alike(was, is *object.Node) bool {
	return was == is || was != nil && is != nil && was.EqualForScheduling(is) && IsReady(was) == IsReady(is)
}

// compare sets what a new snapshot knows of the one before it, nil for none.
func (s *Snapshot) compare(before *Snapshot) {
	s.changed = make([]uint64, len(s.Nodes))
	if before == nil {
		before = &Snapshot{}
	}
	copy(s.changed, before.changed)
	s.Revision, s.Rows = before.Revision, before.Rows
	s.removed, s.forgotten = slices.Clip(before.removed), before.forgotten
	next, moved := before.Revision+1, before.Rows == nil
	amounts := s.amounts(before)
	// A resource of which nothing is left may have no column any more. All nodes are told anew then.
	swept := slices.ContainsFunc(before.Requested, func(r Requested) bool { return s.requested(r.Name) == nil })
	for r, is := range s.Nodes {
		var old *object.Node
		if r < len(before.Nodes) {
			old = before.Nodes[r]
		}
		switch {
		case !swept && alike(old, is) && (is == nil || s.Pods[r] == before.Pods[r] && sameIn(amounts, r)):
			continue
		case old == nil || is == nil || old.Name != is.Name:
			moved = true
			if old != nil {
				s.removed = append(s.removed, removal{old.Name, next})
			}
		}
		s.changed[r], s.Revision = next, next
	}
	s.Revision = max(s.Revision, 1)
	if moved {
		s.sort()
	}
	if n := len(s.removed) - mostRemovals; n > 0 {
		s.forgotten, s.removed = s.removed[n-1].revision, slices.Clone(s.removed[n:])
	}
}

// sort sets the rows.
func (s *Snapshot) sort() {
	s.Rows = make([]table.Row, 0, s.Counts.Nodes)
	for r, n := range s.Nodes {
		if n != nil {
			s.Rows = append(s.Rows, table.Row(r)) // #nosec G115 -- a row of the table
		}
	}
	slices.SortFunc(s.Rows, func(a, b table.Row) int { return cmp.Compare(s.Nodes[a].Name, s.Nodes[b].Name) })
}

// amounts are what pods requested of one resource, by row, and what they request now. was is nil if
// they requested nothing.
type amounts struct{ was, is []int64 }

// amounts returns those of each resource.
func (s *Snapshot) amounts(before *Snapshot) []amounts {
	list := make([]amounts, 0, len(s.Requested))
	for i := range s.Requested {
		list = append(list, amounts{before.requested(s.Requested[i].Name), s.Requested[i].Amount})
	}
	return list
}

// requested returns what is requested of a resource by row; nil for nothing.
func (s *Snapshot) requested(name v1.ResourceName) []int64 {
	for i := range s.Requested {
		if s.Requested[i].Name == name {
			return s.Requested[i].Amount
		}
	}
	return nil
}

// sameIn reports whether the pods of the row request what they requested before.
func sameIn(list []amounts, r int) bool {
	for i := range list {
		was := int64(0)
		if list[i].was != nil {
			was = list[i].was[r]
		}
		if list[i].is[r] != was {
			return false
		}
	}
	return true
}
