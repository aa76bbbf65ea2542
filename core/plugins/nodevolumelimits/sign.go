package nodevolumelimits

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/index/volumes"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// sign appends the pod's volumes to key: only the driver of a volume that counts as new
// on every node, else also the volume's handle. plain adds the plainDrivers.
func sign(key []byte, t *table.Table, p *object.Pod, plain bool) []byte {
	w := newPodVolumes(t, p)
	if w.missing != "" {
		return fmt.Appendf(key, "!%q%q", p.Namespace, w.missing)
	}
	for _, v := range w.volumes {
		if w.countsAnywhere(volumes.Of(t), v) {
			key = fmt.Appendf(key, " %q", v.Driver)
		} else {
			key = fmt.Appendf(key, " %q=%q", v.Driver, v.Handle)
		}
	}
	if plain {
		key = fmt.Appendf(key, "%q#%d", w.plainDrivers, t.Objects().Revision(object.CSIDrivers))
	}
	return key
}

// volumesOnMost is the number of nodes with pods that use a volume, above which
// countsAnywhere does not look at them.
const volumesOnMost = 16

// countsAnywhere reports whether the verdict on every node is the same as if no pod
// there used the volume: no pod does, or the driver can attach all volumes of the pod
// to the nodes with one that does.
func (w *podVolumes) countsAnywhere(attached *volumes.Index, v object.VolumeSource) bool {
	if attached.IsTracked(v) {
		return false
	}
	anywhere, rows := true, 0
	attached.RowsWith(v, func(r table.Row) bool {
		rows++
		anywhere = rows <= volumesOnMost && w.hasRoom(attached, r, v.Driver)
		return anywhere
	})
	return anywhere
}

// hasRoom reports whether the driver could attach all volumes of the pod to the row's
// node, besides those of pods that may be tried there.
func (w *podVolumes) hasRoom(attached *volumes.Index, r table.Row, driver string) bool {
	c := attached.CSINode(r)
	if c == nil {
		return true
	}
	for i := range c.Drivers {
		d := &c.Drivers[i]
		if d.Name == driver && d.Limited && !enough(w.of(driver), attached.Attached(r, driver)+attached.TrackedCount(), d.Limit) {
			return false
		}
	}
	return true
}
