package attack

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/berth-scheduler/berth/lab/cluster"
)

// managed is the resource whose pods the extender is asked about.
const managed = "example.com/hostile"

var extenderAttacks = []Attack{
	{Name: "extender/refusals", Short: true, Quiet: true, start: refusing,
		Title: "an extender refuses all nodes of a quiet cluster, each time for another reason", play: refusals},
	{Name: "extender/replies", Short: true, start: lying,
		Title: "an extender whose replies do not end, unfold, nest, drip or have control characters", play: replies},
}

// extended starts a daemon with an extender that a handler plays.
func (s *stage) extended(filter http.HandlerFunc) cluster.SchedulerOptions {
	server := httptest.NewServer(filter)
	s.finally(func() { server.CloseClientConnections(); server.Close() })
	return cluster.SchedulerOptions{Config: fmt.Appendf(nil, `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- {urlPrefix: %q, filterVerb: filter, httpTimeout: 2s, nodeCacheCapable: true, managedResources: [{name: %s, ignoredByScheduler: true}]}
`, server.URL, managed)}
}

// extendedPod is a pod that the extender is asked about.
func extendedPod(name string) *corev1.Pod {
	p := newPod(target, name, "1m")
	r := &p.Spec.Containers[0].Resources
	r.Limits = corev1.ResourceList{managed: resource.MustParse("1")}
	r.Requests[managed] = resource.MustParse("1")
	return p
}

// refuseAll answers that no node fits, for a reason.
func refuseAll(w http.ResponseWriter, r *http.Request, reason string) {
	var args extenderv1.ExtenderArgs
	_ = json.NewDecoder(r.Body).Decode(&args)
	reply := extenderv1.ExtenderFilterResult{NodeNames: &[]string{}, FailedNodes: extenderv1.FailedNodesMap{}}
	if args.NodeNames != nil {
		for _, name := range *args.NodeNames {
			reply.FailedNodes[name] = reason
		}
	}
	_ = json.NewEncoder(w).Encode(reply)
}

// asked counts the questions to the extender of refusals.
var asked atomic.Int64

// refusing starts a daemon with an extender that refuses all nodes.
func refusing(s *stage) cluster.SchedulerOptions {
	asked.Store(0)
	return s.extended(func(w http.ResponseWriter, r *http.Request) {
		refuseAll(w, r, fmt.Sprintf("refused for the reason %d", asked.Add(1)))
	})
}

// refusals counts the attempts on one pod. Backoffs of 1, 2, 4 and 8 s leave room for
// four in ten seconds. Small pods that come and go would call it: any event may help a pod
// that an extender refused, and where no other pod waits the backoff ends at once.
func refusals(s *stage) {
	const most = 10
	s.create(1, func(int) *corev1.Pod { return extendedPod("refused") })
	s.need("the extender to be asked", func() bool { return asked.Load() > 0 })
	s.rest(10 * time.Second)
	if n := asked.Load(); n > most {
		s.broke("the pod was tried %d times in 10 s", n)
	}
}

// lies are replies, by the name of the pod that they are about.
var lies = map[string]http.HandlerFunc{
	"endless": func(w http.ResponseWriter, r *http.Request) { pourJSON(w, r, `{"error": "`, "x") },
	"unfolds": func(w http.ResponseWriter, _ *http.Request) { unfold(w, `{"error": "`, "x") },
	"nests":   func(w http.ResponseWriter, r *http.Request) { pourJSON(w, r, `{"failedNodes": `, "[") },
	"drips": func(w http.ResponseWriter, r *http.Request) {
		drip(w, r, `{"error": "`)
	},
	"controls": func(w http.ResponseWriter, r *http.Request) { refuseAll(w, r, hostile) },
	"errs": func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(extenderv1.ExtenderFilterResult{Error: hostile})
	},
	"fails": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, hostile, http.StatusInternalServerError) },
}

// mostPoured is how much a hostile server sends at most, in bytes.
const mostPoured = 4 << 30

// part returns a text again and again, up to 64 KiB.
func part(text string) string { return strings.Repeat(text, max(1, 64<<10/len(text))) }

// pourJSON answers with a beginning and then a text without end.
func pourJSON(w http.ResponseWriter, r *http.Request, begin, text string) {
	w.Header().Set("Content-Type", "application/json")
	_, err := io.WriteString(w, begin)
	many := part(text)
	for sent := 0; err == nil && sent < mostPoured && r.Context().Err() == nil; sent += len(many) {
		_, err = io.WriteString(w, many)
	}
}

// unfold answers with few bytes that are very many when they are unpacked.
func unfold(w http.ResponseWriter, begin, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
	_, err := io.WriteString(z, begin)
	many := part(text)
	for sent := 0; err == nil && sent < mostPoured; sent += len(many) {
		_, err = io.WriteString(z, many)
	}
	_ = z.Close()
}

// drip answers a byte now and then, for as long as somebody reads.
func drip(w http.ResponseWriter, r *http.Request, begin string) {
	w.Header().Set("Content-Type", "application/json")
	_, err := io.WriteString(w, begin)
	for err == nil {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-time.After(200 * time.Millisecond):
			_, err = io.WriteString(w, "x")
		}
	}
}

// lying starts a daemon with an extender that lies in the way that the pod's name says.
func lying(s *stage) cluster.SchedulerOptions {
	return s.extended(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var args extenderv1.ExtenderArgs
		_ = json.Unmarshal(body, &args)
		name, _, _ := strings.Cut(args.Pod.Name, "-")
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		lies[name](w, r)
	})
}

func replies(s *stage) {
	for name := range lies { // any order: all of them
		s.create(3, func(i int) *corev1.Pod { return extendedPod(fmt.Sprintf("%s-%d", name, i)) })
	}
	s.need("each of the pods to be rejected", func() bool { return s.allTried(target) })
	for name := range lies {
		s.berth(with(s.asking(s.lab.reader), "why", target+"/"+name+"-0")...)
		s.berth(with(s.asking(s.lab.reader), "events", target+"/"+name+"-0")...)
	}
	s.berth(with(s.asking(s.lab.reader), "why", "--all")...)
	s.berth(with(s.asking(s.lab.reader), "top", "--once")...)
}
