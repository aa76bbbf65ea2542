// Package pin names the certificates of a scheduler's endpoint in the lease that the
// scheduler holds. A client that reads the lease from the API server knows by them that
// it reached the holder, whichever pod it was led to. Who may write the lease may name
// others: he may hold it, too.
package pin

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Annotation is that of the lease. kube-scheduler keeps it and does not look at it, so
// that it counts only for the holder that it names.
const Annotation = "berth.dev/serving-certificates"

// Label is that of every lease that a Berth has held, by which leases are found. It does
// not say that a Berth holds it now.
const Label = "berth.dev/scheduler"

// Pin is what the annotation says.
type Pin struct {
	Holder string   `json:"holder"`           // the process, as in the lease's holderIdentity
	SHA256 []string `json:"sha256,omitempty"` // of the certificates in DER, in hexadecimal
}

// Errors of Read.
var (
	// ErrNotBerth is about a lease that is held by no Berth.
	ErrNotBerth = errors.New("which is not Berth")
	// ErrNoEndpoint is about a Berth that serves no endpoint.
	ErrNoEndpoint = errors.New("a Berth that serves no endpoint")
)

// Write names the lease's holder and its certificates. Without a holder it removes the
// annotation.
func Write(l *coordinationv1.Lease, certificates [][]byte) error {
	delete(l.Annotations, Annotation)
	holder := l.Spec.HolderIdentity
	if holder == nil || *holder == "" {
		return nil
	}
	p := Pin{Holder: *holder}
	for _, c := range certificates {
		p.SHA256 = append(p.SHA256, digest(c))
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Annotations[Annotation] = string(text)
	if l.Labels == nil {
		l.Labels = map[string]string{}
	}
	l.Labels[Label] = "true"
	return nil
}

// Read returns what the lease's holder said of itself. What another said, who held the
// lease before, does not count.
func Read(l *coordinationv1.Lease) (*Pin, error) {
	p := &Pin{}
	text := l.Annotations[Annotation]
	if text != "" && json.Unmarshal([]byte(text), p) != nil {
		return nil, fmt.Errorf("the annotation %s is not valid", Annotation)
	}
	switch holder := l.Spec.HolderIdentity; {
	case holder == nil || *holder == "" || *holder != p.Holder:
		return nil, ErrNotBerth
	case len(p.SHA256) == 0:
		return nil, ErrNoEndpoint
	}
	return p, nil
}

// Verify returns an error unless the server has a certificate that the holder named. Use it as
// tls.Config.VerifyConnection: package tls has then verified that the server has the key.
func (p *Pin) Verify(c tls.ConnectionState) error {
	if len(c.PeerCertificates) == 0 {
		return errors.New("there is no certificate")
	}
	if !slices.Contains(p.SHA256, digest(c.PeerCertificates[0].Raw)) {
		return fmt.Errorf("the certificate is not one that the lease's holder %s has named", p.Holder)
	}
	return nil
}

func digest(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:])
}
