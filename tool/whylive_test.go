package tool

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/manifest"
)

// The events of a running cluster count: those about the pod that is asked about, and those of
// controllers that could not make pods. They are bounded, and where they may not be read the
// answer does without and says so.
func TestWhyReadsEvents(t *testing.T) {
	denied := false
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		meta := metav1.TypeMeta{APIVersion: "v1", Kind: strings.TrimPrefix(r.URL.Path, "/")}
		var list any
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/api/v1/nodes"):
			meta.Kind = "NodeList"
			list = v1.NodeList{TypeMeta: meta, Items: []v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("10")}}}}}
		case strings.HasSuffix(path, "/api/v1/pods"):
			meta.Kind = "PodList"
			list = v1.PodList{TypeMeta: meta, Items: []v1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "u"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}}}
		case strings.HasSuffix(path, "/events"):
			asked = append(asked, path+"?"+r.URL.Query().Get("fieldSelector")+"&limit="+r.URL.Query().Get("limit"))
			if denied {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			meta.Kind = "EventList"
			e := v1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e"}, Reason: "FailedScheduling", Message: "binding rejected: policy says no",
				InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-0", UID: "u"}}
			if strings.Contains(r.URL.RawQuery, "FailedCreate") {
				e.Reason, e.Message, e.InvolvedObject = "FailedCreate", `admission webhook "x" denied the request`, v1.ObjectReference{Kind: "StatefulSet", Namespace: "shop", Name: "web"}
			}
			list = v1.EventList{TypeMeta: meta, Items: []v1.Event{e}}
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
	for call, want := range map[string]string{
		"why shop/web-0":      "shop/web-0 waits, and the cluster said last: binding rejected: policy says no",
		"why -n shop sts/web": "3 pods of statefulset/shop/web never made: admission webhook \"x\" denied the request",
	} {
		if status, out, errs := berth("", append(strings.Fields(call), "--kubeconfig", kubeconfig)...); status != exitWaiting || !strings.Contains(out, want) {
			t.Errorf("%s: exit status %d, want %q:\n%s%s", call, status, want, out, errs)
		}
	}
	for _, want := range []string{"/api/v1/namespaces/shop/events?involvedObject.kind=Pod,involvedObject.name=web-0,reason=FailedScheduling&limit=100", "/api/v1/namespaces/shop/events?reason=FailedCreate&limit=500"} {
		if !strings.Contains(strings.Join(asked, " "), want) {
			t.Errorf("asked for %q, not for %s", asked, want)
		}
	}
	denied = true
	if status, out, errs := berth("", "why", "shop/web-0", "--kubeconfig", kubeconfig); status != 0 || !strings.Contains(errs, "the answer does without") {
		t.Errorf("without the right to read events: exit status %d, %s%s", status, out, errs)
	}
}
