package nodevolumelimits

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/index/volumes"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// sign appends the pod's volumes to key: of a volume that counts as new on every node only the
// driver, of another volume also its handle. If a PVC of the pod does not exist, it appends just
// that claim's name. plain also adds the plainDrivers and the revision of CSIDrivers.
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

// volumesOnMost is the largest number of nodes with pods that use a volume for which countsAnywhere
// looks at each of these nodes. With more it returns false.
const volumesOnMost = 16

// countsAnywhere reports whether the verdict on every node is known to be the same as if no pod
// there used volume v: no pod does, or the driver can attach all volumes of the pod to the nodes
// with one that does. It is false if pods that are not placed, but may be tried, use v.
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

// hasRoom reports whether the driver could attach all volumes of the pod to the row's node, in
// addition to those of all pods that may be tried there. It is true without a limit.
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
