package decode

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/object"
)

// podVolumes lists the pod's volumes that the scheduler has to know of. Most
// pods have none.
func podVolumes(p *v1.Pod) []object.Volume {
	var volumes []object.Volume
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			volumes = append(volumes, object.Volume{Claimed: true, Claim: v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil:
			volumes = append(volumes, object.Volume{Claimed: true, Ephemeral: true, Claim: ephemeral.VolumeClaimName(p, v)})
		case v.CSI != nil:
			volumes = append(volumes, object.Volume{Driver: v.CSI.Driver})
		default:
			if d, m := disk(v), migratedInline(v, p.Namespace); d != nil || m != nil {
				volumes = append(volumes, object.Volume{Disk: d, Migrated: m})
			}
		}
	}
	return volumes
}

func disk(v *v1.Volume) *object.Disk {
	switch {
	case v.GCEPersistentDisk != nil:
		return &object.Disk{Kind: object.GCEPersistentDisk, Name: v.GCEPersistentDisk.PDName, ReadOnly: v.GCEPersistentDisk.ReadOnly}
	case v.AWSElasticBlockStore != nil:
		return &object.Disk{Kind: object.AWSElasticBlockStore, Name: v.AWSElasticBlockStore.VolumeID}
	case v.ISCSI != nil:
		return &object.Disk{Kind: object.ISCSI, Name: v.ISCSI.IQN, ReadOnly: v.ISCSI.ReadOnly}
	case v.RBD != nil:
		return &object.Disk{Kind: object.RBD, Name: v.RBD.RBDImage, Pool: v.RBD.RBDPool, Monitors: v.RBD.CephMonitors, ReadOnly: v.RBD.ReadOnly}
	}
	return nil
}

// translated is the volume as a CSI driver's. The translator panics where a field is
// not set that an API server sets by default.
func translated(v *v1.Volume, namespace string) (pv *v1.PersistentVolume, err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("volume %s cannot be translated: %v", v.Name, why)
		}
	}()
	return translator.TranslateInTreeInlineVolumeToCSI(klog.Background(), v, namespace)
}

// migratedInline is the volume as the CSI driver's that may serve it.
func migratedInline(v *v1.Volume, namespace string) *object.MigratedVolume {
	plugin, err := translator.GetInTreePluginNameFromSpec(nil, v)
	if err != nil || !replaced[plugin] {
		return nil
	}
	m := &object.MigratedVolume{Plugin: plugin}
	translated, err := translated(v, namespace)
	if err != nil || translated == nil {
		m.Error = err
		return m
	}
	m.Source = volumeSource(translated)
	return m
}
