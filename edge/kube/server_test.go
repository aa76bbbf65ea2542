package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// wire is an HTTP server that answers as the test says and notes what came in,
// one line a request, in the order of arrival.
type wire struct {
	*httptest.Server
	requests chan request
}

type request struct {
	Line string // method and path
	Body string
}

func newWire(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, body string)) *wire {
	s := &wire{requests: make(chan request, 2*bindLimit)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.requests <- request{r.Method + " " + r.URL.Path, string(body)}
		answer(w, r, string(body))
	}))
	t.Cleanup(s.Close)
	return s
}

// answers writes a body of the API: a Status for a code of 400 or more.
func answer(w http.ResponseWriter, code int, body any) {
	if body == nil {
		status := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Code: int32(code), Status: metav1.StatusSuccess, Message: http.StatusText(code)}
		if code >= 400 {
			status.Status, status.Reason = metav1.StatusFailure, reasons[code]
		}
		body = status
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

var reasons = map[int]metav1.StatusReason{
	400: metav1.StatusReasonBadRequest, 403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound,
	409: metav1.StatusReasonConflict, 422: metav1.StatusReasonInvalid, 429: metav1.StatusReasonTooManyRequests,
	500: metav1.StatusReasonInternalError, 503: metav1.StatusReasonServiceUnavailable, 504: metav1.StatusReasonTimeout,
}

func (s *wire) config() *rest.Config {
	return &rest.Config{Host: s.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

// executorOn returns an executor that talks to the server, and what it reports.
func executorOn(t *testing.T, config *rest.Config, held func() bool) (*Executor, chan machine.Event) {
	clients, err := NewClients(config, held)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := make(chan machine.Event, 2*bindLimit)
	h := NewExecutor(clients, func(e machine.Event) { outcomes <- e }, klog.Background())
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		h.Stop(ended, always)
		h.Close(ended)
		for _, c := range []rest.Interface{clients.Watch, clients.Policy, clients.Read, clients.Bind, clients.Status} {
			c.(*rest.RESTClient).Client.CloseIdleConnections()
		}
		clients.Bindings.Close()
		clients.Events.Close()
	})
	return h, outcomes
}

func always() bool { return true }

func testPod(name string) *object.Pod {
	return &object.Pod{UID: "uid-1", Namespace: "ns", Name: name, SchedulerName: "default-scheduler", Generation: 3}
}

// apiPod is the same pod as the API shows it.
func apiPod(name, node string) *v1.Pod {
	return &v1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid-1"},
		Spec:       v1.PodSpec{NodeName: node}}
}

func describe(e machine.Event) string {
	switch e := e.(type) {
	case machine.PodSet:
		return fmt.Sprintf("set %s %s", e.Pod.Key(), e.Pod.UID)
	case machine.PodDecodeFailed:
		return "unreadable " + e.Namespace + "/" + e.Name + " " + string(e.UID) + ": " + e.Why.Error()
	case machine.PodGone:
		return fmt.Sprintf("gone %s/%s %s", e.Namespace, e.Name, e.UID)
	case machine.NodeSet:
		return "set node " + e.Node.Name
	case machine.NodeGone:
		return "gone node " + e.Name
	case machine.BudgetSet:
		return "set budget " + e.Budget.Namespace + "/" + e.Budget.Name
	case machine.SelectorOwnerSet:
		return fmt.Sprintf("set owner %d %s/%s %v", e.Owner.Kind, e.Owner.Namespace, e.Owner.Name, e.Owner.Labels)
	case machine.SelectorOwnerGone:
		return fmt.Sprintf("gone owner %d %s/%s", e.Kind, e.Namespace, e.Name)
	}
	return fmt.Sprintf("%T", e)
}
