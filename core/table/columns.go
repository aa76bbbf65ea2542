package table

import (
	"maps"

	v1 "k8s.io/api/core/v1"
)

// Resource is the dense id of a resource's columns.
type Resource int

// Resources that every table has; others are given ids as they appear.
const (
	CPU Resource = iota
	Memory
	EphemeralStorage
	firstScalar
)

// scalars are the resources that have columns by their names. One that no node
// offers and no placed pod takes any more loses them some time later.
type scalars struct {
	ids      map[v1.ResourceName]Resource
	free     []Resource
	limit    int // of ids, before they are swept
	revision uint64
}

// columnsKept is how many named resources have columns before those are looked
// for that do not need them any more.
const columnsKept = 64

// Column returns the id of a resource's columns; false if it has none: no node
// offers it and no placed pod takes any.
func (t *Table) Column(name v1.ResourceName) (Resource, bool) {
	switch name {
	case v1.ResourceCPU:
		return CPU, true
	case v1.ResourceMemory:
		return Memory, true
	case v1.ResourceEphemeralStorage:
		return EphemeralStorage, true
	}
	id, ok := t.scalars.ids[name]
	return id, ok
}

// ColumnRevision changes whenever a resource is given columns: what was looked
// up with Column before may have become known since, or be another's now.
func (t *Table) ColumnRevision() uint64 { return t.scalars.revision }

// column returns the id of a resource, giving it columns if it has none.
func (t *Table) column(name v1.ResourceName) Resource {
	if id, ok := t.Column(name); ok {
		return id
	}
	s := &t.scalars
	if len(s.ids) >= s.limit && t.marks == 0 {
		t.sweepColumns()
	}
	s.revision++
	id := Resource(len(t.used))
	if n := len(s.free); n > 0 {
		id, s.free = s.free[n-1], s.free[:n-1]
	} else {
		t.used = append(t.used, make([]int64, len(t.nodes)))
		t.allocatable = append(t.allocatable, make([]int64, len(t.nodes)))
	}
	s.ids[name] = id
	return id
}

// sweepColumns frees the columns of resources that hold nothing. It must not run under a
// checkpoint, as an undo may need them.
func (t *Table) sweepColumns() {
	s := &t.scalars
	maps.DeleteFunc(s.ids, func(_ v1.ResourceName, id Resource) bool {
		for r := range t.nodes {
			if t.used[id][r] != 0 || t.allocatable[id][r] != 0 {
				return false
			}
		}
		s.free = append(s.free, id)
		return true
	})
	s.limit = max(columnsKept, 2*len(s.ids))
}
