package kube

import (
	"encoding/binary"
	"net/http"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
)

// unheard is a field that this version does not know, on the wire: number 1999, a string.
var unheard = []byte{0xfa, 0x7c, 3, 'n', 'e', 'w'}

// An API server of a later minor release says more than this version knows: fields, and values
// of fields. What is known of the object counts, in the binary format and in JSON.
func TestNewerAPIServer(t *testing.T) {
	pod := apiPod("p", "n")
	pod.Spec.RestartPolicy = "Later"
	pod.Status.Phase = "Later"
	pod.Spec.Tolerations = []v1.Toleration{{Key: "k", Operator: "Later"}}
	raw, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	list := v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	inner, err := list.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	raw = append(raw, unheard...)
	inner = append(append(append(inner, 0x12), binary.AppendUvarint(nil, uint64(len(raw)))...), raw...) // items
	wrapped, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Raw: append(inner, unheard...)}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for format, body := range map[string]string{
		runtime.ContentTypeProtobuf: "k8s\x00" + string(wrapped),
		runtime.ContentTypeJSON: `{"kind":"PodList","apiVersion":"v1","new":1,"metadata":{"resourceVersion":"7","new":{}},"items":[` +
			`{"metadata":{"namespace":"ns","name":"p","uid":"uid-1","new":[1]},"spec":{"nodeName":"n","new":{"a":1},"restartPolicy":"Later",` +
			`"tolerations":[{"key":"k","operator":"Later","new":true}]},"status":{"phase":"Later","new":"x"}}]}`,
	} {
		s := newWire(t, func(w http.ResponseWriter, r *http.Request, _ string) {
			if r.URL.Query().Has("sendInitialEvents") || r.URL.Path != "/api/v1/pods" {
				answer(w, 422, nil)
				return
			}
			w.Header().Set("Content-Type", format)
			_, _ = w.Write([]byte(body))
		})
		config := s.config()
		config.ContentType = format
		clients, err := NewClients(config, always)
		if err != nil {
			t.Fatal(err)
		}
		var got []machine.Event
		source := NewWatcher(clients, nil, func(e machine.Event) { got = append(got, e) }, klog.Background())
		store := source.stores[len(source.stores)-1]
		pods, err := store.list(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		items, err := objectsOf(pods)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Replace(items, "7"); err != nil || source.BadObjects() > 0 {
			t.Fatalf("%s: %v, %d bad objects", format, err, source.BadObjects())
		}
		if len(got) != 1 || describe(got[0]) != "set ns/p uid-1" || got[0].(machine.PodSet).Pod.NodeName != "n" {
			t.Errorf("%s: got %v", format, got)
		}
		clients.Watch.(*rest.RESTClient).Client.CloseIdleConnections()
	}
}

func objectsOf(list runtime.Object) (objects []any, err error) {
	return objects, meta.EachListItem(list, func(o runtime.Object) error { objects = append(objects, o); return nil })
}
