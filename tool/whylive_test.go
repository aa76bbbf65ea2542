package tool

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
)

// The events of a running cluster count: those about the pod or the workload that is asked about,
// and with --all those of controllers that could not make pods. They are bounded, and a note says
// so where there are more. Where they or the workloads cannot be read, for whatever reason, the
// answer does without and says so.
func TestWhyReadsEvents(t *testing.T) {
	broken, status := "", 0 // the end of the path that is answered with that status, 0: never
	more := ""
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		meta := metav1.TypeMeta{APIVersion: "v1", Kind: strings.TrimPrefix(r.URL.Path, "/")}
		var list any
		switch path := r.URL.Path; {
		case broken != "" && strings.HasSuffix(path, broken):
			if status == 0 {
				<-r.Context().Done()
				return
			}
			w.WriteHeader(status)
			return
		case strings.HasSuffix(path, "/api/v1/nodes"):
			meta.Kind = "NodeList"
			list = v1.NodeList{TypeMeta: meta, Items: []v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("10")}}}}}
		case strings.HasSuffix(path, "/api/v1/pods"):
			meta.Kind = "PodList"
			list = v1.PodList{TypeMeta: meta, Items: []v1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "u"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}}}
		case strings.HasSuffix(path, "/events"):
			asked = append(asked, path+"?"+r.URL.Query().Get("fieldSelector")+"&limit="+r.URL.Query().Get("limit"))
			meta.Kind = "EventList"
			e := v1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e"}, Reason: "FailedScheduling", Message: "binding rejected: policy says no",
				InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-0", UID: "u"}}
			if strings.Contains(r.URL.RawQuery, "FailedCreate") {
				e.Reason, e.Message, e.InvolvedObject = "FailedCreate", `admission webhook "x" denied the request`, v1.ObjectReference{Kind: "StatefulSet", Namespace: "shop", Name: "web"}
			}
			list = v1.EventList{TypeMeta: meta, ListMeta: metav1.ListMeta{Continue: more}, Items: []v1.Event{e}}
		case strings.HasSuffix(path, "/resourceclaimtemplates"): // controllers read them, and new pods want them: they are listed once
			_, _ = w.Write([]byte(`{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplateList", "items": [{"metadata": {"namespace": "shop", "name": "gpu"}, "spec": {"spec": {}}}]}`))
			return
		case strings.HasSuffix(path, "/statefulsets"):
			_, _ = w.Write([]byte(`{"apiVersion": "apps/v1", "kind": "StatefulSetList", "items": [{"metadata": {"namespace": "shop", "name": "web"}, "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}}}]}`))
			return
		default:
			kinds := slices.Concat(decode.Kinds, manifest.OfNewPods)
			for i := range kinds {
				if k := &kinds[i]; strings.HasSuffix(path, k.GroupVersion.String()+"/"+k.Resource) {
					list = &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: k.GroupVersion.String(), Kind: k.Name + "List"}}
				}
			}
			if list == nil {
				w.WriteHeader(http.StatusNotFound)
				return
			}
		}
		_ = json.NewEncoder(w).Encode(list)
	}))
	defer s.Close()
	kubeconfig := kubeconfigFor(t, s.URL)
	never := "3 pods of statefulset/shop/web never made: admission webhook \"x\" denied the request"
	calls := map[string]string{"why shop/web-0": "shop/web-0 waits, and the cluster said last: binding rejected: policy says no", "why -n shop sts/web": never, "why --all": never}
	for call, want := range calls {
		if status, out, errs := berth("", append(strings.Fields(call), "--kubeconfig", kubeconfig)...); status != exitWaiting || !strings.Contains(out, want) || strings.Contains(errs, "are read") {
			t.Errorf("%s: exit status %d, want %q:\n%s%s", call, status, want, out, errs)
		}
	}
	if status, out, errs := berth("", "why", "-n", "shop", "web", "--kubeconfig", kubeconfig); status != exitInvalid || out != "" || errs != "berth: pod shop/web: there is no such pod; there is statefulset shop/web: give statefulset/web\n" {
		t.Errorf("a name of a workload: exit status %d, %q %q", status, out, errs)
	}
	slices.Sort(asked)
	want := []string{
		"/api/v1/events?reason=FailedCreate&limit=500",
		"/api/v1/events?reason=Preempted&limit=500",
		"/api/v1/namespaces/shop/events?involvedObject.kind=Pod,involvedObject.name=web-0,reason=FailedScheduling&limit=100",
		"/api/v1/namespaces/shop/events?involvedObject.kind=StatefulSet,involvedObject.name=web,reason=FailedCreate&limit=100",
		"/api/v1/namespaces/shop/events?reason=Preempted&limit=500",
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
	more = "next"
	for call, want := range map[string]string{"why shop/web-0": "reason=FailedScheduling", "why -n shop sts/web": "reason=FailedCreate", "why --all": "with reason=FailedCreate"} {
		_, _, errs := berth("", append(strings.Fields(call), "--kubeconfig", kubeconfig)...)
		if !strings.Contains(errs, want+" are read; the answer does without the others") {
			t.Errorf("%s: %q on the events that are not read", call, errs)
		}
	}
	for _, status = range []int{http.StatusForbidden, http.StatusGatewayTimeout, http.StatusInternalServerError, 0} {
		for _, broken = range []string{"/events", "/deployments"} {
			for call := range calls {
				args := append(strings.Fields(call), "--kubeconfig", kubeconfig)
				if status == 0 {
					args = append(args, "--timeout=300ms")
				}
				got, out, errs := berth("", args...)
				if wants := call != "why shop/web-0" || broken == "/events"; got == exitInvalid || out == "" || strings.Contains(errs, "the answer does without what was not read") != wants {
					t.Errorf("%s, with status %d of %s: exit status %d, %s%s", call, status, broken, got, out, errs)
				}
			}
		}
	}
}

// The events of a Deployment's ReplicaSets count, of the newest so many, and a note says how many
// others are not asked for.
func TestWhyOfAWorkloadReadsTheEventsBelowIt(t *testing.T) {
	asked := map[string]bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var items []string
		kind := "PartialObjectMetadata"
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/deployments"):
			kind, items = "Deployment", []string{`{"metadata": {"namespace": "shop", "name": "web", "uid": "d"}}`}
		case strings.HasSuffix(path, "/replicasets"):
			kind = "ReplicaSet"
			for i := range 30 {
				items = append(items, fmt.Sprintf(`{"metadata": {"namespace": "shop", "name": "web-%02d", "creationTimestamp": "2026-01-31T12:00:%02dZ", "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": true}]}}`, i, i))
			}
		case strings.HasSuffix(path, "/events"):
			kind = "Event"
			asked[r.URL.Query().Get("fieldSelector")] = true
		}
		version := strings.TrimPrefix(path.Dir(r.URL.Path), "/apis/")
		for _, k := range slices.Concat(decode.Kinds, manifest.OfNewPods, manifest.Controllers) {
			if kind == "PartialObjectMetadata" && strings.HasSuffix(r.URL.Path, k.GroupVersion.String()+"/"+k.Resource) {
				kind = k.Name
			}
		}
		fmt.Fprintf(w, `{"apiVersion": %q, "kind": "%sList", "items": [%s]}`, strings.TrimPrefix(version, "/api/"), kind, strings.Join(items, ", "))
	}))
	defer s.Close()
	status, out, errs := berth("", "why", "-n", "shop", "deploy/web", "--kubeconfig", kubeconfigFor(t, s.URL))
	first, last := "involvedObject.kind=ReplicaSet,involvedObject.name=web-29,reason=FailedCreate", "involvedObject.kind=ReplicaSet,involvedObject.name=web-11,reason=FailedCreate"
	if status != 0 || len(asked) != mostMakers+1 || !asked["reason=Preempted"] || !asked[first] || !asked[last] || !asked["involvedObject.kind=Deployment,involvedObject.name=web,reason=FailedCreate"] ||
		!strings.Contains(errs, "note: the events of 11 older ReplicaSets of deployment/shop/web are not read") {
		t.Errorf("exit status %d, %s%s; asked for %d: %v", status, out, errs, len(asked), asked)
	}
}

// Whatever a command reads of a cluster counts for one bound.
func TestOneBoundOfAnswers(t *testing.T) {
	q := whyOptions{source: source{api: connectionTo(kubeconfigFor(t, "http://127.0.0.1:1"), "")}}
	first, err := q.connect()
	again, errAgain := q.connect()
	if err != nil || errAgain != nil || first != again {
		t.Errorf("%v, %v: another way to the cluster, with a bound of its own", err, errAgain)
	}
}
