package nodevolumelimits

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/index/volumes"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// sign appends what drivers attach for the pod. For a volume that counts once more on
// every node, the driver suffices; other volumes are identified.
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

// volumesOnMost is on how many nodes pods may have a volume that is looked for there.
const volumesOnMost = 16

// countsAnywhere reports whether the verdict on each node is the same as if no pod there
// used the volume. That is so if no pod does, nor one that may be tried there, or if the
// node can attach all volumes of the pod anyway.
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

// hasRoom reports whether the driver could attach all volumes of the pod to the node,
// besides those of pods that may be tried there.
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
