package tool

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/pin"
	"github.com/berth-scheduler/berth/edge/untrusted"
)

// auto is the URL of a daemon that is to be found.
const auto = "auto"

// daemonFlags say which daemon is asked, and as whom.
type daemonFlags struct {
	url      string
	ca       string
	insecure bool
	lease    string
	always   bool // the command asks nobody else
	api      connection
}

// daemonVariable is the environment variable that stands for --daemon.
const daemonVariable = "BERTH_DAEMON"

func (d *daemonFlags) addFlags(f *pflag.FlagSet) {
	f.StringVar(&d.url, "daemon", cmp.Or(os.Getenv(daemonVariable), d.url), "URL of the secure port of the scheduler that leads, such as https://10.0.0.5:10259. \"auto\" finds it through its lease, which names its certificate, and reaches it by a port-forward to its pod. The environment variable "+daemonVariable+" sets the default")
	f.StringVar(&d.ca, "daemon-ca", "", "file with the certificate authority of --daemon URL; default: that of the kubeconfig")
	f.BoolVar(&d.insecure, "insecure-skip-tls-verify", false, "do not verify the certificate of --daemon URL, to which the credentials of the kubeconfig are sent")
	f.StringVar(&d.lease, "lease", "", "NAMESPACE/NAME of the lease of --daemon auto; default: the one in any namespace that a Berth holds; outside kube-system the holder must be a pod whose service account may bind pods")
}

// addKubeconfig adds the flags that say whose credentials are used.
func (d *daemonFlags) addKubeconfig(f *pflag.FlagSet) {
	d.api = newConnection()
	d.api.addFlags(f, "kubeconfig with the credentials; default: that of kubectl")
}

// checkFlags tells of flags that are about another way to the scheduler.
func (d *daemonFlags) checkFlags(f *pflag.FlagSet) error {
	if d.url != "" {
		if err := given(f, "the scheduler answers whom it authenticates, for nobody else; leave it out", "as", "as-uid", "as-group", "as-user-extra"); err != nil {
			return err
		}
	}
	if d.always {
		if err := d.api.checkTimeout(); err != nil {
			return err
		}
	}
	switch d.url {
	case "":
		if d.always {
			return errors.New("--daemon: is empty; give https://HOST:PORT, or auto")
		}
		return given(f, "goes with --daemon", "daemon-ca", "insecure-skip-tls-verify", "lease")
	case auto:
		return given(f, "goes with --daemon URL; \"auto\" comes through the API server to the scheduler's pod", "daemon-ca", "insecure-skip-tls-verify")
	}
	if _, err := d.base(); err != nil {
		return err
	}
	if d.insecure {
		if err := given(f, "has no effect with --insecure-skip-tls-verify", "daemon-ca"); err != nil {
			return err
		}
	}
	return given(f, "finds the scheduler for --daemon auto; a URL is given", "lease")
}

// oneNamespace returns an error about -A where a pod is named: the scheduler knows it by
// its namespace.
func (d *daemonFlags) oneNamespace(f *pflag.FlagSet, named bool) error {
	if !named {
		return nil
	}
	return given(f, "the scheduler knows a pod by its namespace; give NAMESPACE/POD", "all-namespaces")
}

// trust has a configuration trust the authority of --daemon-ca alone.
func (d *daemonFlags) trust(to *rest.Config) error {
	if d.ca == "" {
		return nil
	}
	data, err := readFile("--daemon-ca", d.ca, untrusted.Certificate)
	if err != nil {
		return err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(data) {
		return fmt.Errorf("--daemon-ca %s: holds no certificate in PEM", d.ca)
	}
	to.CAFile, to.CAData = "", data
	return nil
}

// daemon is a way to a scheduler.
type daemon struct {
	base   *url.URL
	client *http.Client
	close  func()
	// anonymous: there is no kubeconfig, so no credentials are sent.
	anonymous bool
	// leader is the pod that was found by its lease, nil for a URL. Who answers has the
	// certificate that the lease names.
	leader   *v1.Pod
	patience time.Duration // for an answer, and between two parts of a stream
	most     int64         // bytes of an answer
}

// Bounds of answers. Those about records have 10,000 at most, some 10 MiB, and the daemon
// cuts an answer after 55 s.
const (
	usualPatience = 58 * time.Second
	mostAnswer    = 64 << 20
)

// base parses the URL of --daemon.
func (d *daemonFlags) base() (*url.URL, error) {
	base, err := url.Parse(d.url)
	if err != nil || base.Scheme != "https" || base.Hostname() == "" || strings.Trim(base.Path, "/") != "" {
		return nil, fmt.Errorf("--daemon %s: must be like https://HOST:PORT, or auto", d.url)
	}
	return base, nil
}

// dial finds the way to the daemon.
func (d *daemonFlags) dial(ctx context.Context) (*daemon, error) {
	config, err := d.api.config()
	anonymous := d.url != auto && err == errNoKubeconfig
	if anonymous {
		config = &rest.Config{WrapTransport: untrusted.NoRedirects}
	} else if err != nil {
		return nil, err
	}
	if d.url == auto {
		way, err := d.find(ctx, config)
		if err != nil {
			return nil, err
		}
		return way.within(config.Timeout), nil
	}
	base, err := d.base()
	if err != nil {
		return nil, err
	}
	to := rest.CopyConfig(config)
	if err := d.trust(to); err != nil {
		return nil, err
	}
	way, err := dialAt(to, base, d.insecure, func() {})
	if err != nil {
		return nil, err
	}
	way.anonymous = anonymous
	return way.within(config.Timeout), nil
}

// within sets how long the daemon may take for an answer. 0 keeps the usual time.
func (d *daemon) within(timeout time.Duration) *daemon {
	d.patience = cmp.Or(timeout, d.patience)
	return d
}

func newDaemon(base *url.URL, client *http.Client, end func()) *daemon {
	return &daemon{base: base, client: client, close: end, patience: usualPatience, most: mostAnswer}
}

// dialAt makes a client for an address with the credentials of a configuration.
func dialAt(config *rest.Config, base *url.URL, insecure bool, end func()) (*daemon, error) {
	to := rest.CopyConfig(config)
	to.Host, to.Timeout, to.ServerName = base.String(), 0, ""
	to.Insecure = insecure // whatever the kubeconfig says of the API server
	if insecure {
		to.CAFile, to.CAData = "", nil
	}
	client, err := rest.HTTPClientFor(to)
	if err != nil {
		return nil, err
	}
	return newDaemon(base, client, end), nil
}

// dialPinned makes a client for the near end of a tunnel. It sends the credentials of a
// configuration to nobody but the server with the certificate of the pin.
func dialPinned(config *rest.Config, base *url.URL, p *pin.Pin, end func()) (*daemon, error) {
	to := rest.CopyConfig(config)
	to.Host, to.ServerName, to.Insecure, to.CAFile, to.CAData = base.String(), "", true, "", nil
	verified, err := rest.TLSConfigFor(to)
	if err != nil {
		return nil, err
	}
	verified.VerifyConnection = p.Verify // in place of a chain of certificates
	direct := func(*http.Request) (*url.URL, error) { return nil, nil }
	way, err := rest.HTTPWrappersForConfig(to, utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: verified, Proxy: direct}))
	if err != nil {
		return nil, err
	}
	return newDaemon(base, &http.Client{Transport: way}, end), nil
}

// open asks and returns the answer, or why there is none.
func (d *daemon) open(ctx context.Context, what string, q url.Values, header http.Header) (*http.Response, error) {
	reply, err := d.send(ctx, what, q, header)
	if err != nil || reply.StatusCode == http.StatusOK {
		return reply, err
	}
	defer reply.Body.Close()
	return nil, d.refusal(reply)
}

// send asks and returns what the daemon answers, which may be a refusal.
func (d *daemon) send(ctx context.Context, what string, q url.Values, header http.Header) (*http.Response, error) {
	at := *d.base
	at.Path, at.RawQuery = api.Prefix+what, q.Encode()
	ctx = reach(ctx, min(reachTime, d.patience))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, header)
	reply, err := d.client.Do(request)
	if err != nil {
		return nil, d.unasked(ctx, err)
	}
	return reply, nil
}

// errSilent ends a question to which no answer comes.
var errSilent = errors.New("there is no answer in time")

// silence returns errSilent if that ended the context, else nil.
func silence(ctx context.Context) error {
	if context.Cause(ctx) == errSilent {
		return errSilent
	}
	return nil
}

// ask asks and returns the whole answer.
func (d *daemon) ask(ctx context.Context, what string, q url.Values) (http.Header, []byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.patience, errSilent)
	defer cancel()
	reply, err := d.open(ctx, what, q, nil)
	if err != nil {
		return nil, nil, err
	}
	defer reply.Body.Close()
	body, err := untrusted.All(reply.Body, d.most)
	if err := cmp.Or(silence(ctx), ctx.Err(), err); err != nil { // what is given up may end as if it were whole
		return nil, nil, fmt.Errorf("the daemon's answer: %w", err)
	}
	return reply.Header, body, nil
}

// watch asks for a stream, which goes on after the event with the id last; "": it begins anew. It ends where nothing comes for a while; the daemon writes a
// comment each 15 seconds.
func (d *daemon) watch(ctx context.Context, q url.Values, last string) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(d.patience, func() { cancel(errSilent) })
	header := http.Header{}
	if last != "" {
		header.Set("Last-Event-Id", last)
	}
	reply, err := d.open(ctx, "watch", q, header)
	if err == nil && !strings.HasPrefix(reply.Header.Get("Content-Type"), "text/event-stream") {
		_ = reply.Body.Close()
		err = fmt.Errorf("%s: %w", d.base.Host, errNotBerth)
	}
	if err != nil {
		late.Stop()
		cancel(nil)
		return nil, err
	}
	return &stream{reply.Body, ctx, func() { late.Stop(); cancel(nil) }, func() { late.Reset(d.patience) }}, nil
}

// stream is the body of a stream.
type stream struct {
	io.ReadCloser
	ctx       context.Context
	end, more func()
}

// Read is for io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if n > 0 {
		s.more()
	}
	if err != nil {
		err = cmp.Or(silence(s.ctx), err)
	}
	return n, err
}

// Close is for io.Closer.
func (s *stream) Close() error {
	s.end()
	return s.ReadCloser.Close()
}

// errNotBerth is about an answer of another kind.
var errNotBerth = errors.New("this is not the answer of berth-scheduler")

// decodeAnswer decodes an answer, which must say that it is of the kind.
func decodeAnswer(body []byte, kind string, out any) error {
	var is api.Head
	if err := json.Unmarshal(body, &is); err != nil {
		return fmt.Errorf("the daemon's answer: %w", err)
	}
	if want := (api.Head{APIVersion: api.Version, Kind: kind}); is != want {
		return fmt.Errorf("the daemon's answer: %w: apiVersion %q and kind %q where %q and %q belong", errNotBerth, is.APIVersion, is.Kind, want.APIVersion, want.Kind)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("the daemon's answer: %w", err)
	}
	return nil
}

// hint says what to do about a certificate that is not trusted.
func hint(err error) string {
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return " (a scheduler makes its own certificate unless it is given one: --daemon-ca, or --insecure-skip-tls-verify)"
	}
	return ""
}

// mostRefusal bounds what is read of a refusal.
const mostRefusal = 64 << 10

// refusal is what an answer says that is none.
func (d *daemon) refusal(reply *http.Response) error {
	base := d.base
	body, err := io.ReadAll(io.LimitReader(reply.Body, mostRefusal))
	if err != nil {
		return err
	}
	var p api.Problem
	if json.Unmarshal(body, &p) == nil && p.Kind == "Problem" {
		if p.Reason == api.NotLeading {
			return &unserved{fmt.Errorf("%s: %s; ask that one, or --daemon auto", base.Host, p.Message), false}
		}
		return &p
	}
	var status struct{ Message string }
	_ = json.Unmarshal(body, &status) // a Status of the API, or anything
	switch reply.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		if d.anonymous {
			return fmt.Errorf("%s: the request was refused (%d): there is no kubeconfig, so no credentials were sent; set KUBECONFIG, or give --kubeconfig FILE", base.Host, reply.StatusCode)
		}
	}
	switch reply.StatusCode {
	case http.StatusUnauthorized:
		return fmt.Errorf("%s: authentication failed (401): the credentials of the kubeconfig are not valid there", base.Host)
	case http.StatusForbidden:
		return fmt.Errorf("%s: access to %s is forbidden (403): %s; the ClusterRole berth-scheduler-reader (deploy/rbac.yaml) gives the right, and without it \"why POD\" and \"events POD\" are answered about each pod that you may get", base.Host, api.Prefix, status.Message)
	case http.StatusNotFound:
		return fmt.Errorf("%s: there is no %s (404): this is not berth-scheduler, or an older version of it", base.Host, api.Prefix)
	}
	return fmt.Errorf("%s: %s: %.200s", base.Host, reply.Status, body)
}

// get asks and decodes the answer, which is of the kind.
func (d *daemon) get(ctx context.Context, what string, q url.Values, kind string, out any) error {
	_, body, err := d.ask(ctx, what, q)
	if err != nil {
		return err
	}
	return decodeAnswer(body, kind, out)
}
