package table

import (
	"github.com/berth-scheduler/berth/core/group"
	"github.com/berth-scheduler/berth/core/object"
)

// CountGroups makes the table count which pods of groups are placed. Call it before the
// first pod.
func (t *Table) CountGroups() { t.groups = group.New() }

// Groups returns the pod groups with their pods; nil where groups do not count. The machine
// says which pods are known.
func (t *Table) Groups() *group.Groups { return t.groups }

// placedInGroup records in the pod's group that the pod is placed.
func (t *Table) placedInGroup(p *object.Pod) {
	if p.PodGroup() != "" {
		t.groups.Placed(p)
	}
}
