package pin

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func leaseOf(holder string, annotations map[string]string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: maps.Clone(annotations)}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
}

// The holder's certificates are known by the lease, and no other's. What the holder before
// said does not count, and a lease that is given up says nothing.
func TestPin(t *testing.T) {
	old, now, foreign := []byte("old"), []byte("new"), []byte("foreign")
	l := leaseOf("a", map[string]string{"kept": "x"})
	if err := Write(l, [][]byte{old, now}); err != nil {
		t.Fatal(err)
	}
	p, err := Read(l)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		chain []*x509.Certificate
		right bool
	}{{[]*x509.Certificate{{Raw: old}}, true}, {[]*x509.Certificate{{Raw: now}, {Raw: foreign}}, true}, {[]*x509.Certificate{{Raw: foreign}, {Raw: now}}, false}, {nil, false}} {
		if err := p.Verify(tls.ConnectionState{PeerCertificates: c.chain}); (err == nil) != c.right {
			t.Errorf("%v: %v, want %t", c.chain, err, c.right)
		}
	}
	for name, other := range map[string]*coordinationv1.Lease{
		"kube-scheduler took it":   leaseOf("b", l.Annotations),
		"nobody holds it":          leaseOf("", l.Annotations),
		"nothing is said":          leaseOf("a", nil),
		"nonsense":                 leaseOf("a", map[string]string{Annotation: "{"}),
		"a holder, no certificate": leaseOf("a", map[string]string{Annotation: `{"holder": "a"}`}),
		"no holder at all":         {},
	} {
		if p, err := Read(other); err == nil {
			t.Errorf("%s: %v counts", name, p)
		}
	}
	free := leaseOf("", l.Annotations)
	if err := Write(free, [][]byte{now}); err != nil || len(free.Annotations) != 1 {
		t.Errorf("given up: %v, %v", free.Annotations, err)
	}
	if err := Write(l, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(l); err != ErrNoEndpoint || l.Labels[Label] != "true" {
		t.Errorf("without an endpoint: %v, labels %v", err, l.Labels)
	}
	if _, err := Read(leaseOf("b", l.Annotations)); err != ErrNotBerth {
		t.Errorf("kube-scheduler, after a Berth without an endpoint: %v", err)
	}
}
