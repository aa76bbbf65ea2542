package scheduler

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
)

// certificateAge is how long a certificate that the daemon made for itself is valid.
const certificateAge = 365 * 24 * time.Hour

// defaultCertificate gives the endpoint a self-signed certificate in memory, where
// the flags name neither a certificate nor where to keep one. Its key is of an elliptic
// curve: two RSA keys, as kube-scheduler makes them, take longer than reading a
// small cluster. Where the flags list cipher suites these may call for RSA.
func (o *options) defaultCertificate() error {
	s := o.serving
	if files := s.ServerCert.CertKey; files.CertFile != "" || files.KeyFile != "" || s.ServerCert.CertDirectory != "" || len(s.CipherSuites) > 0 {
		return s.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)})
	}
	addresses := []net.IP{net.IPv4(127, 0, 0, 1)}
	if !s.BindAddress.IsUnspecified() {
		addresses = append(addresses, s.BindAddress)
	}
	certificate, key, err := selfSigned("localhost", addresses, time.Now())
	if err != nil {
		return err
	}
	klog.Background().Info("Generated self-signed cert in-memory")
	s.ServerCert.GeneratedCert, err = dynamiccertificates.NewStaticCertKeyContent("Generated self signed cert", certificate, key)
	return err
}

// certificates are those that the endpoint shows at this time, in DER.
func certificates(s *apiserver.SecureServingInfo) [][]byte {
	providers := []dynamiccertificates.CertKeyContentProvider{s.Cert}
	for _, sni := range s.SNICerts {
		providers = append(providers, sni)
	}
	var all [][]byte
	for _, p := range providers {
		if p == nil {
			continue
		}
		text, _ := p.CurrentCertKeyContent()
		block, rest := pem.Decode(text)
		for block != nil && block.Type != cert.CertificateBlockType {
			block, rest = pem.Decode(rest)
		}
		if block != nil {
			all = append(all, block.Bytes)
		}
	}
	return all
}

// selfSigned makes a certificate for the host and the addresses, and its key, both in
// PEM. It is valid an hour earlier: clocks differ.
func selfSigned(host string, addresses []net.IP, now time.Time) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 63))
	if err != nil {
		return nil, nil, err
	}
	from := now.Add(-time.Hour)
	template := x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)),
		Subject:      pkix.Name{CommonName: fmt.Sprintf("%s@%d", host, now.Unix())},
		NotBefore:    from, NotAfter: from.Add(certificateAge),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		DNSNames:              []string{host}, IPAddresses: addresses,
	}
	raw, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: raw})
	return certificate, pem.EncodeToMemory(&pem.Block{Type: keyutil.ECPrivateKeyBlockType, Bytes: encoded}), nil
}
