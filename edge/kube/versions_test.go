package kube

import (
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// An API server that serves resource.k8s.io in an older version only is
// understood: its objects come in as those of v1.
func TestOlderDeviceVersions(t *testing.T) {
	meta, item := metav1.ListMeta{ResourceVersion: "7"}, metav1.ObjectMeta{Name: "gpu", ResourceVersion: "3"}
	for version, classes := range map[string]any{
		"v1beta1": resourcev1beta1.DeviceClassList{ListMeta: meta, Items: []resourcev1beta1.DeviceClass{{ObjectMeta: item}},
			TypeMeta: metav1.TypeMeta{Kind: "DeviceClassList", APIVersion: "resource.k8s.io/v1beta1"}},
		"v1beta2": resourcev1beta2.DeviceClassList{ListMeta: meta, Items: []resourcev1beta2.DeviceClass{{ObjectMeta: item}},
			TypeMeta: metav1.TypeMeta{Kind: "DeviceClassList", APIVersion: "resource.k8s.io/v1beta2"}},
	} {
		t.Run(version, func(t *testing.T) {
			s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
				device := strings.HasPrefix(r.URL.Path, "/apis/resource.k8s.io/")
				switch q := r.URL.Query(); {
				case device && path.Base(path.Dir(r.URL.Path)) != version:
					answer(w, 404, nil)
				case q.Has("sendInitialEvents"):
					answer(w, 422, nil)
				case q.Has("watch") && device:
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(`{"type":"ADDED","object":{"kind":"DeviceClass","apiVersion":"resource.k8s.io/` + version +
						`","metadata":{"name":"nic","resourceVersion":"8"}}}`))
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				case q.Has("watch"):
					<-r.Context().Done()
				case device:
					answer(w, 200, classes)
				default:
					answer(w, 200, v1.List{TypeMeta: metav1.TypeMeta{Kind: "List", APIVersion: "v1"}, ListMeta: meta})
				}
			})
			source, events := watched(t, s, time.Hour, object.DeviceClasses)
			if !source.WaitForSync(t.Context()) {
				t.Fatal("not synced")
			}
			for range 2 { // one of the list, one of the watch
				if got := <-events; got != "machine.ObjectSet" {
					t.Errorf("posted %q", got)
				}
			}
		})
	}
}

// Lists that look for the version at the same time find it, each by itself. Where nothing
// is served, for a moment say, requests go to the version that was.
func TestVersionsAreLookedForAtOnce(t *testing.T) {
	asked, all := atomic.Int64{}, make(chan struct{}) // closed when all three have asked for v1
	served := atomic.Value{}
	served.Store("v1beta2")
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		version := path.Base(path.Dir(r.URL.Path))
		if version == "v1" {
			if asked.Add(1) == 3 {
				close(all)
			}
			<-all
		}
		if version != served.Load() {
			answer(w, 404, nil)
			return
		}
		answer(w, 200, resourcev1beta2.DeviceClassList{TypeMeta: metav1.TypeMeta{Kind: "DeviceClassList", APIVersion: "resource.k8s.io/v1beta2"}})
	})
	clients, err := NewClients(s.config(), always)
	if err != nil {
		t.Fatal(err)
	}
	lw := clients.devices.listWatch(clients.Devices, "deviceclasses")
	failed := make(chan error)
	for range 3 {
		go func() {
			_, err := lw.ListWithContextFunc(t.Context(), metav1.ListOptions{})
			failed <- err
		}()
	}
	for range 3 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	served.Store("none")
	if _, err := lw.ListWithContextFunc(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) || clients.devices.Load() != 1 {
		t.Errorf("%v; requests go to %s", err, deviceVersions[clients.devices.Load()])
	}
	clients.Devices.(*rest.RESTClient).Client.CloseIdleConnections()
}

// Claims are read, made and patched in the version that is served.
func TestWritesOfOlderDeviceVersions(t *testing.T) {
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
		answer(w, 200, resourcev1beta1.ResourceClaim{TypeMeta: metav1.TypeMeta{Kind: "ResourceClaim", APIVersion: "resource.k8s.io/v1beta1"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "uid-c", ResourceVersion: "9"}})
	})
	h, outcomes := executorOn(t, s.config(), always)
	h.clients.devices.Store(2)
	claim := object.Meta{Kind: object.ResourceClaims, Namespace: "ns", Name: "c", UID: "uid-c", Version: "8"}
	made := &resourcev1.ResourceClaim{TypeMeta: metav1.TypeMeta{Kind: "ResourceClaim", APIVersion: "resource.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	made.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}
	h.Do(machine.Write{Pod: testPod("p"), Writes: []framework.Write{
		{Object: claim, Create: made},
		{Object: claim, Subresource: "status", Patch: map[string]any{"status": map[string]any{}}},
	}})
	got := (<-outcomes).(machine.WriteReply)
	if got.Err != nil || len(got.Shown) != 2 || got.Shown[1].Head().Version != "9" {
		t.Errorf("got %+v", got)
	}
	first, second := <-s.requests, <-s.requests
	if first.Line != "POST /apis/resource.k8s.io/v1beta1/namespaces/ns/resourceclaims" ||
		!strings.Contains(first.Body, `"apiVersion":"resource.k8s.io/v1beta1"`) || !strings.Contains(first.Body, `"name":"r","deviceClassName":"gpu"`) {
		t.Errorf("sent %+v", first)
	}
	if second.Line != "PATCH /apis/resource.k8s.io/v1beta1/namespaces/ns/resourceclaims/c/status" {
		t.Errorf("sent %+v", second)
	}
}
