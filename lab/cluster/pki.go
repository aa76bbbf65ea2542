package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateLifetime is long enough for a lab that is kept, and nothing that
// has to be renewed while it runs.
const certificateLifetime = 365 * 24 * time.Hour

// authority is the lab's own certificate authority: it signs kube-apiserver's
// certificate and those of its clients, and nobody else trusts it.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// keyPair is a certificate and its private key, PEM encoded.
type keyPair struct {
	certificate, key []byte
}

// openAuthority reads the authority of that name in directory dir (NAME.crt, NAME.key), or
// makes one there.
func openAuthority(dir, name string) (*authority, error) {
	key, err := openKey(filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name+".crt")
	encoded, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		template := certificateTemplate(pkix.Name{CommonName: "berth-lab " + name})
		template.IsCA, template.BasicConstraintsValid = true, true
		template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
		template.NotAfter = template.NotAfter.Add(10 * certificateLifetime)
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			return nil, fmt.Errorf("making the certificate authority: %w", err)
		}
		encoded = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		if err := os.WriteFile(path, encoded, 0o644); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(encoded)
	if block == nil {
		return nil, fmt.Errorf("%s: not a PEM certificate", path)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &authority{certificate, key}, nil
}

// openKey reads the private key in a file, or makes one there.
func openKey(path string) (*ecdsa.PrivateKey, error) {
	encoded, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		if encoded, err = encodeKey(key); err != nil {
			return nil, err
		}
		return key, os.WriteFile(path, encoded, 0o600)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(encoded)
	if block == nil {
		return nil, fmt.Errorf("%s: not a PEM private key", path)
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

// client issues a certificate for a user of the API and the groups it is in.
func (a *authority) client(user string, groups ...string) (keyPair, error) {
	template := certificateTemplate(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

// server issues a certificate for a server on this machine, which is also known
// in the cluster by the given names and addresses.
func (a *authority) server(name string, dnsNames []string, addresses ...net.IP) (keyPair, error) {
	template := certificateTemplate(pkix.Name{CommonName: name})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = append([]string{"localhost"}, dnsNames...)
	template.IPAddresses = append([]net.IP{net.IPv4(127, 0, 0, 1)}, addresses...)
	return a.issue(template)
}

func (a *authority) issue(template *x509.Certificate) (keyPair, error) {
	name := template.Subject.CommonName
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("key for %s: %w", name, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("certificate for %s: %w", name, err)
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return keyPair{}, fmt.Errorf("key for %s: %w", name, err)
	}
	return keyPair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), encoded}, nil
}

// pem is the authority's certificate, PEM encoded.
func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// write puts the pair into dir as NAME.crt and NAME.key.
func (p keyPair) write(dir, name string) error {
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.certificate, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".key"), p.key, 0o600)
}

func certificateTemplate(subject pkix.Name) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand never fails on a supported system
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour), // clocks are set back now and then
		NotAfter:     now.Add(certificateLifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
