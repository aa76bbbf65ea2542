package manifest

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// keeps tells whether the object is to be kept as it was written.
func (s *Set) keeps(o metav1.Object) bool {
	if !s.KeepWritten {
		return false
	}
	switch o := o.(type) {
	case *v1.Pod:
		return o.Spec.NodeName == ""
	case *v1.PersistentVolumeClaim, *v1.PersistentVolume, *storagev1.StorageClass, *resourcev1.ResourceClaim, *resourcev1.DeviceClass:
		return true
	}
	return false
}

// Written is the object as it was written, in JSON and without the API server's
// defaults; nil where it was not kept.
func (s *Set) Written(kind, namespace, name string) []byte {
	return s.written[title(strings.ToLower(kind), namespace, name)]
}

// AdmitPod gives another version of a pod of the set defaults, a UID and a priority, and
// checks it, like one of the set. Quotas are not asked.
func (s *Set) AdmitPod(p *v1.Pod) error {
	if err := admit(p, "pod"); err != nil {
		return err
	}
	if p.UID == "" {
		p.UID = types.UID(title("pod", p.Namespace, p.Name))
	}
	key := title("pod", p.Namespace, p.Name)
	if err := s.classes.Resolve(p); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if !s.fresh[key] {
		return nil
	}
	if refusal := s.rules.Change(p, recheck); refusal != nil {
		return fmt.Errorf("%s: %w", key, refusal)
	}
	return nil
}

// HasTemplate reports whether the set has the ResourceClaimTemplate, or does not know all
// of them.
func (s *Set) HasTemplate(namespace, name string) bool {
	return !s.Knows.Templates || s.templates[namespace+"/"+name] != nil
}

// PriorityClasses are those of the set, by name.
func (s *Set) PriorityClasses() []*schedulingv1.PriorityClass { return s.classes.Sorted() }

// Check gives another version of an object of the set defaults, and returns what is wrong
// with it.
func Check(o metav1.Object, kind string) error { return admit(o, strings.ToLower(kind)) }
