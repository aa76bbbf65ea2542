package table

import (
	"github.com/berth-scheduler/berth/core/group"
	"github.com/berth-scheduler/berth/core/object"
)

// CountGroups has the table say which pods of groups are placed. It comes before the
// first pod.
func (t *Table) CountGroups() { t.groups = group.New() }

// Groups returns the pod groups with their pods; nil where groups do not count. The machine
// says which pods are known.
func (t *Table) Groups() *group.Groups { return t.groups }

// placedInGroup has the pod's group know that it is placed.
func (t *Table) placedInGroup(p *object.Pod) {
	if p.PodGroup() != "" {
		t.groups.Placed(p)
	}
}
