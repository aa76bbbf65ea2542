package decode

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// Object decodes an object of one of object's kinds; nil for any other.
func Object(o any) object.Object {
	if k := Of(o); k != nil && k.HasObject() {
		return k.object(o)
	}
	return nil
}

// Empty returns a new API object of a kind, for a decoder to fill.
func Empty(kind object.Kind) metav1.Object { return Named(kind.String()).New() }

// A namespace of an object that is in none is left out: names tell those apart.
func meta(kind object.Kind, m *metav1.ObjectMeta) object.Meta {
	namespace := m.Namespace
	if !kind.Namespaced() {
		namespace = ""
	}
	return object.Meta{Kind: kind, Namespace: namespace, Name: m.Name, UID: m.UID, Version: m.ResourceVersion}
}
