package lease

import (
	"maps"
	"testing"

	coordinationapi "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func leaseOf(holder string, transitions int32, annotations map[string]string) *coordinationapi.Lease {
	return &coordinationapi.Lease{
		ObjectMeta: metav1.ObjectMeta{Annotations: maps.Clone(annotations)},
		Spec:       coordinationapi.LeaseSpec{HolderIdentity: &holder, LeaseTransitions: &transitions},
	}
}

// What a leader says when it gives the lease up reaches who has seen it lead, and
// nobody else; nothing is said while the lease is held.
func TestHandover(t *testing.T) {
	shown := map[string]string{"pods": "17"}
	leader := &handovers{leaving: shown}
	held := leaseOf("a", 3, map[string]string{handoverAnnotation: "of before", "kept": "x"})
	if err := leader.write(held); err != nil || len(held.Annotations) != 1 {
		t.Fatalf("%v, annotations %v", err, held.Annotations)
	}
	free := leaseOf("", 3, nil)
	if err := leader.write(free); err != nil {
		t.Fatal(err)
	}
	silent := leaseOf("", 3, free.Annotations)
	if err := (&handovers{}).write(silent); err != nil || len(silent.Annotations) > 0 {
		t.Errorf("%v: who says nothing leaves what was said before: %v", err, silent.Annotations)
	}
	for name, c := range map[string]struct {
		before *coordinationapi.Lease // as it was read before; nil: it was not
		free   *coordinationapi.Lease
		want   bool
	}{
		"seen in its term":          {held, free, true},
		"never seen":                {nil, free, false},
		"seen free":                 {leaseOf("", 3, nil), free, false},
		"seen in a later term":      {leaseOf("b", 4, nil), free, false}, // a backup was restored
		"said in an earlier term":   {leaseOf("b", 4, nil), leaseOf("", 4, free.Annotations), false},
		"said, and taken by others": {held, leaseOf("b", 4, free.Annotations), false},
		"nothing said":              {held, leaseOf("", 3, nil), false},
		"nonsense said":             {held, leaseOf("", 3, map[string]string{handoverAnnotation: `{"transitions":"x"`}), false},
	} {
		next := &handovers{}
		if c.before != nil {
			next.read(c.before)
		}
		next.read(c.free)
		if got := next.last(); maps.Equal(got, shown) != c.want || !c.want && got != nil {
			t.Errorf("%s: %v is taken for what the leader said", name, got)
		}
	}
}
