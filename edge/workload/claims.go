package workload

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"
)

// VolumeClaims returns the claims of the pod's volumes that controllers make:
// of the StatefulSet w (nil for none) those of its templates, and those of
// generic ephemeral volumes, which the pod owns.
func VolumeClaims(w *Workload, p *v1.Pod) []*v1.PersistentVolumeClaim {
	var claims []*v1.PersistentVolumeClaim
	if w != nil {
		for i := range w.claims {
			c := w.claims[i].DeepCopy()
			c.Namespace, c.Name = p.Namespace, c.Name+"-"+p.Name
			claims = append(claims, c)
		}
	}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if v.Ephemeral == nil || v.Ephemeral.VolumeClaimTemplate == nil {
			continue
		}
		t := v.Ephemeral.VolumeClaimTemplate.DeepCopy()
		c := &v1.PersistentVolumeClaim{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
		c.Namespace, c.Name = p.Namespace, ephemeral.VolumeClaimName(p, v)
		c.OwnerReferences = []metav1.OwnerReference{controllerRef(v1.SchemeGroupVersion.WithKind("Pod"), p.Name, p.UID)}
		claims = append(claims, c)
	}
	return claims
}

// DeviceClaims returns the claims that are made from the templates that the pod
// names, and notes them in the pod's status. A claim that the status names
// already, and one without template, is left out.
func DeviceClaims(p *v1.Pod, template func(name string) *resourcev1.ResourceClaimTemplate) []*resourcev1.ResourceClaim {
	var claims []*resourcev1.ResourceClaim
	for i := range p.Spec.ResourceClaims {
		r := &p.Spec.ResourceClaims[i]
		if r.ResourceClaimTemplateName == nil || slices.ContainsFunc(p.Status.ResourceClaimStatuses, func(s v1.PodResourceClaimStatus) bool { return s.Name == r.Name }) {
			continue
		}
		t := template(*r.ResourceClaimTemplateName)
		if t == nil {
			continue
		}
		t = t.DeepCopy()
		c := &resourcev1.ResourceClaim{ObjectMeta: t.Spec.ObjectMeta, Spec: t.Spec.Spec}
		c.Namespace, c.Name = p.Namespace, p.Name+"-"+r.Name
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, resourcev1.PodResourceClaimAnnotation, r.Name)
		c.OwnerReferences = []metav1.OwnerReference{controllerRef(v1.SchemeGroupVersion.WithKind("Pod"), p.Name, p.UID)}
		p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, v1.PodResourceClaimStatus{Name: r.Name, ResourceClaimName: &c.Name})
		claims = append(claims, c)
	}
	return claims
}
