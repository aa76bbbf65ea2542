package kube

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"
	"k8s.io/client-go/util/flowcontrol"
)

// Poster creates objects of one API group and version and reads nothing of the answers
// but errors. It is for bindings and Events, the two requests that each pod takes. It uses
// client-go's transport and metrics, and leaves out what its request builder does for any
// request, a fifth of the cost of one.
type Poster struct {
	transport http.RoundTripper
	base      *url.URL // of the group and version, ends in a slash
	limiter   flowcontrol.RateLimiter
	timeout   time.Duration   // of a request, from when it is sent; 0: none
	encoder   runtime.Encoder // to protobuf or JSON, as the configuration says
	header    http.Header     // what all requests have in common
}

// newPoster returns a Poster for a group and version; apiPath is "/api" or "/apis". It
// changes config.
func newPoster(config *rest.Config, apiPath string, group schema.GroupVersion) (*Poster, error) {
	config.APIPath, config.GroupVersion = apiPath, &group
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	base, path, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	base.Path = "/" + strings.TrimPrefix(base.Path, "/") // JoinPath keeps a path relative
	p := &Poster{transport: transport, base: base.JoinPath(path, "/"), limiter: config.RateLimiter, timeout: config.Timeout}
	contentType := config.ContentType
	switch contentType {
	case runtime.ContentTypeProtobuf:
		p.encoder = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	default:
		contentType = runtime.ContentTypeJSON
		p.encoder = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})
	}
	p.header = http.Header{
		"Accept":       {cmp.Or(config.AcceptContentTypes, contentType+",*/*")},
		"Content-Type": {contentType},
		"User-Agent":   {cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent())},
	}
	return p, nil
}

// post creates the object, whose kind and version must be set, at path below the group
// and version. It waits for the rate limiter until ctx ends, then sends once; p.timeout
// begins at the sending. An answer that is not a success is returned as an APIStatus.
func (p *Poster) post(ctx context.Context, path string, object runtime.Object) error {
	start := time.Now()
	if err := p.limiter.Wait(ctx); err != nil {
		return err
	}
	metrics.RateLimiterLatency.Observe(ctx, http.MethodPost, *p.base, time.Since(start))
	var encoded bytes.Buffer
	if err := p.encoder.Encode(object, &encoded); err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	body := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(encoded.Bytes())), nil }
	content, _ := body()
	target := *p.base
	target.Path += path
	if p.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.timeout)
		defer cancel()
		target.RawQuery = "timeout=" + p.timeout.String()
	}
	request := (&http.Request{
		Method: http.MethodPost, URL: &target, Host: target.Host, ProtoMajor: 1, ProtoMinor: 1,
		Header: p.header.Clone(), // transports add to it: credentials, for one
		Body:   content, GetBody: body, ContentLength: int64(encoded.Len()),
	}).WithContext(ctx)
	start = time.Now()
	response, err := p.transport.RoundTrip(request)
	p.observe(ctx, response, start, encoded.Len())
	if err != nil {
		return &url.Error{Op: "Post", URL: target.String(), Err: err}
	}
	defer response.Body.Close()
	if response.StatusCode < 300 {
		_, _ = io.Copy(io.Discard, response.Body) // so that the connection can be used again
		return nil
	}
	return refusal(response, path)
}

// observe counts a request in client-go's metrics. r is nil if there was no answer; size
// is that of the request's body, in bytes.
func (p *Poster) observe(ctx context.Context, r *http.Response, start time.Time, size int) {
	code := "<error>"
	if r != nil {
		code = strconv.Itoa(r.StatusCode)
		metrics.ResponseSize.Observe(ctx, http.MethodPost, p.base.Host, float64(max(r.ContentLength, 0)))
	}
	metrics.RequestLatency.Observe(ctx, http.MethodPost, *p.base, time.Since(start))
	metrics.RequestSize.Observe(ctx, http.MethodPost, p.base.Host, float64(size))
	metrics.RequestResult.Increment(ctx, code, http.MethodPost, p.base.Host)
}

// refusalLimit is how much of an error answer is read, in bytes. No Status is as long.
const refusalLimit = 64 << 10

// refusal returns the error of an answer that is not a success, as an APIStatus. path is
// that of the request.
func refusal(r *http.Response, path string) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, refusalLimit))
	if err != nil {
		return apierrors.NewGenericServerResponse(r.StatusCode, http.MethodPost, schema.GroupResource{}, path, err.Error(), 0, true)
	}
	if object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
		if status, ok := object.(*metav1.Status); ok && status.Status != metav1.StatusSuccess {
			return apierrors.FromObject(status)
		}
	}
	after, _ := strconv.Atoi(r.Header.Get("Retry-After"))
	return apierrors.NewGenericServerResponse(r.StatusCode, http.MethodPost, schema.GroupResource{}, path,
		strings.ToValidUTF8(string(body), ""), after, true)
}

// Close closes idle connections.
func (p *Poster) Close() { utilnet.CloseIdleConnectionsFor(p.transport) }
