package nodevolumelimits

import (
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// collect adds the volumes of the pod that CSI drivers attach, if wanted with
// those in-tree volumes that are a driver's in truth. What cannot be found out
// of a volume leaves it out, as in v1.36.
func collect(t *table.Table, p *object.Pod, migrated bool, into map[object.VolumeSource]bool) {
	for i := range p.Volumes {
		v := &p.Volumes[i]
		var source object.VolumeSource
		if v.Claimed {
			if c := claim(t, p, v); c != nil && (!v.Ephemeral || c.Owner == p.UID) {
				source = claimed(t, c, migrated)
			}
		} else if v.Migrated != nil && migrated {
			source = v.Migrated.Source
		}
		if source.Driver != "" && source.Handle != "" {
			into[source] = true
		}
	}
}

// claimed is the volume that the claim has, or will be given.
func claimed(t *table.Table, c *object.PersistentVolumeClaim, migrated bool) object.VolumeSource {
	v := table.Lookup[*object.PersistentVolume](t, object.PersistentVolumes, "", c.VolumeName)
	switch {
	case c.VolumeName == "" || v == nil:
		return volumeToProvision(t, c, migrated)
	case v.Migrated != nil && migrated:
		return v.Migrated.Source
	}
	return v.Source
}

// volumeToProvision is the volume that the claim's class will give it. Its handle, which
// no driver has chosen yet, is like no other.
func volumeToProvision(t *table.Table, c *object.PersistentVolumeClaim, migrated bool) object.VolumeSource {
	class := table.Lookup[*object.StorageClass](t, object.StorageClasses, "", c.Class)
	if c.Class == "" || class == nil {
		return object.VolumeSource{}
	}
	driver := class.Provisioner
	if class.MigratedTo != "" {
		driver = class.MigratedTo
		if !migrated {
			return object.VolumeSource{}
		}
	}
	return object.VolumeSource{Driver: driver, Handle: "\x00" + c.Key()}
}
