package extender

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/untrusted"
)

const (
	defaultTimeout = 5 * time.Second // kube-scheduler's
	// How many questions an extender is asked at a time: few where each holds
	// the nodes as a whole.
	askLimit      = 16
	askLimitWhole = 4
	// maxWeight keeps sums of weighted scores exact.
	maxWeight = 1 << 32
)

// Extenders are all that a configuration names, in the order in which they are
// asked. Its methods may be called from any goroutine.
type Extenders []*service

// service is one extender, and how to reach it.
type service struct {
	machine.Extender
	config configv1.Extender
	client *http.Client
	// binds holds a place for each binding under way.
	binds chan struct{}
}

// New prepares to ask the extenders of a configuration. As in kube-scheduler those that
// are ignorable come last. Errors name the extender and what is wrong with its
// TLS configuration.
func New(configs []configv1.Extender) (Extenders, error) {
	var first, last Extenders
	for i := range configs {
		s, err := newService(configs[i])
		if err != nil {
			return nil, fmt.Errorf("extenders[%d] (%s): %w", i, redacted(configs[i].URLPrefix), err)
		}
		if s.Ignorable {
			last = append(last, s)
		} else {
			first = append(first, s)
		}
	}
	return append(first, last...), nil
}

func newService(c configv1.Extender) (*service, error) {
	tls, err := transport(&c)
	if err != nil {
		return nil, err
	}
	s := &service{config: c, binds: make(chan struct{}, askLimit), Extender: machine.Extender{
		Name:   redacted(c.URLPrefix),
		Filter: c.FilterVerb != "", Prioritize: c.PrioritizeVerb != "", Preempt: c.PreemptVerb != "", Bind: c.BindVerb != "",
		Weight: min(c.Weight, maxWeight), Ignorable: c.Ignorable, Timeout: c.HTTPTimeout.Duration, Limit: askLimit,
	}}
	if s.Timeout <= 0 {
		s.Timeout = defaultTimeout
	}
	if !c.NodeCacheCapable {
		s.Limit = askLimitWhole
	}
	for _, r := range c.ManagedResources {
		s.Manages = append(s.Manages, v1.ResourceName(r.Name))
	}
	s.client = &http.Client{
		Transport: tls,
		Timeout:   s.Timeout,
		// A redirect is no answer: the question is not for whoever it names.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// transport is kube-scheduler's: without a CA, enableHTTPS does not verify the server.
func transport(c *configv1.Extender) (http.RoundTripper, error) {
	var rc rest.Config
	if t := c.TLSConfig; t != nil {
		for _, path := range []string{t.CAFile, t.CertFile, t.KeyFile} {
			if err := untrusted.Check(path, untrusted.Certificate); err != nil {
				return nil, fmt.Errorf("tlsConfig: %w", err)
			}
		}
		rc.TLSClientConfig = rest.TLSClientConfig{
			Insecure: t.Insecure, ServerName: t.ServerName, CertFile: t.CertFile, KeyFile: t.KeyFile, CAFile: t.CAFile,
			CertData: t.CertData, KeyData: t.KeyData, CAData: t.CAData,
		}
	}
	if Unverified(c) {
		rc.Insecure = true
	}
	tls, err := rest.TLSConfigFor(&rc)
	if err != nil {
		return nil, err
	}
	return utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: tls, MaxIdleConnsPerHost: askLimit}), nil
}

// Unverified tells that the extender's certificate is not checked because the
// configuration asks for HTTPS and names no CA.
func Unverified(c *configv1.Extender) bool {
	return c.EnableHTTPS && (c.TLSConfig == nil || c.TLSConfig.CAFile == "" && len(c.TLSConfig.CAData) == 0)
}

// redacted is the address without a password. Of an address that is no URL
// nobody can tell where a password ends.
func redacted(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "not a URL"
	case u.User == nil:
		return address
	}
	return u.Redacted()
}

// Via has them reached by another way than the network.
func (x Extenders) Via(way http.RoundTripper) {
	for _, s := range x {
		s.client.Transport = way
	}
}

// Machine is what the machine needs to know of them.
func (x Extenders) Machine() []machine.Extender {
	list := make([]machine.Extender, len(x))
	for i, s := range x {
		list[i] = s.Extender
	}
	return list
}

// Pod tells whether the pod's API object may be sent to one of them: they
// manage the pod, or it may be a victim that they want to see as a whole, which it may
// be before the API shows it bound.
func (x Extenders) Pod(p *v1.Pod) bool {
	for _, s := range x {
		if p.Spec.NodeName == "" && s.Interested(p) || s.Preempt && !s.config.NodeCacheCapable {
			return true
		}
	}
	return false
}

// Nodes tells whether the API objects of nodes may be sent to one of them.
func (x Extenders) Nodes() bool {
	for _, s := range x {
		if (s.Filter || s.Prioritize) && !s.config.NodeCacheCapable {
			return true
		}
	}
	return false
}

func (s *service) verb(v machine.Verb) string {
	switch v {
	case machine.Filter:
		return s.config.FilterVerb
	case machine.Prioritize:
		return s.config.PrioritizeVerb
	case machine.Preempt:
		return s.config.PreemptVerb
	}
	return ""
}

func (s *service) url(verb string) string {
	return strings.TrimRight(s.config.URLPrefix, "/") + "/" + verb
}
