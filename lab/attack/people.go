package attack

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/edge/api"
)

// person is who asks: nobody, the owner of a certificate, or the bearer of a token.
type person struct {
	config *rest.Config
	token  string
}

func (l *lab) admin() person { return person{config: l.AdminConfig()} }

// tls returns the configuration of the person's connections to the daemon, whose
// certificate is its own.
func (p person) tls() (*tls.Config, error) {
	config := &tls.Config{}
	if p.config != nil {
		own, err := rest.TLSConfigFor(p.config)
		if err != nil {
			return nil, err
		}
		config = own
	}
	config.InsecureSkipVerify = true
	return config, nil
}

// mostBody is how much of an answer is read.
const mostBody = 64 << 20

// ask gets a path of the daemon over a connection of its own.
func (s *stage) ask(ctx context.Context, p person, path string, most time.Duration) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	config, err := p.tls()
	if err != nil {
		return 0, "", err
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address()+path, nil)
	if err != nil {
		return 0, "", err
	}
	if p.token != "" {
		request.Header.Set("Authorization", "Bearer "+p.token)
	}
	reply, err := transport.RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, mostBody))
	return reply.StatusCode, string(text), err
}

// address is the URL of the daemon.
func (s *stage) address() string { return fmt.Sprintf("https://127.0.0.1:%d", s.daemon.Port) }

// What may be asked. Health is for anybody; records are for readers, and those of one pod
// for whoever may get it; the rest is for those who may see metrics, configuration and
// profiles.
var (
	healthPaths = []string{"/healthz", "/livez", "/readyz", "/livez?verbose", "/readyz?verbose"}
	recordPaths = []string{"summary", "status", "capabilities", "records", "pending", "history", "nodes", "node?name=a", "groups", "group?name=kube-system%2fa", "quotas", "shadow", "find?q=a",
		"why?pod=kube-system%2fa", "records?pod=kube-system%2fa", "watch?pod=kube-system%2fa", "why/all", "watch", "watch?every=250ms",
		"blockers?pod=kube-system%2fa", "blockers?pod=" + url.QueryEscape(target+"/a"), "group?name=" + url.QueryEscape(target+"/a")}
	podPaths   = []string{"why?pod=" + url.QueryEscape(target+"/a"), "records?pod=" + url.QueryEscape(target+"/a")}
	ownerPaths = []string{"/metrics", "/metrics/resources", "/metrics/slis", "/configz", "/flagz", "/statusz",
		"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/goroutine?debug=2", "/debug/flags/v", "/nothing"}
)

// checkRights asks for every path as several people. Nobody may be answered more than
// his rights allow.
func (s *stage) checkRights() {
	if s.daemonGone() {
		return
	}
	for who, p := range map[string]person{"somebody unknown": {}, "a viewer of a namespace": {token: s.lab.viewer}, "a reader of records": {token: s.lab.reader}} { // any order
		for _, path := range healthPaths {
			s.checkHealth(who, p, path)
		}
		for _, path := range recordPaths {
			if p.token != s.lab.reader {
				s.checkRefused(who, p, api.Prefix+path)
			}
		}
		for _, path := range ownerPaths {
			s.checkRefused(who, p, path)
		}
	}
	for _, path := range podPaths {
		s.checkRefused("somebody unknown", person{}, api.Prefix+path)
		if status, body, err := s.ask(s.ctx, person{token: s.lab.viewer}, api.Prefix+path, mostLive); err != nil || status == http.StatusForbidden || status == http.StatusUnauthorized {
			s.broke("a viewer of a namespace asks for %s: status %d, %v: %s", path, status, err, short(body))
		}
	}
	status, body, err := s.ask(s.ctx, person{token: s.lab.reader}, api.Prefix+"summary", mostLive)
	if err != nil || status != http.StatusOK {
		s.broke("a reader of records asks for the summary: status %d, %v: %s", status, err, short(body))
	}
}

// checkHealth checks that a path of health shows nobody what the daemon reads.
func (s *stage) checkHealth(who string, p person, path string) {
	_, body, err := s.ask(s.ctx, p, path, mostLive)
	if err != nil {
		s.broke("%s asks for %s: %v", who, path, err)
	}
	if slices.ContainsFunc(append([]string{s.dir}, s.secrets...), func(secret string) bool { return strings.Contains(body, secret) }) {
		s.broke("%s is told by %s what only the owner may know: %s", who, path, short(body))
	}
}

func (s *stage) checkRefused(who string, p person, path string) {
	status, body, err := s.ask(s.ctx, p, path, mostLive)
	if err != nil || status != http.StatusForbidden && status != http.StatusUnauthorized {
		s.broke("%s asks for %s: status %d, %v: %s", who, path, status, err, short(body))
	}
}

// may asks the API server for a right of a person.
func (s *stage) may(token, verb, namespace, resource, subresource, name string) bool {
	config := s.lab.AdminConfig()
	as := rest.AnonymousClientConfig(config)
	as.BearerToken = token
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Namespace: namespace, Resource: resource, Subresource: subresource, Name: name}}}
	client, err := kubernetes.NewForConfig(as)
	if s.note(err) {
		review, err = client.AuthorizationV1().SelfSubjectAccessReviews().Create(s.ctx, review, metav1.CreateOptions{})
		s.note(err)
	}
	return err == nil && review.Status.Allowed
}
