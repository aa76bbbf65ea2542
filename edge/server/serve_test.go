package server

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/cert"
)

// The endpoint asks clients for certificates where it has an authority, and shows the
// certificate that is in its file, also when that is replaced.
func TestCertificatesFollowTheirFiles(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	replace := func(certificate, key []byte) {
		for file, text := range map[string][]byte{keyFile: key, certFile: certificate} {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	replace(certificate, key)
	content, err := dynamiccertificates.NewDynamicServingContentFromFiles("test", certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := dynamiccertificates.NewStaticCAContent("test", certificate)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	stopped, silence, err := serve(&apiserver.SecureServingInfo{Listener: l, Cert: content, ClientCA: authority}, http.NotFoundHandler(), time.Second, stop)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { close(stop); <-stopped; <-silence }()
	asked := false
	shown := func() []byte {
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = true
			return &tls.Certificate{}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Raw
	}
	first, _ := pem.Decode(certificate)
	if !bytes.Equal(shown(), first.Bytes) || !asked {
		t.Errorf("another certificate is shown, or none is asked for: %t", asked)
	}
	renewed, newKey, err := cert.GenerateSelfSignedCertKey("scheduler", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	replace(renewed, newKey)
	second, _ := pem.Decode(renewed)
	for !bytes.Equal(shown(), second.Bytes) { // until the test's time is over
	}
}
