package table

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/group"
	"github.com/berth-scheduler/berth/core/object"
)

// CountGroups turns on the counting of placed pods by pod group. Call it before the first
// pod is placed.
func (t *Table) CountGroups() { t.groups = group.New() }

// Groups returns the pod groups with their pods; nil if CountGroups was not called. The
// table records which of the pods are placed; the machine records which exist.
func (t *Table) Groups() *group.Groups { return t.groups }

// PodGroup returns the pod group of the namespace with this GroupName (object.GroupName); nil
// if there is none, or if it is "", as for a pod without a group. A group that labels of pods
// alone make exists while it has pods.
func PodGroup(t *Table, name types.NamespacedName) *object.PodGroup {
	if kind, short, ok := object.GroupObject(name.Name); ok {
		return Lookup[*object.PodGroup](t, kind, name.Namespace, short)
	}
	return t.Groups().Named(name).Labelled()
}

// placedInGroup records in the pod's group, if it has one, that the pod is placed.
func (t *Table) placedInGroup(p *object.Pod) {
	if p.PodGroup() != "" {
		t.groups.Placed(p)
	}
}
