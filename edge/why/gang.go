package why

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/table"
)

// gangText says in brackets how many pods of the group are wanted at once, how many have a node and
// how many wait. fitting are those that were placed for the answer alone.
func (c *Cluster) gangText(name types.NamespacedName, fitting, waiting int) string {
	t := c.Machine.Table()
	text, placed := "", t.Groups().Named(name).Scheduled()-fitting
	if g := table.PodGroup(t, name); g != nil && g.Gang {
		text = fmt.Sprintf("minCount %d, ", g.MinCount)
		if all := placed + waiting; int(g.MinCount) < all {
			text = fmt.Sprintf("minCount %d of %s, so %d count as complete; ", g.MinCount, count(all, "pod"), g.MinCount)
		}
	}
	return fmt.Sprintf(" (%s%d placed, %d wait)", text, placed, waiting)
}

// groupText says how it stands with the group of a pod that waits, "" where groups do not count.
func (f *facts) groupText() string {
	m := f.cluster.Machine
	if f.pod.PodGroup() == "" || !m.PlacesGroups() {
		return ""
	}
	waiting := 0
	for _, p := range m.Pods() {
		if p.PodGroup() != "" && p.GroupKey() == f.pod.GroupKey() && m.Table().Pod(p.UID) == nil {
			waiting++
		}
	}
	return fmt.Sprintf(" Its pod group %s is placed together%s.", f.pod.GroupKey(), f.cluster.gangText(f.pod.GroupKey(), 0, waiting))
}
