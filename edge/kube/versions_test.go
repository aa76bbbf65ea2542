package kube

import (
	"net/http"
	"path"
	"runtime"
	"strconv"
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

// An API server of an earlier version serves DeviceTaintRules in another version, or not at all,
// whatever it serves of the rest of the group. No pod waits for rules that there cannot be, but
// they are named as missing, and count once they are served.
func TestDeviceTaintRulesOfOlderServers(t *testing.T) {
	for _, status := range []int{404, 403} { // roles that do not name the rules forbid them
		testDeviceTaintRules(t, status)
	}
}

func testDeviceTaintRules(t *testing.T, unserved int) {
	served := atomic.Value{}
	served.Store("none")
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, body string) {
		version, rules := path.Base(path.Dir(r.URL.Path)), path.Base(r.URL.Path) == "devicetaintrules"
		switch q := r.URL.Query(); {
		case path.Base(path.Dir(r.URL.Path)) == "resource.k8s.io":
			answer(w, 200, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, APIResources: []metav1.APIResource{{Name: "deviceclasses"}}})
		case rules && served.Load() == "none":
			answer(w, unserved, nil)
		case rules && version != served.Load(), path.Base(r.URL.Path) == "deviceclasses" && version != "v1":
			answer(w, 404, nil)
		case q.Has("sendInitialEvents"):
			answer(w, 422, nil)
		case q.Has("watch"):
			<-r.Context().Done()
		case rules:
			answer(w, 200, resourcev1beta2.DeviceTaintRuleList{TypeMeta: metav1.TypeMeta{Kind: "DeviceTaintRuleList", APIVersion: "resource.k8s.io/v1beta2"},
				ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []resourcev1beta2.DeviceTaintRule{{ObjectMeta: metav1.ObjectMeta{Name: "r", ResourceVersion: "3"}}}})
		default:
			answer(w, 200, noObjects)
		}
	})
	source, events := watched(t, s, time.Hour, object.DeviceClasses, object.DeviceTaintRules)
	if !source.WaitForSync(t.Context()) {
		t.Fatal("not synced")
	}
	if missing := source.Missing(); len(missing) != 1 || missing[0].String() != "devicetaintrules.resource.k8s.io: not served" || missing[0].Required {
		t.Errorf("missing %v", missing)
	}
	served.Store("v1beta2")
	if got := <-events; got != "machine.ObjectSet" {
		t.Errorf("posted %q", got)
	}
	for len(source.Missing()) > 0 {
		runtime.Gosched() // the event is posted before the list counts as one
	}
	if len(events) > 0 {
		t.Errorf("%q is posted, too", <-events)
	}
}

// Where DeviceTaintRules are forbidden, discovery says whether there can be any: if no version
// has them, they are not served. One that fails or answers with something else proves nothing,
// and one that lags or flaps is asked at each list anew.
func TestDiscoveryThatFailsLagsOrFlaps(t *testing.T) {
	const without, with = `{"kind":"APIResourceList","resources":[{"name":"deviceclasses"}]}`, `{"kind":"APIResourceList","resources":[{"name":"devicetaintrules"}]}`
	var discovery atomic.Value
	s := newWire(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		body := discovery.Load().(string)
		status, err := strconv.Atoi(body)
		switch {
		case path.Base(r.URL.Path) == "devicetaintrules":
			answer(w, 403, nil)
		case err == nil:
			answer(w, status, nil)
		default:
			_, _ = w.Write([]byte(body))
		}
	})
	clients, err := NewClients(s.config(), always)
	if err != nil {
		t.Fatal(err)
	}
	defer clients.Devices.(*rest.RESTClient).Client.CloseIdleConnections()
	lw := clients.taintRules.listWatch(clients.Devices, "devicetaintrules")
	for _, body := range []string{
		"500", "403", "<html>", "", "null", "[]", `{"kind":"Status"}`, // fails
		without, without, with, // lags
		without, "503", with, "404", with, without, // flaps
	} {
		discovery.Store(body)
		_, err := lw.ListWithContextFunc(t.Context(), metav1.ListOptions{})
		if absent := body == without || body == "404"; apierrors.IsNotFound(err) != absent || apierrors.IsForbidden(err) == absent {
			t.Errorf("discovery says %s: error %v", body, err)
		}
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
