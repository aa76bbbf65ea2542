package kube

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/machine"
)

// leaver is an API server over HTTP/2 that sends GOAWAY every now and then, as one
// does that spreads its clients or shuts down.
type leaver struct {
	*httptest.Server
	every int  // bindings
	cut   bool // it also ends all connections before it answers the next binding

	mu    sync.Mutex
	posts map[string]int  // bindings that came in, by pod
	from  map[string]bool // the connections that they came over
}

func newLeaver(t *testing.T, every int, cut bool) *leaver {
	s := &leaver{every: every, cut: cut, posts: map[string]int{}, from: map[string]bool{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.EnableHTTP2, s.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *leaver) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodGet {
		pod := path.Base(r.URL.Path)
		node := ""
		if s.posts[pod] > 0 {
			node = "node"
		}
		p := apiPod(pod, node)
		p.UID = types.UID(pod)
		answer(w, 200, p)
		return
	}
	s.posts[path.Base(path.Dir(r.URL.Path))]++
	s.from[r.Proto+" "+r.RemoteAddr] = true
	switch len(s.posts) % s.every {
	case 0:
		w.Header().Set("Connection", "close") // over HTTP/2: GOAWAY
	case 1:
		if s.cut {
			s.CloseClientConnections() // this answer is lost for certain
		}
	}
	answer(w, 201, nil)
}

func (s *leaver) config() *rest.Config {
	c := &rest.Config{Host: s.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	c.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return c
}

// While the server sends GOAWAY each binding reaches it at most once, and of each it
// is known what became of it, or a read tells.
func TestGoAway(t *testing.T) {
	for name, cut := range map[string]bool{"GOAWAY": false, "GOAWAY and lost answers": true} {
		t.Run(name, func(t *testing.T) {
			const pods = 200
			s := newLeaver(t, 20, cut)
			h, outcomes := executorOn(t, s.config(), always)
			for i := range pods {
				h.Do(machine.Bind{Pod: numbered(i), Node: "node"})
			}
			unknown := 0
			replies := map[types.UID]machine.BindReply{}
			for range pods {
				e := (<-outcomes).(machine.BindReply)
				replies[e.UID] = e
			}
			for i := range pods {
				p := numbered(i)
				s.mu.Lock()
				posts := s.posts[p.Name]
				s.mu.Unlock()
				bound := replies[p.UID].Result == machine.BindDone
				if replies[p.UID].Result == machine.BindUnknown {
					unknown++
					h.Do(machine.ReadPod{Pod: p})
					read := (<-outcomes).(machine.ReadReply)
					if read.Err != nil || read.Pod == nil {
						t.Fatalf("read of %s: %v", p.Name, read.Err)
					}
					bound = read.Pod.NodeName != ""
				}
				if posts > 1 || bound != (posts == 1) {
					t.Errorf("%s: %d bindings came in, bound: %t (%+v)", p.Name, posts, bound, replies[p.UID])
				}
			}
			for from := range s.from {
				if !strings.HasPrefix(from, "HTTP/2") {
					t.Errorf("a binding came over %s", from)
				}
			}
			if len(replies) != pods || len(s.from) < 2 || cut && unknown == 0 {
				t.Errorf("%d replies, over %d connections; %d answers were lost", len(replies), len(s.from), unknown)
			}
		})
	}
}
