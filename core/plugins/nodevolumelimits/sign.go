package nodevolumelimits

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// sign tells apart what the pod's volumes are, where others may have them, too. Of
// volumes that are the pod's own the drivers are enough: none of them is on any
// node, so that each counts once more wherever the pod goes.
func sign(key []byte, t *table.Table, p *object.Pod, revision uint64) []byte {
	own := ownVolumes(t, p)
	if own == nil {
		return fmt.Appendf(key, "%s#%d", p.VolumesKey(), revision)
	}
	key = fmt.Appendf(key, "own#%d", revision)
	for _, v := range own {
		key = fmt.Appendf(key, " %q %t", v.Source.Driver, v.Source.Attachable())
		if m := v.Migrated; m != nil {
			key = fmt.Appendf(key, " %q %t", m.Source.Driver, m.Source.Attachable())
		}
	}
	return key
}

// ownVolumes are the volumes of the pod's claims, where each claim is bound to a
// volume that no other pod has; nil where it is not so. Volumes without claims that
// no driver attaches do not count.
func ownVolumes(t *table.Table, p *object.Pod) []*object.PersistentVolume {
	var own []*object.PersistentVolume
	for i := range p.Volumes {
		v := &p.Volumes[i]
		if !v.Claimed && v.Migrated == nil {
			continue
		}
		c := claim(t, p, v)
		if !v.Claimed || v.Ephemeral || c == nil || c.Owner != "" || c.VolumeName == "" {
			return nil
		}
		pv := table.Lookup[*object.PersistentVolume](t, object.PersistentVolumes, "", c.VolumeName)
		if pv == nil || !t.OwnVolume(c, pv) {
			return nil
		}
		for _, other := range own {
			if other == pv {
				return nil
			}
		}
		own = append(own, pv)
	}
	return own
}

// driverOf is the volume as a driver has it.
func driverOf(v *object.PersistentVolume) object.VolumeSource {
	if v.Migrated != nil {
		return v.Migrated.Source
	}
	return v.Source
}
