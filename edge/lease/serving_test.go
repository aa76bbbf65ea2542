package lease

import (
	"context"
	"testing"

	coordinationapi "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/berth-scheduler/berth/edge/pin"
)

// written is the lease that was written last.
type written struct {
	coordinationv1.LeaseInterface
	last *coordinationapi.Lease
}

func (w *written) Create(_ context.Context, l *coordinationapi.Lease, _ metav1.CreateOptions) (*coordinationapi.Lease, error) {
	w.last = l
	return l, nil
}

func (w *written) Update(_ context.Context, l *coordinationapi.Lease, _ metav1.UpdateOptions) (*coordinationapi.Lease, error) {
	w.last = l
	return l, nil
}

// Each write of the lease names the certificate that the endpoint has at that time, also
// the first, and the last takes it away. What kube-scheduler left is replaced.
func TestLeaseNamesTheCertificate(t *testing.T) {
	certificate := "first"
	of := &Lease{}
	of.Serve(func() [][]byte { return [][]byte{[]byte(certificate)} })
	w := &written{}
	client := leaseClient{w, of}
	said := func() string {
		p, err := pin.Read(w.last)
		if err != nil {
			return err.Error()
		}
		return p.SHA256[0][:8]
	}
	if _, err := client.Create(t.Context(), leaseOf("a", 0, nil), metav1.CreateOptions{}); err != nil || said() != "a7937b64" || w.last.Labels[pin.Label] == "" {
		t.Errorf("made: %v, %s, labels %v", err, said(), w.last.Labels)
	}
	certificate = "second"
	if _, err := client.Update(t.Context(), leaseOf("a", 0, w.last.Annotations), metav1.UpdateOptions{}); err != nil || said() != "16367aac" {
		t.Errorf("renewed: %v, %s", err, said())
	}
	if _, err := client.Update(t.Context(), leaseOf("a", 1, map[string]string{pin.Annotation: `{"holder": "b", "sha256": ["00"]}`}), metav1.UpdateOptions{}); err != nil || said() != "16367aac" {
		t.Errorf("taken from another: %v, %s", err, said())
	}
	if _, err := client.Update(t.Context(), leaseOf("", 1, w.last.Annotations), metav1.UpdateOptions{}); err != nil || len(w.last.Annotations) != 0 {
		t.Errorf("given up: %v, %v", err, w.last.Annotations)
	}
}
