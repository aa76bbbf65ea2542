package conform

import (
	"encoding/json"
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/sim/generate"
)

// store is API objects as they are now, by kind and name (objectKey).
type store map[string]metav1.Object

func objectKey(o metav1.Object) string {
	return fmt.Sprintf("%s %s/%s", reflect.TypeOf(o).Elem().Name(), o.GetNamespace(), o.GetName())
}

// write has Berth's writes, and what controllers do about them, happen on both
// sides. Other waiting pods are not followed any further: they would have been
// requeued for nothing.
func (r *run) write(step *Step, writes []framework.Write) *Disagreement {
	if len(writes) > 0 {
		r.waiting = nil
	}
	for i := range writes {
		if writes[i].Delete {
			if err := r.remove(&writes[i].Object); err != nil {
				return r.disagree(fmt.Sprintf("write %s: %v", writes[i].Describe(), err))
			}
			continue
		}
		changed, err := r.objects.follow(&writes[i])
		if err != nil {
			return r.disagree(fmt.Sprintf("write %s: %v", writes[i].Describe(), err))
		}
		step.Written = append(step.Written, changed...)
		for _, o := range changed {
			r.objects[objectKey(o)] = o
			for _, side := range []Side{r.want, r.got} {
				if _, err := side.Apply(generate.Change{Verb: generate.Update, Other: o}, nil); err != nil {
					return r.disagree(fmt.Sprintf("write %s: %v", objectKey(o), err))
				}
			}
		}
	}
	return nil
}

// remove deletes the object on both sides.
func (r *run) remove(m *object.Meta) error {
	old := r.objects.find(m)
	if old == nil {
		return fmt.Errorf("it does not exist")
	}
	delete(r.objects, objectKey(old))
	for _, side := range []Side{r.want, r.got} {
		if _, err := side.Apply(generate.Change{Verb: generate.Delete, Other: old}, nil); err != nil {
			return err
		}
	}
	return nil
}

func (all store) find(m *object.Meta) metav1.Object {
	return all[fmt.Sprintf("%s %s/%s", m.Kind, m.Namespace, m.Name)]
}

// follow makes or patches the object and does the volume controller's part: the
// claim is bound to the volume, which is made if need be. What is written into
// a pod's status changes nothing.
func (all store) follow(w *framework.Write) ([]metav1.Object, error) {
	old := all.find(&w.Object)
	switch {
	case w.Object.Kind == object.Pods, w.Delete:
		return nil, nil
	case w.Create != nil && old != nil:
		return nil, fmt.Errorf("it exists already")
	case w.Create != nil:
		made := w.Create.DeepCopyObject().(metav1.Object)
		made.SetUID(types.UID("made " + made.GetName()))
		return []metav1.Object{made}, nil
	case old == nil || w.Object.UID != "" && (old.GetUID() != w.Object.UID || old.GetResourceVersion() != w.Object.Version):
		return nil, fmt.Errorf("it does not exist in version %s", w.Object.Version)
	}
	raw, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal(w.Patch)
	if err != nil {
		return nil, err
	}
	if c, ok := old.(*resourcev1.ResourceClaim); ok {
		return patchClaim(c, raw, patch, w.Strategic)
	}
	if raw, err = jsonpatch.MergePatch(raw, patch); err != nil {
		return nil, err
	}
	if w.Object.Kind == object.PersistentVolumes {
		v := &v1.PersistentVolume{}
		if err := json.Unmarshal(raw, v); err != nil {
			return nil, err
		}
		ref := v.Spec.ClaimRef
		c, _ := all[fmt.Sprintf("PersistentVolumeClaim %s/%s", ref.Namespace, ref.Name)].(*v1.PersistentVolumeClaim)
		if c == nil || c.UID != ref.UID || ref.Kind != "PersistentVolumeClaim" {
			return nil, fmt.Errorf("it refers to a claim that does not exist: %+v", ref)
		}
		return join(v, c.DeepCopy()), nil
	}
	c := &v1.PersistentVolumeClaim{}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, err
	}
	v := &v1.PersistentVolume{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(c.UID), UID: types.UID("pv of " + string(c.UID)), ResourceVersion: "1"},
		Spec: v1.PersistentVolumeSpec{Capacity: c.Spec.Resources.Requests, AccessModes: c.Spec.AccessModes, StorageClassName: *c.Spec.StorageClassName,
			VolumeMode: c.Spec.VolumeMode, VolumeAttributesClassName: c.Spec.VolumeAttributesClassName,
			ClaimRef:               &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: string(c.UID)}}}}
	return join(v, c), nil
}

func join(v *v1.PersistentVolume, c *v1.PersistentVolumeClaim) []metav1.Object {
	v.Status.Phase, c.Status.Phase = v1.VolumeBound, v1.ClaimBound
	c.Spec.VolumeName = v.Name
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
	v.ResourceVersion += "0"
	c.ResourceVersion += "0"
	return []metav1.Object{v, c}
}
