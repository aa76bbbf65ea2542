package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/resource"
)

// A pod whose scheduler has a name that is not UTF-8, which a client may send in
// protobuf and no API server checks, is shown, and does not end the process.
func TestResourcesOfAnOddName(t *testing.T) {
	p := &object.Pod{Namespace: "ns", Name: "p", SchedulerName: "a\xffb", Demand: resource.Demand{Requests: resource.Vector{MilliCPU: 1500}}}
	w := httptest.NewRecorder()
	Resources(func() []*object.Pod { return []*object.Pod{p} }).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics/resources", nil))
	want := `kube_pod_resource_request{namespace="ns",node="",pod="p",priority="0",resource="cpu",scheduler="a` + "\uFFFD" + `b",unit="cores"} 1.5`
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}
