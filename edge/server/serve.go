package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	endpointmetrics "k8s.io/apiserver/pkg/endpoints/metrics"
	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/edge/bounds"
)

// serve serves h in the background until stop is closed. SecureServingInfo.Serve would
// take a megabyte of headers and a quarter of body for each of a hundred streams of a
// connection, before anybody knows who asks.
func serve(s *apiserver.SecureServingInfo, h http.Handler, shutdown time.Duration, stop <-chan struct{}) (stopped, silence <-chan struct{}, err error) {
	if s.Listener == nil {
		return nil, nil, errors.New("there is no listener")
	}
	endpoint := &http.Server{
		Addr: s.Listener.Addr().String(), Handler: h, TLSConfig: followed(s, stop),
		MaxHeaderBytes: mostHeaderBytes, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          cmp.Or(s.HTTP2MaxStreamsPerConnection, mostStreams),
			MaxReadFrameSize:              frameBytes,
			MaxReceiveBufferPerStream:     frameBytes,
			MaxReceiveBufferPerConnection: 4 * frameBytes,
		},
		ErrorLog: log.New(handshakes{}, "", 0),
	}
	klog.Infof("Serving securely on %s", endpoint.Addr)
	return apiserver.RunServer(endpoint, bounds.Bounded(s.Listener, mostConnections, stallTime), shutdown, stop)
}

// followed returns the configuration of TLS. Its certificates and authorities follow their
// sources until stop is closed.
func followed(s *apiserver.SecureServingInfo, stop <-chan struct{}) *tls.Config {
	c := &tls.Config{MinVersion: cmp.Or(s.MinTLSVersion, tls.VersionTLS12), CipherSuites: s.CipherSuites, CurvePreferences: s.CurvePreferences,
		NextProtos: []string{"h2", "http/1.1"}} // #nosec G402 -- a flag may lower the version, as in kube-scheduler
	if s.DisableHTTP2 {
		c.NextProtos = []string{"http/1.1"}
	}
	if s.ClientCA != nil {
		c.ClientAuth = tls.RequestClientCert // which the authenticator verifies
	}
	controller := dynamiccertificates.NewDynamicServingCertificateController(c, s.ClientCA, s.Cert, s.SNICerts, nil)
	sources := []any{s.ClientCA, s.Cert}
	for _, of := range s.SNICerts {
		sources = append(sources, of)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-stop
		cancel()
	}()
	for _, source := range sources {
		if n, ok := source.(dynamiccertificates.Notifier); ok {
			n.AddListener(controller)
		}
		if file, ok := source.(dynamiccertificates.ControllerRunner); ok {
			if err := file.RunOnce(ctx); err != nil { // the file may be good later
				klog.Background().Error(err, "Failed to read a certificate of the endpoint")
			}
			go file.Run(ctx, 1)
		}
	}
	if err := controller.RunOnce(); err != nil {
		klog.Background().Error(err, "Failed to load the certificates of the endpoint")
	}
	go controller.Run(1, stop)
	c.GetConfigForClient = controller.GetConfigForClient
	return c
}

// handshakes counts failed handshakes of TLS, which anybody can cause, and writes other
// errors of the server to the standard error.
type handshakes struct{}

func (handshakes) Write(line []byte) (int, error) {
	if strings.HasPrefix(string(line), "http: TLS handshake error") {
		klog.V(5).Info(string(line))
		endpointmetrics.TLSHandshakeErrors.Inc()
		return len(line), nil
	}
	return os.Stderr.Write(line)
}
