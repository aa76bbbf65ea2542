package object

import (
	"testing"
	"unsafe"
)

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

// The allocator has room for objects of 768 bytes, and then of 896: a pod that is a byte
// larger than the former takes an eighth of a kilobyte more.
func TestPodFitsItsSizeClass(t *testing.T) {
	if size := unsafe.Sizeof(Pod{}); size > 768 {
		t.Errorf("a pod takes %d bytes, more than 768", size)
	}
}
