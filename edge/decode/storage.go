package decode

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storage "k8s.io/component-helpers/storage/volume"
	csitranslation "k8s.io/csi-translation-lib"
	csiplugins "k8s.io/csi-translation-lib/plugins"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// translator turns in-tree volumes into those of the CSI drivers that took the
// plugins' place.
var translator = csitranslation.New()

// replaced are the in-tree plugins whose volumes CSI drivers serve wherever
// they run.
var replaced = map[string]bool{
	csiplugins.AWSEBSInTreePluginName:    true,
	csiplugins.AzureDiskInTreePluginName: true,
	csiplugins.CinderInTreePluginName:    true,
	csiplugins.GCEPDInTreePluginName:     true,
	csiplugins.PortworxVolumePluginName:  true,
}

func claim(c *v1.PersistentVolumeClaim) *object.PersistentVolumeClaim {
	size, sized := c.Spec.Resources.Requests[v1.ResourceStorage]
	decoded := &object.PersistentVolumeClaim{
		Meta:          meta(object.PersistentVolumeClaims, &c.ObjectMeta),
		Class:         storage.GetPersistentVolumeClaimClass(c),
		VolumeName:    c.Spec.VolumeName,
		BindCompleted: metav1.HasAnnotation(c.ObjectMeta, storage.AnnBindCompleted),
		Lost:          c.Status.Phase == v1.ClaimLost,
		Terminating:   c.DeletionTimestamp != nil,
		Sized:         sized,
		Bytes:         resource.Whole(size),
		Modes:         c.Spec.AccessModes,
		VolumeMode:    volumeMode(c.Spec.VolumeMode),
		SelectedNode:  c.Annotations[storage.AnnSelectedNode],
	}
	if c.Spec.VolumeAttributesClassName != nil {
		decoded.Attributes = *c.Spec.VolumeAttributesClassName
	}
	if c.Spec.Selector != nil {
		decoded.Selector, decoded.SelectorError = metav1.LabelSelectorAsSelector(c.Spec.Selector)
	}
	if owner := metav1.GetControllerOfNoCopy(c); owner != nil {
		decoded.Owner = owner.UID
	}
	return decoded
}

func volume(v *v1.PersistentVolume) *object.PersistentVolume {
	decoded := &object.PersistentVolume{
		Meta:         meta(object.PersistentVolumes, &v.ObjectMeta),
		Labels:       v.Labels,
		Class:        storage.GetPersistentVolumeClass(v),
		Available:    v.Status.Phase == v1.VolumeAvailable,
		Terminating:  v.DeletionTimestamp != nil,
		Bytes:        resource.Whole(v.Spec.Capacity[v1.ResourceStorage]),
		Modes:        v.Spec.AccessModes,
		VolumeMode:   volumeMode(v.Spec.VolumeMode),
		ByController: metav1.HasAnnotation(v.ObjectMeta, storage.AnnBoundByController),
		Nodes:        volumeNodes(v),
		Pin:          pin(v),
		Source:       volumeSource(v),
		Migrated:     migrated(v),
	}
	if v.Spec.VolumeAttributesClassName != nil {
		decoded.Attributes = *v.Spec.VolumeAttributesClassName
	}
	if r := v.Spec.ClaimRef; r != nil {
		decoded.Claim = &object.ClaimReference{Namespace: r.Namespace, Name: r.Name, UID: r.UID}
	}
	return decoded
}

func volumeMode(m *v1.PersistentVolumeMode) v1.PersistentVolumeMode {
	if m == nil {
		return v1.PersistentVolumeFilesystem
	}
	return *m
}

func volumeNodes(v *v1.PersistentVolume) *match.NodeSelector {
	if v.Spec.NodeAffinity == nil {
		return nil
	}
	return match.NewNodeSelector(nil, v.Spec.NodeAffinity.Required)
}

// pin is the first label that the only term of the volume's affinity wants to
// be one of some values.
func pin(v *v1.PersistentVolume) *object.LabelPin {
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil || len(v.Spec.NodeAffinity.Required.NodeSelectorTerms) != 1 {
		return nil
	}
	for _, e := range v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions {
		if e.Operator == v1.NodeSelectorOpIn {
			return &object.LabelPin{Key: e.Key, Values: e.Values}
		}
	}
	return nil
}

func volumeSource(v *v1.PersistentVolume) object.VolumeSource {
	if v.Spec.CSI == nil {
		return object.VolumeSource{}
	}
	return object.VolumeSource{Driver: v.Spec.CSI.Driver, Handle: v.Spec.CSI.VolumeHandle}
}

// migrated is the in-tree volume as its CSI driver's; one that cannot be
// translated has no source and no demand on nodes of its own.
func migrated(v *v1.PersistentVolume) *object.MigratedVolume {
	plugin, err := translator.GetInTreePluginNameFromSpec(v, nil)
	if err != nil || !replaced[plugin] {
		return nil
	}
	m := &object.MigratedVolume{Plugin: plugin}
	translated, err := translator.TranslateInTreePVToCSI(klog.Background(), v)
	if err != nil {
		m.Error = err
		return m
	}
	m.Source, m.Nodes = volumeSource(translated), volumeNodes(translated)
	return m
}

func storageClass(c *storagev1.StorageClass) *object.StorageClass {
	mode, driver := c.VolumeBindingMode, ""
	if replaced[c.Provisioner] {
		driver, _ = translator.GetCSINameFromInTreeName(c.Provisioner) // each that was replaced has one
	}
	return &object.StorageClass{
		MigratedTo:           driver,
		Meta:                 meta(object.StorageClasses, &c.ObjectMeta),
		Provisioner:          c.Provisioner,
		HasBindingMode:       mode != nil,
		WaitForFirstConsumer: mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer,
		Topologies:           c.AllowedTopologies,
	}
}

func csiNode(n *storagev1.CSINode) *object.CSINode {
	decoded := &object.CSINode{
		Meta:     meta(object.CSINodes, &n.ObjectMeta),
		Migrated: n.Annotations[v1.MigratedPluginsAnnotationKey],
	}
	for i := range n.Spec.Drivers {
		d := object.CSINodeDriver{Name: n.Spec.Drivers[i].Name, TopologyKeys: n.Spec.Drivers[i].TopologyKeys}
		if a := n.Spec.Drivers[i].Allocatable; a != nil && a.Count != nil {
			d.Limited, d.Limit = true, *a.Count
		}
		decoded.Drivers = append(decoded.Drivers, d)
	}
	return decoded
}

func csiDriver(d *storagev1.CSIDriver) *object.CSIDriver {
	yes := func(b *bool) bool { return b != nil && *b }
	return &object.CSIDriver{
		Meta:             meta(object.CSIDrivers, &d.ObjectMeta),
		StorageCapacity:  yes(d.Spec.StorageCapacity),
		PreventIfMissing: yes(d.Spec.PreventPodSchedulingIfMissing),
	}
}

// storageCapacity: the largest possible volume counts, where it is known, and
// else all the room there is.
func storageCapacity(c *storagev1.CSIStorageCapacity) *object.CSIStorageCapacity {
	decoded := &object.CSIStorageCapacity{
		Meta:  meta(object.CSIStorageCapacities, &c.ObjectMeta),
		Class: c.StorageClassName,
	}
	limit := c.MaximumVolumeSize
	if limit == nil {
		limit = c.Capacity
	}
	if limit != nil {
		decoded.Known, decoded.Bytes = true, resource.Whole(*limit)
	}
	if c.Capacity != nil {
		decoded.Free = resource.Whole(*c.Capacity)
	}
	if c.NodeTopology != nil {
		decoded.Nodes, _ = metav1.LabelSelectorAsSelector(c.NodeTopology) // one that does not parse reaches no node
	}
	return decoded
}

func attachment(a *storagev1.VolumeAttachment) *object.VolumeAttachment {
	decoded := &object.VolumeAttachment{
		Meta:     meta(object.VolumeAttachments, &a.ObjectMeta),
		Attacher: a.Spec.Attacher,
		Node:     a.Spec.NodeName,
	}
	if name := a.Spec.Source.PersistentVolumeName; name != nil {
		decoded.Volume = *name
	}
	return decoded
}
