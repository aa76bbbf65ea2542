package decode

import (
	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/plugins/names"
)

// unbuilt names the in-tree plugins that Berth does not have yet and whose
// hard constraints the pod uses, in the order of the default profile. Soft
// constraints (preferred terms) are not among them.
func unbuilt(spec *v1.PodSpec) []string {
	var used []string
	use := func(name string, by bool) {
		if by {
			used = append(used, name)
		}
	}
	disks, limited, claims := volumes(spec)
	use(names.VolumeRestrictions, disks || claims)
	use(names.NodeVolumeLimits, limited || claims)
	use(names.VolumeBinding, claims)
	use(names.VolumeZone, claims)
	return used
}

// volumes tells which volumes the pod has: disks that VolumeRestrictions keeps
// apart, inline volumes that NodeVolumeLimits counts, claims.
func volumes(spec *v1.PodSpec) (disks, limited, claims bool) {
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		disks = disks || v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.RBD != nil || v.ISCSI != nil
		limited = limited || v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.Cinder != nil ||
			v.AzureDisk != nil || v.AzureFile != nil || v.VsphereVolume != nil || v.PortworxVolume != nil
		claims = claims || v.PersistentVolumeClaim != nil || v.Ephemeral != nil
	}
	return disks, limited, claims
}
