package kube

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// Every kind of object has a client that watches it, and is decoded with its name, UID
// and version.
func TestEveryKindIsWatchedAndDecoded(t *testing.T) {
	clients, err := NewClients(&rest.Config{Host: "https://localhost"}, func() bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for kind := range object.Kinds {
		if clients.watcherOf(kind) == nil {
			t.Errorf("%s: no client watches it", kind)
		}
		o := decode.Empty(kind)
		o.SetName("name")
		o.SetUID("uid")
		o.SetResourceVersion("7")
		e := entries((&Watcher{}).objectSet)(o)
		if e == nil || e.Name != "name" {
			t.Fatalf("%s: entry %+v", kind, e)
		}
		want := object.Meta{Kind: kind, Name: "name", UID: "uid", Version: "7"}
		if got := *e.set.(machine.ObjectSet).Object.Head(); got != want {
			t.Errorf("%s: decoded as %+v", kind, got)
		}
	}
	if e := entries((&Watcher{}).objectSet)(&metav1.Status{}); e != nil {
		t.Errorf("a status is %+v", e)
	}
}
