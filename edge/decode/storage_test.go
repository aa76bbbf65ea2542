
// An object that is in no namespace has none, whatever it says: two of one name are one.
func TestNamespaceOfClusterScopedObject(t *testing.T) {
	v := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Namespace: "nowhere", Name: "v"}}
	if key := Object(v).Head().Key(); key != "v" {
		t.Errorf("key %q, want v", key)
	}
}
