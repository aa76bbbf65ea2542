package scheduler

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"slices"
	"testing"
	"time"

	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// A certificate that the daemon makes for itself is good for this machine and the
// address that it listens on, for a year. Only where cipher suites are given, some
// of which call for RSA, its key is one of RSA.
func TestSelfSignedCertificate(t *testing.T) {
	for _, tt := range []struct {
		flags []string
		key   x509.PublicKeyAlgorithm
	}{
		{[]string{"--bind-address=192.0.2.7"}, x509.ECDSA},
		{[]string{"--bind-address=192.0.2.7", "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}, x509.RSA},
	} {
		o := newOptions()
		if err := newCommand(o).ParseFlags(tt.flags); err != nil {
			t.Fatal(err)
		}
		if err := o.defaultCertificate(); err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(o.serving.ServerCert.GeneratedCert.CurrentCertKeyContent())
		if err != nil {
			t.Fatal(err)
		}
		c := pair.Leaf
		if c.PublicKeyAlgorithm != tt.key {
			t.Errorf("%q: a key of %s, want %s", tt.flags, c.PublicKeyAlgorithm, tt.key)
		}
		for _, name := range []string{"localhost", "127.0.0.1", net.IPv4(192, 0, 2, 7).String()} {
			if err := c.VerifyHostname(name); err != nil {
				t.Errorf("%q: %v", tt.flags, err)
			}
		}
		if now := time.Now(); c.NotBefore.After(now.Add(-50*time.Minute)) || c.NotAfter.Before(now.AddDate(0, 11, 0)) {
			t.Errorf("%q: valid from %v to %v", tt.flags, c.NotBefore, c.NotAfter)
		}
	}
}

// The certificates of the endpoint are those that it shows at that time: the one for
// everybody, and those for some names. A block before a certificate in its file is none.
func TestCertificatesOfTheEndpoint(t *testing.T) {
	provider := func(host, before string) (dynamiccertificates.SNICertKeyContentProvider, []byte) {
		text, key, err := selfSigned(host, nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		p, err := dynamiccertificates.NewStaticSNICertKeyContent(host, append([]byte(before), text...), key, host)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(text)
		return p, block.Bytes
	}
	all, of := provider("a", "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n")
	some, ofSome := provider("b", "")
	got := certificates(&apiserver.SecureServingInfo{Cert: all, SNICerts: []dynamiccertificates.SNICertKeyContentProvider{some}})
	if !slices.EqualFunc(got, [][]byte{of, ofSome}, bytes.Equal) {
		t.Errorf("%d certificates, or others", len(got))
	}
	if got := certificates(&apiserver.SecureServingInfo{}); got != nil {
		t.Errorf("%d certificates where there is none", len(got))
	}
}
