package daemon_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/cert"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/daemon"
	"github.com/berth-scheduler/berth/edge/logs/logstest"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/server"
	memory "github.com/berth-scheduler/berth/sim/apiserver"
)

// pipes is a listener without a network.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// served is a whole daemon over an API server in memory, with its endpoint, which knows who asks by
// a token and lets in who is let in.
type served struct {
	*testing.T
	cluster *cluster
	daemon  *daemon.Daemon
	client  *http.Client

	revoked, forbidden atomic.Bool
}

// serve runs test against a daemon that knows the cluster, in a bubble of time.
func serve(t *testing.T, test func(*served)) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("scheduler", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := &served{T: t, cluster: &cluster{Server: memory.New()}}
		s.daemon = daemonOf(t, s.cluster, &logstest.Sink{}, "me")
		content, err := dynamiccertificates.NewStaticCertKeyContent("test", certificate, key)
		if err != nil {
			t.Fatal(err)
		}
		listener := &pipes{make(chan net.Conn), make(chan struct{})}
		endpoint, err := server.Start(server.Secure{
			Serving: &apiserver.SecureServingInfo{Listener: listener, Cert: content},
			Authentication: apiserver.AuthenticationInfo{Authenticator: authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
				known := r.Header.Get("Authorization") == "Bearer token" && !s.revoked.Load()
				return &authenticator.Response{User: &user.DefaultInfo{Name: "ann"}}, known, nil
			})},
			Authorization: apiserver.AuthorizationInfo{Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				if s.forbidden.Load() || !strings.HasPrefix(a.GetPath(), api.Prefix) {
					return authorizer.DecisionNoOpinion, "", nil
				}
				return authorizer.DecisionAllow, "", nil
			})},
		}, s.daemon.Endpoint(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			listener.conns <- server
			return tls.Client(client, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}), nil
		}}
		s.client = &http.Client{Transport: transport}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.daemon.Run(ctx, nil) }()
		time.Sleep(10 * time.Second) // it leads
		test(s)
		stop()
		<-ended
		transport.CloseIdleConnections()
		endpoint.Stop()
	})
}

// ask asks as somebody with a token, who goes on from an event.
func (s *served) ask(path, from string) *http.Response {
	r, _ := http.NewRequest(http.MethodGet, "https://scheduler"+api.Prefix+path, nil)
	r.Header.Set("Authorization", "Bearer token")
	if from != "" {
		r.Header.Set("Last-Event-ID", from)
	}
	reply, err := s.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	return reply
}

// get decodes an answer.
func (s *served) get(path string, into any) {
	s.Helper()
	reply := s.ask(path, "")
	defer reply.Body.Close()
	if err := json.NewDecoder(reply.Body).Decode(into); err != nil || reply.StatusCode != http.StatusOK {
		s.Fatalf("%s: %d, %v", path, reply.StatusCode, err)
	}
}

func (s *served) create(o memory.Object) {
	if err := s.cluster.Create(o); err != nil {
		s.Fatal(err)
	}
}

// events reads a stream to its end. It returns the last id, and the data by kind.
func events(reply *http.Response) (last string, data map[string][]string) {
	data = map[string][]string{}
	kind, lines := "", bufio.NewScanner(reply.Body)
	for lines.Scan() {
		switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
		case "id":
			last = value
		case "event":
			kind = value
		case "data":
			data[kind] = append(data[kind], value)
		}
	}
	return last, data
}

// A stream ends after ten minutes. Whoever goes on has each record and each change of a node once,
// unless he may not any more: a token that was revoked, or a role that was taken, opens no stream.
func TestStreamsEndAndGoOn(t *testing.T) {
	serve(t, func(s *served) {
		for i := range 3 {
			list := v1.ResourceList{"cpu": resource.MustParse("32"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
			s.create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}, Status: v1.NodeStatus{Allocatable: list, Capacity: list}})
		}
		stop := make(chan struct{})
		go func() { // a pod a minute, for as long as the test takes
			for i := range 60 {
				select {
				case <-time.After(time.Minute):
				case <-stop:
					return
				}
				s.create(requesting(fmt.Sprint("p", i), "1", 0))
			}
		}()
		last, bound, pods := "", map[string]int{}, map[string]int64{}
		for stream := range 3 {
			began := time.Now()
			reply := s.ask("watch?every=250ms", last)
			var data map[string][]string
			last, data = events(reply)
			reply.Body.Close()
			var end api.Problem
			if len(data["end"]) != 1 || json.Unmarshal([]byte(data["end"][0]), &end) != nil || end.Reason != api.Ended || time.Since(began) != 10*time.Minute {
				s.Fatalf("stream %d ended after %s with %s", stream, time.Since(began), data["end"])
			}
			for _, text := range data["record"] {
				var r records.Record
				if err := json.Unmarshal([]byte(text), &r); err != nil {
					s.Fatal(err)
				}
				if r.Type == records.Bound {
					bound[r.Pod]++
				}
			}
			for i, text := range data["nodes"] {
				var n api.NodeTable
				if err := json.Unmarshal([]byte(text), &n); err != nil || n.Whole != (stream == 0 && i == 0) {
					s.Fatalf("stream %d, table %d: %v, %+v", stream, i, err, n)
				}
				for k, name := range n.Names {
					pods[name] = n.Resources[v1.ResourcePods].Requested[k]
				}
			}
			if len(data["lost"]) != 0 || len(data["counts"]) == 0 {
				s.Errorf("stream %d: lost %v, counts %v", stream, data["lost"], data["counts"])
			}
			time.Sleep(90 * time.Second) // nobody listens
		}
		if len(bound) < 30 || pods["n0"]+pods["n1"]+pods["n2"] < 30 {
			s.Errorf("%d pods were bound, and are on %v", len(bound), pods)
		}
		for pod, times := range bound {
			if times != 1 {
				s.Errorf("%s was said to be bound %d times", pod, times)
			}
		}
		for i := range len(bound) {
			if name := fmt.Sprint("ns/p", i); bound[name] != 1 {
				s.Errorf("nothing was said of %s", name)
			}
		}
		close(stop)
		s.forbidden.Store(true)
		for _, want := range []int{http.StatusForbidden, http.StatusUnauthorized} {
			reply := s.ask("watch?every=250ms", last)
			reply.Body.Close()
			if reply.StatusCode != want {
				s.Errorf("whoever may not any more is answered %d, want %d", reply.StatusCode, want)
			}
			s.revoked.Store(true)
		}
	})
}

// A token that is revoked while a stream is open lets nothing out of the daemon after ten minutes.
func TestRevokedTokenEndsStreams(t *testing.T) {
	serve(t, func(s *served) {
		began, reply := time.Now(), s.ask("watch", "")
		defer reply.Body.Close()
		s.revoked.Store(true)
		last, data := events(reply)
		if took := time.Since(began); took > 10*time.Minute || len(data["end"]) != 1 {
			s.Errorf("the stream went on for %s: %v", took, data)
		}
		again := s.ask("watch", last)
		again.Body.Close()
		if again.StatusCode != http.StatusUnauthorized {
			s.Errorf("the next stream: %d", again.StatusCode)
		}
	})
}

// A daemon samples its history every five seconds, keeps an hour of it, and says since when.
func TestHistoryOfADaemon(t *testing.T) {
	serve(t, func(s *served) {
		time.Sleep(70*time.Minute + time.Second) // between two samples
		var h api.History
		s.get("history", &h)
		if n := len(h.Times); n != 720 || h.Times[n-1].Sub(h.Times[0]) != time.Hour-5*time.Second || time.Since(h.Times[n-1]) > 5*time.Second {
			s.Errorf("%d samples from %s to %s", n, h.Times[0], h.Times[len(h.Times)-1])
		}
		var c api.Capabilities
		if s.get("capabilities", &c); c.HistorySince == nil || !c.HistorySince.Equal(h.Times[0]) || c.Leader != "me" || !c.Synced {
			s.Errorf("%+v", c)
		}
	})
}
