package nodevolumelimits

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// sign tells apart what drivers attach for the pod. Of a volume that is the pod's
// own the driver is enough: the volume is on no node, so that it counts once more
// wherever the pod goes. Of others it matters which they are.
func sign(key []byte, t *table.Table, p *object.Pod, revision uint64) []byte {
	volumes, known := volumesOf(t, p)
	if !known {
		return fmt.Appendf(key, "%s#%d", p.VolumesKey(), revision)
	}
	key = fmt.Appendf(key, "bound#%d", revision)
	for _, v := range volumes {
		key = v.appendKey(key, v.plain)
		key = v.appendKey(key, v.source)
	}
	return key
}

// volume is one that the pod has wherever it goes.
type volume struct {
	// plain is the volume on nodes where no driver stands in for an in-tree plugin,
	// source the volume on all others.
	plain, source object.VolumeSource
	own           bool // no other pod has it
}

func (v *volume) appendKey(key []byte, s object.VolumeSource) []byte {
	if v.own {
		return fmt.Appendf(key, " %q %t", s.Driver, s.Attachable())
	}
	return fmt.Appendf(key, " %q=%q", s.Driver, s.Handle)
}

// volumesOf lists the volumes that drivers attach for the pod, each once; known is
// false where a claim has no volume yet.
func volumesOf(t *table.Table, p *object.Pod) (volumes []volume, known bool) {
	seen := map[*object.PersistentVolume]bool{}
	for i := range p.Volumes {
		v := &p.Volumes[i]
		if !v.Claimed {
			if v.Migrated != nil {
				volumes = append(volumes, volume{source: v.Migrated.Source})
			}
			continue
		}
		c := claim(t, p, v)
		if v.Ephemeral || c == nil || c.VolumeName == "" {
			return nil, false
		}
		pv := table.Lookup[*object.PersistentVolume](t, object.PersistentVolumes, "", c.VolumeName)
		switch {
		case pv == nil:
			return nil, false
		case !seen[pv]:
			seen[pv] = true
			volumes = append(volumes, volumeOf(pv, c.Owner == "" && t.OwnVolume(c, pv)))
		}
	}
	return volumes, true
}

func volumeOf(pv *object.PersistentVolume, own bool) volume {
	v := volume{plain: pv.Source, source: pv.Source, own: own}
	if pv.Migrated != nil {
		v.source = pv.Migrated.Source
	}
	return v
}

// addAll is collect for volumes that are known. The handle of an own one is one that
// no volume has.
func addAll(volumes []volume, into map[object.VolumeSource]bool) {
	for i, v := range volumes {
		if !v.source.Attachable() {
			continue
		}
		if v.own {
			v.source.Handle = fmt.Sprint("\x01", i)
		}
		into[v.source] = true
	}
}
