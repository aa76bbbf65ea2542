package decode

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An object that is in no namespace has none, whatever it says: two of one name are one.
func TestNamespaceOfClusterScopedObject(t *testing.T) {
	v := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Namespace: "nowhere", Name: "v"}}
	if m := Object(v).Head(); m.Namespace != "" || m.Name != "v" {
		t.Errorf("namespace %q, name %q", m.Namespace, m.Name)
	}
}
