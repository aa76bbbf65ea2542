package generate

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// volumes gives pods claims in every state, disks that they may not share and
// volumes that drivers attach a limited number of, in clusters with volumes
// made beforehand, classes that make them, capacities and limits.
var volumes = feature{node: regionNode, world: storageWorld, alter: alterStorage,
	renode: func(b *builder, n *v1.Node) { regionNode(b, n) }}

// roomRated varies how VolumeBinding rates the room for volumes.
var roomRated = feature{
	config: func(b *builder, p *profile) {
		if b.chance(60) {
			p.args("VolumeBinding", map[string]any{"shape": somePoints(b)})
		}
	},
	world: func(b *builder, w *World) { // one capacity for each class
		seen := map[string]bool{}
		w.Objects = slices.DeleteFunc(w.Objects, func(o metav1.Object) bool {
			c, ok := o.(*storagev1.CSIStorageCapacity)
			twice := ok && seen[c.Name]
			if ok {
				seen[c.Name] = true
			}
			return twice
		})
	},
}

func regionNode(b *builder, n *v1.Node) {
	delete(n.Labels, v1.LabelFailureDomainBetaZone)
	delete(n.Labels, v1.LabelTopologyRegion)
	if b.chance(20) {
		n.Labels[v1.LabelFailureDomainBetaZone] = b.word("a", "b", "c")
	}
	if b.chance(30) {
		n.Labels[v1.LabelTopologyRegion] = b.word("r", "r", "s")
	}
	if b.chance(40) {
		n.Labels["topology.ebs.csi.aws.com/zone"] = b.word("a", "b", "c")
	}
}

const (
	driver         = "csi.example.com"
	capacityDriver = "room.example.com"
	ebsDriver      = "ebs.csi.aws.com"
	ebsPlugin      = "kubernetes.io/aws-ebs"
)

// classes by name: provisioner, and whether their claims wait for a consumer.
var classes = []struct {
	name, provisioner string
	wait              bool
}{
	{"local", "kubernetes.io/no-provisioner", true},
	{"dynamic", driver, true},
	{"zoned", driver, true},
	{"room", capacityDriver, true},
	{"old", ebsPlugin, true},
	{"now", driver, false},
}

func storageWorld(b *builder, w *World) {
	for _, c := range classes {
		if b.chance(93) {
			w.Objects = append(w.Objects, storageClass(b, c.name, c.provisioner, c.wait))
		}
	}
	for _, d := range []string{driver, capacityDriver, ebsDriver} {
		if b.chance(80) {
			w.Objects = append(w.Objects, csiDriver(b, d))
		}
	}
	for i := range b.IntN(4) {
		w.Objects = append(w.Objects, storageCapacity(b, fmt.Sprintf("room-%d", i)))
	}
	for _, n := range w.Nodes {
		if b.chance(85) {
			w.Objects = append(w.Objects, csiNode(b, n.Name))
		}
	}
	for i := range 4 + b.IntN(16) {
		w.Objects = append(w.Objects, freeVolume(b, w, fmt.Sprintf("pv-%02d", i), int64(i)))
	}
	var claims []*v1.PersistentVolumeClaim
	for _, p := range w.Bound {
		claims = b.furnish(w, p, claims)
	}
	for _, p := range w.Pending {
		claims = b.furnish(w, p, claims)
	}
	for i := range b.IntN(4) {
		if v := someObject[*v1.PersistentVolume](b, w); v != nil && len(w.Nodes) > 0 {
			w.Objects = append(w.Objects, attachment(b, fmt.Sprintf("attached-%d", i), w.Nodes[b.IntN(len(w.Nodes))].Name, v))
		}
	}
}

// meta is the metadata of the next version of an object.
func (b *builder) meta(namespace, name string) metav1.ObjectMeta {
	b.clock++
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "." + name), ResourceVersion: fmt.Sprint(b.clock)}
}

func kindOf(version, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

func storageClass(b *builder, name, provisioner string, wait bool) *storagev1.StorageClass {
	mode := storagev1.VolumeBindingImmediate
	if wait {
		mode = storagev1.VolumeBindingWaitForFirstConsumer
	}
	c := &storagev1.StorageClass{TypeMeta: kindOf("storage.k8s.io/v1", "StorageClass"), ObjectMeta: b.meta("", name),
		Provisioner: provisioner, VolumeBindingMode: &mode}
	if name == "zoned" || b.chance(10) {
		c.AllowedTopologies = topologies(b)
	}
	return c
}

func topologies(b *builder) []v1.TopologySelectorTerm {
	var terms []v1.TopologySelectorTerm
	for range b.pick(1, 1, 2) {
		t := v1.TopologySelectorTerm{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{
			{Key: v1.LabelTopologyZone, Values: []string{b.word("a", "b"), b.word("b", "c")}}}}
		if b.chance(20) {
			t.MatchLabelExpressions = append(t.MatchLabelExpressions, v1.TopologySelectorLabelRequirement{Key: "disk", Values: []string{"ssd"}})
		}
		terms = append(terms, t)
	}
	return terms
}

func csiDriver(b *builder, name string) *storagev1.CSIDriver {
	capacity := name == capacityDriver || b.chance(10)
	d := &storagev1.CSIDriver{TypeMeta: kindOf("storage.k8s.io/v1", "CSIDriver"), ObjectMeta: b.meta("", name),
		Spec: storagev1.CSIDriverSpec{StorageCapacity: &capacity}}
	if b.mix.on("VolumeLimitScaling") && name == driver { // of several that are missing v1.37 names any
		insists := b.chance(80)
		d.Spec.PreventPodSchedulingIfMissing = &insists
	}
	return d
}

func storageCapacity(b *builder, name string) *storagev1.CSIStorageCapacity {
	c := &storagev1.CSIStorageCapacity{TypeMeta: kindOf("storage.k8s.io/v1", "CSIStorageCapacity"), ObjectMeta: b.meta("default", name),
		StorageClassName: b.word("room", "room", "dynamic")}
	switch b.IntN(8) {
	case 0:
	case 1:
		c.NodeTopology = &metav1.LabelSelector{}
	default:
		c.NodeTopology = &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelTopologyZone: b.word("a", "b", "c")}}
	}
	if b.chance(90) {
		c.Capacity = gigabytes(int64(b.pick(0, 1, 3, 8, 30)))
	}
	if b.chance(30) {
		c.MaximumVolumeSize = gigabytes(int64(b.pick(1, 2, 5)))
	}
	if b.mix.on("StorageCapacityScoring") {
		// Of several that reach a node v1.37 takes any, and it dies where only the
		// largest volume is known.
		c.ObjectMeta = b.meta("default", "room-of-"+c.StorageClassName)
		if c.Capacity == nil {
			c.Capacity = gigabytes(8)
		}
	}
	return c
}

func gigabytes(n int64) *resource.Quantity { return resource.NewQuantity(n<<30, resource.BinarySI) }

func csiNode(b *builder, name string) *storagev1.CSINode {
	n := &storagev1.CSINode{TypeMeta: kindOf("storage.k8s.io/v1", "CSINode"), ObjectMeta: b.meta("", name)}
	for _, d := range []string{driver, ebsDriver} {
		if b.chance(25) {
			continue
		}
		on := storagev1.CSINodeDriver{Name: d, NodeID: name}
		if b.chance(80) {
			limit := int32(b.pick(0, 1, 2, 2, 3, 5))
			on.Allocatable = &storagev1.VolumeNodeResources{Count: &limit}
		}
		n.Spec.Drivers = append(n.Spec.Drivers, on)
	}
	if b.chance(50) {
		n.Annotations = map[string]string{v1.MigratedPluginsAnnotationKey: b.word(ebsPlugin, "kubernetes.io/gce-pd,"+ebsPlugin, "kubernetes.io/cinder")}
	}
	return n
}

// freeVolume is a volume made beforehand. No two are of one size: among equals
// kube-scheduler takes any.
func freeVolume(b *builder, w *World, name string, size int64) *v1.PersistentVolume {
	v := &v1.PersistentVolume{TypeMeta: kindOf("v1", "PersistentVolume"), ObjectMeta: b.meta("", name),
		Spec: v1.PersistentVolumeSpec{
			Capacity:         v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity((1+size)<<29, resource.BinarySI)},
			AccessModes:      []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			StorageClassName: b.word("local", "local", "local", "dynamic", "zoned", "now", "old", ""),
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable},
	}
	switch b.IntN(6) {
	case 0, 1:
		v.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: b.word(driver, driver, ebsDriver), VolumeHandle: b.word(name, name, "same")}
	default:
		v.Spec.Local = &v1.LocalVolumeSource{Path: "/mnt"}
		switch n := b.IntN(10); {
		case n < 5 && len(w.Nodes) > 0:
			v.Spec.NodeAffinity = volumeAffinity(v1.LabelHostname, w.Nodes[b.IntN(len(w.Nodes))].Name, w.Nodes[b.IntN(len(w.Nodes))].Name)
		case n < 8:
			v.Spec.NodeAffinity = volumeAffinity(v1.LabelTopologyZone, b.word("a", "b", "c"))
		case n < 9:
			v.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term(b), term(b)}}}
		}
	}
	b.oddVolume(v)
	return v
}

func (b *builder) oddVolume(v *v1.PersistentVolume) {
	if b.chance(30) {
		v.Labels = map[string]string{"disk": b.word("ssd", "hdd")}
	}
	if b.chance(25) {
		if v.Labels == nil {
			v.Labels = map[string]string{}
		}
		v.Labels[b.word(v1.LabelTopologyZone, v1.LabelFailureDomainBetaZone, v1.LabelTopologyRegion)] = b.word("a", "b", "a__b", "r", "a__")
	}
	switch b.IntN(25) {
	case 0:
		v.Status.Phase = v1.VolumeReleased
	case 1:
		block := v1.PersistentVolumeBlock
		v.Spec.VolumeMode = &block
	case 2:
		gold := "gold"
		v.Spec.VolumeAttributesClassName = &gold
	case 3:
		v.Spec.AccessModes = append(v.Spec.AccessModes, v1.ReadWriteOncePod, v1.ReadWriteMany)
	case 4:
		now := metav1.NewTime(epoch)
		v.DeletionTimestamp, v.Finalizers = &now, []string{"kubernetes.io/pv-protection"}
	case 5:
		v.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: fmt.Sprintf("c-%02d", b.IntN(30))}
	}
}

func volumeAffinity(key string, values ...string) *v1.VolumeNodeAffinity {
	return &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn, Values: values}}}}}}
}

func attachment(b *builder, name, node string, v *v1.PersistentVolume) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{TypeMeta: kindOf("storage.k8s.io/v1", "VolumeAttachment"), ObjectMeta: b.meta("", name),
		Spec: storagev1.VolumeAttachmentSpec{Attacher: b.word(driver, ebsDriver), NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &v.Name}}}
}

// someObject picks an object of a type, nil if there is none.
func someObject[T metav1.Object](b *builder, w *World) (found T) {
	n := 0
	for _, o := range w.Objects {
		if o, ok := o.(T); ok {
			if n++; b.IntN(n) == 0 {
				found = o
			}
		}
	}
	return found
}
