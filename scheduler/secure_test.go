package scheduler

import (
	"crypto/tls"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/server"
)

// The endpoint speaks TLS 1.2 and 1.3 and nothing older, unless a flag says so.
func TestEndpointRefusesOldTLS(t *testing.T) {
	o := newOptions()
	if err := newCommand(o).ParseFlags([]string{"--bind-address=127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	o.serving.BindPort = 1 // any: the listener below has another
	o.serving.Listener = listener(t)
	secure, err := o.secure()
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := server.Start(secure, server.Options{Config: config.Default, Refresh: func() {},
		Resources: http.NotFoundHandler(), Leads: func() bool { return true }}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer endpoint.Stop()
	for version, want := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", o.serving.Listener.Addr().String(), &tls.Config{
			MinVersion: version, MaxVersion: version, InsecureSkipVerify: true}) // its certificate is its own
		if err == nil {
			conn.Close()
		}
		if (err == nil) != want {
			t.Errorf("%s: %v, want %t", tls.VersionName(version), err, want)
		}
	}
}

func listener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}
