package manifest

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
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
	case *v1.PersistentVolumeClaim:
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
// checks it, like one of the set.
func (s *Set) AdmitPod(p *v1.Pod) error {
	if err := admit(p, "pod"); err != nil {
		return err
	}
	if p.UID == "" {
		p.UID = types.UID(title("pod", p.Namespace, p.Name))
	}
	if err := s.classes.Resolve(p); err != nil {
		return fmt.Errorf("pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

// PriorityClasses are those of the set, by name.
func (s *Set) PriorityClasses() []*schedulingv1.PriorityClass { return s.classes.Sorted() }

// CheckNode is what is wrong with another version of a node of the set.
func CheckNode(n *v1.Node) error { return admit(n, "node") }
