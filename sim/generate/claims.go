package generate

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// furnish gives a pod volumes, and adds to the world what is behind them.
func (b *builder) furnish(w *World, p *v1.Pod, claims []*v1.PersistentVolumeClaim) []*v1.PersistentVolumeClaim {
	for i := range b.pick(0, 1, 1, 1, 2, 2, 3) {
		v := v1.Volume{Name: fmt.Sprintf("v%d", i)}
		switch n := b.IntN(20); {
		case n < 3:
			v.VolumeSource = inline(b)
		case n < 4:
			v.CSI = &v1.CSIVolumeSource{Driver: driver}
		case n < 6:
			v.Ephemeral = &v1.EphemeralVolumeSource{}
			if c := b.claim(w, p.Namespace, p.Name+"-"+v.Name, p); b.chance(85) {
				yes := true
				c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: &yes}}
				if p.Spec.NodeName == "" && b.chance(5) {
					c.OwnerReferences[0].UID = "another"
				}
				w.Objects = append(w.Objects, c)
			}
		default:
			c := b.shared(p, claims)
			if c == nil {
				c = b.claim(w, p.Namespace, fmt.Sprintf("c-%02d", len(claims)), p)
				claims = append(claims, c)
				if b.chance(96) {
					w.Objects = append(w.Objects, c)
				}
			}
			if uses(p, c.Name) {
				continue
			}
			v.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name}
		}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
	}
	return claims
}

func uses(p *v1.Pod, claim string) bool {
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim {
			return true
		}
	}
	return false
}

// shared picks a claim that other pods of the namespace use, nil for none.
func (b *builder) shared(p *v1.Pod, claims []*v1.PersistentVolumeClaim) *v1.PersistentVolumeClaim {
	if len(claims) == 0 || !b.chance(25) {
		return nil
	}
	if c := claims[b.IntN(len(claims))]; c.Namespace == p.Namespace {
		return c
	}
	return nil
}

func inline(b *builder) v1.VolumeSource {
	id := b.word("one", "two", "three")
	switch b.IntN(4) {
	case 0:
		return v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: id, ReadOnly: b.chance(50)}}
	case 1:
		return v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-" + id, ReadOnly: b.chance(50)}}
	case 2:
		return v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{IQN: id, ReadOnly: b.chance(50)}}
	}
	return v1.VolumeSource{RBD: &v1.RBDVolumeSource{CephMonitors: []string{b.word("m1", "m2"), b.word("m2", "m3")},
		RBDPool: b.word("p", "q"), RBDImage: id, ReadOnly: b.chance(50)}}
}

// claim is one in any of its states: bound, waiting for its first consumer, or
// a matter of its own. Those of running pods are bound, as a rule.
func (b *builder) claim(w *World, namespace, name string, p *v1.Pod) *v1.PersistentVolumeClaim {
	class := b.word("local", "local", "dynamic", "zoned", "room", "old", "local")
	if b.mix.on("StorageCapacityScoring") && b.chance(40) {
		class = "room"
	}
	c := &v1.PersistentVolumeClaim{TypeMeta: kindOf("v1", "PersistentVolumeClaim"), ObjectMeta: b.meta(namespace, name),
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes:      []v1.PersistentVolumeAccessMode{v1.PersistentVolumeAccessMode(b.word("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"))},
			StorageClassName: &class,
			Resources:        v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: *gigabytes(int64(b.pick(1, 1, 2, 4)))}},
		},
		Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending},
	}
	if b.chance(15) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": b.word("ssd", "hdd")}}
	}
	if p.Spec.NodeName != "" && b.chance(80) || b.chance(35) {
		b.give(w, c)
		return c
	}
	switch b.IntN(22) {
	case 0:
		class = b.word("now", "none", "")
	case 1:
		c.Spec.VolumeName = "pv-00"
	case 2:
		c.Spec.VolumeName, c.Annotations = "gone", map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
		if b.chance(30) {
			c.Status.Phase = v1.ClaimLost
		}
	case 3:
		now := metav1.NewTime(epoch)
		c.DeletionTimestamp, c.Finalizers = &now, []string{"kubernetes.io/pvc-protection"}
	case 4:
		c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": fmt.Sprintf("node-%02d", b.IntN(4))}
	case 5:
		c.Spec.Resources.Requests = nil
	case 6:
		gold := "gold"
		c.Spec.VolumeAttributesClassName = &gold
	}
	return c
}

// give binds the claim to a volume of its own.
func (b *builder) give(w *World, c *v1.PersistentVolumeClaim) {
	v := freeVolume(b, w, "of-"+c.Namespace+"-"+c.Name, 4)
	v.Status.Phase, v.DeletionTimestamp, v.Finalizers = v1.VolumeBound, nil, nil
	v.Spec.StorageClassName = *c.Spec.StorageClassName
	v.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID}
	if len(w.Nodes) > 3 && b.chance(60) {
		v.Spec.NodeAffinity = nil
	}
	if b.chance(25) {
		// A driver may serve it, and then other labels say where it is. Of a
		// volume that is still free that is found out too late, in kube-scheduler too.
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{
			AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-" + c.Name}}
		if v.Spec.NodeAffinity = nil; b.chance(60) {
			v.Spec.NodeAffinity = volumeAffinity(v1.LabelFailureDomainBetaZone, b.word("a", "b"))
		}
	}
	c.Spec.VolumeName = v.Name
	c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	c.Status.Phase = v1.ClaimBound
	w.Objects = append(w.Objects, v)
}

// alterStorage changes, adds or takes away an object behind the pods' volumes.
func alterStorage(b *builder, w *World) Change {
	switch b.IntN(9) {
	case 0:
		if c := someObject[*storagev1.CSINode](b, w); c != nil {
			return Change{Verb: Update, Other: csiNode(b, c.Name)}
		}
	case 1:
		return Change{Verb: Add, Other: storageCapacity(b, fmt.Sprintf("room-%d", b.IntN(6)))}
	case 2:
		if v := someObject[*storagev1.VolumeAttachment](b, w); v != nil {
			return Change{Verb: Delete, Other: v}
		}
	case 3:
		c := classes[b.IntN(len(classes))]
		return Change{Verb: Update, Other: storageClass(b, c.name, c.provisioner, c.wait)}
	case 4:
		return Change{Verb: Update, Other: csiDriver(b, b.word(driver, capacityDriver))}
	case 5, 6:
		return Change{Verb: Add, Other: freeVolume(b, w, fmt.Sprintf("late-%d", b.clock), int64(20+b.clock%1000))}
	case 7:
		if len(b.nodes) > 0 {
			return Change{Verb: Add, Other: csiNode(b, b.nodes[b.IntN(len(b.nodes))].Name)}
		}
	default:
		if c := b.missingClaim(w); c != nil {
			return Change{Verb: Add, Other: c}
		}
	}
	return Change{}
}

// missingClaim is a claim that a pod uses and that is not there.
func (b *builder) missingClaim(w *World) *v1.PersistentVolumeClaim {
	there := map[string]bool{}
	for _, o := range w.Objects {
		if c, ok := o.(*v1.PersistentVolumeClaim); ok {
			there[c.Namespace+"/"+c.Name] = true
		}
	}
	for _, p := range w.Pending {
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim != nil && !there[p.Namespace+"/"+v.PersistentVolumeClaim.ClaimName] {
				scratch := World{Nodes: w.Nodes}
				c := b.claim(&scratch, p.Namespace, v.PersistentVolumeClaim.ClaimName, p)
				if len(scratch.Objects) == 0 { // it needs nothing else
					return c
				}
			}
		}
	}
	return nil
}
