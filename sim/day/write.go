package day

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// write carries the writes out, and does the part of the volume controller: what the
// watch will show waits for Deliver. Whatever is not there, or not as the write has
// it, stays as it is.
func (c *Cluster) write(writes []framework.Write) {
	for i := range writes {
		w := &writes[i]
		old := c.others[keyOf(&w.Object)]
		switch {
		case w.Object.Kind == object.Pods:
		case w.Delete && old != nil:
			delete(c.others, keyOf(&w.Object))
			c.coming = append(c.coming, machine.ObjectGone{Kind: w.Object.Kind, Namespace: w.Object.Namespace, Name: w.Object.Name})
		case w.Create != nil && old == nil:
			made := w.Create.DeepCopyObject().(metav1.Object)
			made.SetUID(types.UID("made " + made.GetName()))
			c.coming = append(c.coming, c.set(made))
		case old != nil && (w.Object.UID == "" || w.Object.UID == old.GetUID()):
			c.writeOver(old, w)
		}
	}
}

func (c *Cluster) writeOver(old metav1.Object, w *framework.Write) {
	switch old.(type) {
	case *resourcev1.ResourceClaim:
		if claim := (&resourcev1.ResourceClaim{}); patched(old, w, claim) {
			c.coming = append(c.coming, c.set(claim))
		}
	case *v1.PersistentVolume:
		if volume := (&v1.PersistentVolume{}); patched(old, w, volume) {
			c.coming = append(c.coming, c.set(volume))
			c.bindClaim(volume)
		}
	case *v1.PersistentVolumeClaim:
		if claim := (&v1.PersistentVolumeClaim{}); patched(old, w, claim) {
			c.coming = append(c.coming, c.set(claim))
			c.provision(claim)
		}
	}
}

// patched makes into what the write makes of the object.
func patched(old metav1.Object, w *framework.Write, into metav1.Object) bool {
	raw, err := json.Marshal(old)
	if err != nil {
		return false
	}
	patch, err := json.Marshal(w.Patch)
	if err != nil {
		return false
	}
	if w.Strategic {
		raw, err = strategicpatch.StrategicMergePatch(raw, patch, into)
	} else {
		raw, err = jsonpatch.MergePatch(raw, patch)
	}
	return err == nil && json.Unmarshal(raw, into) == nil
}

// provision makes a volume for the claim.
func (c *Cluster) provision(claim *v1.PersistentVolumeClaim) {
	if claim.Spec.VolumeName != "" || claim.Spec.StorageClassName == nil {
		return
	}
	v := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID), UID: types.UID("pv of " + string(claim.UID))}}
	v.Spec = v1.PersistentVolumeSpec{Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes,
		StorageClassName: *claim.Spec.StorageClassName, VolumeMode: claim.Spec.VolumeMode,
		ClaimRef:               &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: string(claim.UID)}}}
	v.Status.Phase = v1.VolumeBound
	c.coming = append(c.coming, c.set(v))
	c.bindClaim(v)
}

// bindClaim binds the claim that the volume is kept for.
func (c *Cluster) bindClaim(v *v1.PersistentVolume) {
	ref := v.Spec.ClaimRef
	if ref == nil {
		return
	}
	claim, _ := c.others[fmt.Sprintf("%s %s/%s", object.PersistentVolumeClaims, ref.Namespace, ref.Name)].(*v1.PersistentVolumeClaim)
	if claim == nil || claim.UID != ref.UID || claim.Spec.VolumeName != "" {
		return
	}
	claim = claim.DeepCopy()
	claim.Spec.VolumeName, claim.Status.Phase = v.Name, v1.ClaimBound
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
	c.coming = append(c.coming, c.set(claim))
}

func keyOf(m *object.Meta) string { return fmt.Sprintf("%s %s/%s", m.Kind, m.Namespace, m.Name) }
