package noderesources

import "testing"

// A reason that names a resource gives the resource back. The other reason names none.
func TestReasonNamesItsResource(t *testing.T) {
	for _, name := range []string{"cpu", "example.com/gpu", "hugepages-2Mi"} {
		if got, ok := InsufficientResource("Insufficient " + name); !ok || string(got) != name || InsufficientReason(got) != "Insufficient "+name {
			t.Errorf("%s: got %q, %v", name, got, ok)
		}
	}
	if name, ok := InsufficientResource("Too many pods"); ok {
		t.Errorf("too many pods: got %q", name)
	}
}
