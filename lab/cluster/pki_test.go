package cluster

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func parse(t *testing.T, pair keyPair) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(pair.certificate)
	if block == nil {
		t.Fatal("not PEM")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// A certificate is trusted for its host names and its use only.
func TestCertificatesAreTrustedForTheirPurpose(t *testing.T) {
	ca, err := openAuthority(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.certificate)

	pair, err := ca.server("kube-apiserver", []string{"kubernetes.default.svc"}, serviceAddress)
	if err != nil {
		t.Fatal(err)
	}
	server := parse(t, pair)
	for _, host := range []string{"localhost", "127.0.0.1", "kubernetes.default.svc", "10.96.0.1"} {
		if _, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("server certificate for %s: %v", host, err)
		}
	}
	if _, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: "example.org"}); err == nil {
		t.Error("server certificate is good for example.org too")
	}

	pair, err = ca.client("somebody", "some:group")
	if err != nil {
		t.Fatal(err)
	}
	client := parse(t, pair)
	asClient := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := client.Verify(asClient); err != nil {
		t.Errorf("client certificate: %v", err)
	}
	if _, err := client.Verify(x509.VerifyOptions{Roots: roots}); err == nil {
		t.Error("a client certificate serves as a server's too")
	}
	if name := client.Subject; name.CommonName != "somebody" || strings.Join(name.Organization, ",") != "some:group" {
		t.Errorf("client is %v", name)
	}
}

// A lab that starts again has the same certificate authority.
func TestAuthorityIsKept(t *testing.T) {
	dir := t.TempDir()
	first, err := openAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	second, err := openAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	if !first.certificate.Equal(second.certificate) || !first.key.Equal(second.key) {
		t.Error("a directory that has an authority got another one")
	}
}

// A broken file of the authority is named.
func TestBrokenAuthorityIsNamed(t *testing.T) {
	for _, file := range []string{"ca.crt", "ca.key"} {
		dir := t.TempDir()
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openAuthority(dir, "ca"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("broken %s: error is %v", file, err)
		}
	}
}

// Nobody but the owner can read a private key.
func TestKeysAreForTheOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	ca, err := openAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.client("somebody")
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.write(dir, "somebody"); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"ca.key", "somebody.key"} {
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", file, info.Mode())
		}
	}
}
