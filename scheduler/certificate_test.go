package scheduler

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"
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
