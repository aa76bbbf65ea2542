package object

import "testing"

// Every kind has a name of its own, and the name finds the kind.
func TestKindsHaveNames(t *testing.T) {
	for k := range Kinds {
		if back, ok := KindOf(k.String()); k.String() == "" || !ok || back != k {
			t.Errorf("kind %d is called %q, which is kind %d (%v)", k, k, back, ok)
		}
	}
	if _, ok := KindOf("Pod"); ok {
		t.Error("a pod is no object of a kind")
	}
}
