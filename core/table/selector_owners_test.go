package table

import (
	"slices"
	"testing"

	"github.com/berth-scheduler/berth/core/object"
)

func service(namespace, name string, labels map[string]string) *object.SelectorOwner {
	return &object.SelectorOwner{Kind: object.Service, Namespace: namespace, Name: name, Labels: labels}
}

// A pod's Services are those of its namespace whose selector matches its
// labels.
func TestServicesAreFoundByTheLabelsOfPods(t *testing.T) {
	tb := New()
	tb.SelectorOwners().Set(service("a", "web", map[string]string{"app": "web"}))
	tb.SelectorOwners().Set(service("a", "canary", map[string]string{"app": "web", "track": "canary"}))
	tb.SelectorOwners().Set(service("a", "headless", nil))
	tb.SelectorOwners().Set(service("b", "other", map[string]string{"app": "web"}))
	tb.SelectorOwners().Set(&object.SelectorOwner{Kind: object.ReplicationController, Namespace: "a", Name: "web", Labels: map[string]string{"app": "web"}})
	find := func(namespace string, labels map[string]string) []string {
		var names []string
		for _, f := range tb.SelectorOwners().ServicesOf(&object.Pod{Namespace: namespace, Labels: labels}) {
			names = append(names, f.Name)
		}
		slices.Sort(names)
		return names
	}
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: services %v, want %v", what, got, want)
		}
	}
	check("one label", find("a", map[string]string{"app": "web", "x": "y"}), "web")
	check("both labels", find("a", map[string]string{"app": "web", "track": "canary"}), "canary", "web")
	check("other value", find("a", map[string]string{"app": "db"}))
	check("no labels", find("a", nil))
	check("other namespace", find("b", map[string]string{"app": "web"}), "other")

	tb.SelectorOwners().Set(service("a", "web", map[string]string{"app": "db"}))
	check("changed, old labels", find("a", map[string]string{"app": "web"}))
	check("changed, new labels", find("a", map[string]string{"app": "db"}), "web")
	tb.SelectorOwners().Remove(object.Service, "a", "web")
	tb.SelectorOwners().Remove(object.Service, "a", "canary")
	tb.SelectorOwners().Remove(object.Service, "a", "never-there")
	check("gone", find("a", map[string]string{"app": "db", "track": "canary"}))
	if len(tb.selectorOwners.services) != 1 || len(tb.SelectorOwners().List()) != 3 {
		t.Errorf("%d labels lead to Services and %d owners are left, want 1 and 3", len(tb.selectorOwners.services), len(tb.SelectorOwners().List()))
	}
}

// A pod's controller is found by kind, namespace and name.
func TestControllerOf(t *testing.T) {
	tb := New()
	rs := &object.SelectorOwner{Kind: object.ReplicaSet, Namespace: "a", Name: "web"}
	tb.SelectorOwners().Set(rs)
	for _, c := range []struct {
		pod  object.Pod
		want *object.SelectorOwner
	}{
		{object.Pod{Namespace: "a", Controller: object.Controller{Kind: object.ReplicaSet, Name: "web"}}, rs},
		{object.Pod{Namespace: "b", Controller: object.Controller{Kind: object.ReplicaSet, Name: "web"}}, nil},
		{object.Pod{Namespace: "a", Controller: object.Controller{Kind: object.StatefulSet, Name: "web"}}, nil},
		{object.Pod{Namespace: "a"}, nil},
	} {
		if got := tb.SelectorOwners().ControllerOf(&c.pod); got != c.want {
			t.Errorf("controller of %+v: %v", c.pod.Controller, got)
		}
	}
}
