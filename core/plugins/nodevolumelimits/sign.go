package nodevolumelimits

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// sign tells apart what drivers attach for the pod. Of a volume that counts once
// more wherever the pod goes the driver is enough. Of others it matters which they
// are.
func sign(key []byte, t *table.Table, p *object.Pod, plain bool) []byte {
	w := podVolumesOf(t, p)
	if w.missing != "" {
		return fmt.Appendf(key, "!%q%q", p.Namespace, w.missing)
	}
	for _, v := range w.volumes {
		if w.countsAnywhere(t, v) {
			key = fmt.Appendf(key, " %q", v.Driver)
		} else {
			key = fmt.Appendf(key, " %q=%q", v.Driver, v.Handle)
		}
	}
	if plain {
		key = fmt.Appendf(key, "%q#%d", w.plainDrivers, t.ObjectRevision(object.CSIDrivers))
	}
	return key
}

// volumesOnMost is on how many nodes pods may have a volume that is looked for there.
const volumesOnMost = 16

// countsAnywhere reports whether the verdict on each node is the same as if no pod
// there had the volume: either none has it, nor any pod that may be tried there, or
// there is room for all volumes of the pod in any case.
func (w *podVolumes) countsAnywhere(t *table.Table, v object.VolumeSource) bool {
	if t.TrackedVolume(v) {
		return false
	}
	anywhere, rows := true, 0
	t.RowsWithVolume(v, func(r table.Row) bool {
		rows++
		anywhere = rows <= volumesOnMost && w.hasRoom(t, r, v.Driver)
		return anywhere
	})
	return anywhere
}

// hasRoom reports whether the driver attaches all volumes of the pod to the node, were
// none there already, with any pods that may be tried there.
func (w *podVolumes) hasRoom(t *table.Table, r table.Row, driver string) bool {
	c := t.CSINode(r)
	if c == nil {
		return true
	}
	for i := range c.Drivers {
		d := &c.Drivers[i]
		if d.Name == driver && d.Limited && t.AttachedVolumes(r, driver)+t.TrackedVolumes()+w.of(driver) > int(d.Limit) {
			return false
		}
	}
	return true
}
