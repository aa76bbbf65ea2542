package why

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
)

// podGroup is the kind of a Workload whose pods are those of a pod group. Its Name is the group's,
// whatever API has it, or the API's group, a slash and the name.
const podGroup = "podgroup"

// isGroup reports whether the Name of a Workload means the group with this name, which is as the
// scheduler has it.
func isGroup(group, name string) bool {
	source, short := object.GroupSource(name)
	switch _, of := object.GroupSource(group); source {
	case "":
		return of == short
	case object.PodGroups.GroupVersion().Group:
		return group == short
	}
	return group == name
}

// qualifiedGroup returns the Name of a Workload that means this group alone.
func qualifiedGroup(group string) string {
	if source, _ := object.GroupSource(group); source == "" {
		return object.PodGroups.GroupVersion().Group + "/" + group
	}
	return group
}

// groupsIn returns the names of the PodGroups, and of the groups that pods name, sorted.
func groupsIn(c *Cluster) (names []types.NamespacedName) {
	for _, p := range c.Set.Pods {
		if group := groupOf(c.Machine, p); group != "" {
			names = append(names, types.NamespacedName{Namespace: p.Namespace, Name: group})
		}
	}
	if c.Machine != nil { // else whoever asks may not read the cluster
		names = append(names, c.Machine.Table().Groups().Names()...)
		for _, kind := range []object.Kind{object.PodGroups, object.CoschedulingGroups} {
			for _, o := range c.Machine.Table().Objects().List(kind) {
				names = append(names, o.(*object.PodGroup).GroupKey())
			}
		}
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(names)
}

// groupsOf returns the groups that the workload, a pod group, may mean: several where APIs have one of
// this name each.
func groupsOf(c *Cluster, w Workload) []types.NamespacedName {
	return slices.DeleteFunc(groupsIn(c), func(name types.NamespacedName) bool {
		return name.Namespace != w.Namespace || !isGroup(name.Name, w.Name)
	})
}

// checkOneGroup returns an error if the workload is a pod group and may be one of several.
func checkOneGroup(c *Cluster, w Workload) error {
	if w.Kind != podGroup {
		return nil
	}
	var give []string
	for _, name := range groupsOf(c, w) {
		source, short := object.GroupSource(qualifiedGroup(name.Name))
		give = append(give, podGroup+"."+source+"/"+short)
	}
	if len(give) < 2 {
		return nil
	}
	return fmt.Errorf("%s %s/%s: there are several: give %s", w.Kind, w.Namespace, w.Name, strings.Join(give, " or "))
}

// idleGroup says what is wrong with the pod group, and whether it has pods.
func idleGroup(c *Cluster, w Workload) (texts []string) {
	if w.Kind != podGroup || c.Machine == nil {
		return nil
	}
	for _, name := range groupsOf(c, w) {
		if fault := c.Machine.GroupFault(name); fault != "" {
			texts = append(texts, "it is not valid: "+fault)
		}
		if groups := c.Machine.Table().Groups(); groups != nil && groups.Named(name) == nil {
			texts = append(texts, "no pod names it: "+naming(name.Name))
		}
	}
	return texts
}

// naming returns the clause that says which label or field makes a pod belong to the group.
// group is qualified, as object.GroupSource reads it.
func naming(group string) string {
	switch source, short := object.GroupSource(group); source {
	case "":
		return fmt.Sprintf("a pod of it has spec.schedulingGroup.podGroupName: %s", short)
	case object.SchedulerPlugins:
		return fmt.Sprintf("a pod of it has the label %s: %s", object.PodGroupLabel, short)
	default:
		return fmt.Sprintf("a pod of it has the label %s: %s", object.NameLabel(source), short)
	}
}
