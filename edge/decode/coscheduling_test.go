package decode

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/core/object"
)

// Of a PodGroup of scheduling.x-k8s.io its minimum and its timeout count, and what is wrong
// with the minimum is said.
func TestCoschedulingGroup(t *testing.T) {
	const should = ", and should be a number of pods, at least 1"
	for body, want := range map[string]string{
		`{"spec":{"minMember":3,"minResources":{"cpu":"3"},"scheduleTimeoutSeconds":10},"status":{"phase":"Running","running":3}}`: "3 10s cpu 3 ",
		`{"spec":{"minMember":2147483647}}`: "2147483647 0s ",
		`{"spec":{"minMember":2147483648}}`: "0 0s spec.minMember of the PodGroup scheduling.x-k8s.io/g is 2147483648" + should,
		`{"spec":{"minMember":0}}`:          "0 0s spec.minMember of the PodGroup scheduling.x-k8s.io/g is 0" + should,
		`{"spec":{"minMember":-1}}`:         "0 0s spec.minMember of the PodGroup scheduling.x-k8s.io/g is -1" + should,
		`{"spec":{"minMember":1.5}}`:        "0 0s spec.minMember of the PodGroup scheduling.x-k8s.io/g is 1.5" + should,
		`{"spec":{"minMember":"3"}}`:        `0 0s spec.minMember of the PodGroup scheduling.x-k8s.io/g is "3"` + should,
		`{"spec":{"minMember":null}}`:       "0 0s spec.minMember of the PodGroup scheduling.x-k8s.io/g is null" + should,
		`{"spec":"all","status":[]}`:        `0 0s spec.minMember of the PodGroup scheduling.x-k8s.io/g is "all"` + should,
		`{"metadata":{"annotations":{"berth.dev/required-topology":"zone","berth.dev/preferred-topology":"rack"}},"spec":{"minMember":1}}`: "1 0s ",
		`{}`: "0 0s the PodGroup scheduling.x-k8s.io/g lacks spec.minMember",
		`{"spec":{"minMember":1,"minResources":7,"scheduleTimeoutSeconds":"x"},"status":{"phase":{}}}`: "1 0s ",
		`{"spec":{"minMember":1,"minResources":{"cpu":"much","memory":"-1","example.com/gpu":8}}}`:     "1 0s example.com/gpu 8, memory 0 ",
		`{"spec":{"minMember":1,"scheduleTimeoutSeconds":-1}}`:                                         "1 0s ",
		`{"metadata":{"name":"g","labels":7},"spec":{"minMember":1}}`:                                  `0 0s spec.minMember of the PodGroup scheduling.x-k8s.io/g is "not known, as the metadata cannot be read"` + should,
	} {
		g := &PodGroup{}
		if err := json.Unmarshal([]byte(body), g); err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		g.Name = "g"
		got := Object(g).(*object.PodGroup)
		if text := fmt.Sprintf("%d %s %s%s", got.MinCount, got.PermitTimeout, spaced(got.Needs()), got.Fault); text != want {
			t.Errorf("%s: got %s, want %s", body, text, want)
		}
		if topology := got.Required + got.Preferred; topology != strings.Repeat("zonerack", strings.Count(body, "annotations")) {
			t.Errorf("%s: its levels are %q", body, topology)
		}
		if !got.Gang || got.Source != object.SchedulerPlugins || got.Kind != object.CoschedulingGroups {
			t.Errorf("%s: got %+v", body, got)
		}
		data, err := g.Marshal()
		again := &PodGroup{}
		if err != nil || again.Unmarshal(data) != nil || !reflect.DeepEqual(Object(again), got) {
			t.Errorf("%s: in a record %s", body, data)
		}
	}
}

// spaced returns the amounts and a space; "" for none.
func spaced(list object.Amounts) string {
	if len(list) == 0 {
		return ""
	}
	return list.String() + " "
}

// A PodGroup of another shape does not end the list of the others.
func TestCoschedulingGroupsOfAnotherShape(t *testing.T) {
	body := `{"kind":"PodGroupList","apiVersion":"scheduling.x-k8s.io/v1alpha1","metadata":{"resourceVersion":"9"},"items":[
		{"metadata":{"namespace":"a","name":"g","resourceVersion":"1"},"spec":{"minMember":2}},
		{"metadata":{"namespace":"b","name":"g","uid":"u","resourceVersion":"2","creationTimestamp":"never"},"spec":{"minMember":2}},
		{"metadata":{"namespace":"c","name":"g","resourceVersion":"3"},"spec":{"minMember":[1]}}]}`
	read, _, err := Named(object.CoschedulingGroups.String()).Codecs().UniversalDeserializer().Decode([]byte(body), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range read.(*PodGroupList).Items {
		o := Object(&g).(*object.PodGroup)
		got = append(got, fmt.Sprintf("%s %s %s %t", o.Key(), o.UID, o.Version, o.Fault == ""))
	}
	if want := []string{"a/g  1 true", "b/g u 2 false", "c/g  3 false"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A copy shares nothing with the PodGroup that it is of.
func TestCopyOfACoschedulingGroup(t *testing.T) {
	g := PodGroup{Spec: PodGroupSpec{MinMember: json.RawMessage("2")}, Status: PodGroupStatus{Phase: json.RawMessage(`"A"`)}}
	g.Labels = map[string]string{"a": "b"}
	c := (&PodGroupList{Items: []PodGroup{g}}).DeepCopyObject().(*PodGroupList)
	c.Items[0].Spec.MinMember[0], c.Items[0].Status.Phase[1], c.Items[0].Labels["a"] = '3', 'B', "c"
	if string(g.Spec.MinMember) != "2" || string(g.Status.Phase) != `"A"` || g.Labels["a"] != "b" {
		t.Errorf("%+v", g)
	}
}

// Two kinds have one name in manifests, and are told apart.
func TestKindsOfOneName(t *testing.T) {
	for kind, want := range map[object.Kind]string{object.PodGroups: "scheduling.k8s.io/v1beta1/PodGroup", object.CoschedulingGroups: "scheduling.x-k8s.io/v1alpha1/PodGroup"} {
		if k := Named(kind.String()); k == nil || k.Key() != want || k.Custom() != (kind == object.CoschedulingGroups) || Of(Empty(kind)) != k {
			t.Errorf("%s is %+v", kind, k)
		}
	}
}

// A status keeps the fields that can be read. The owners of a pod are named as the status does.
func TestStatusOfACoschedulingGroup(t *testing.T) {
	for body, want := range map[string]object.GroupStatus{
		`{}`: {},
		`{"status":{"phase":"Running","occupiedBy":"d/j","running":3,"succeeded":2,"failed":1}}`:   {Phase: object.GroupRunning, OccupiedBy: "d/j", Running: 3, Succeeded: 2, Failed: 1},
		`{"status":{"phase":7,"occupiedBy":{},"running":"x","succeeded":1.5,"failed":4294967296}}`: {},
	} {
		g := &PodGroup{}
		if err := json.Unmarshal([]byte(body), g); err != nil {
			t.Fatal(err)
		}
		if got := Object(g).(*object.PodGroup).Status; got != want {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", OwnerReferences: []metav1.OwnerReference{{Name: "z"}, {Name: "j"}}}}
	if got := Pod(p).Owners(); got != "" {
		t.Errorf("a pod of no group: %s", got)
	}
	p.Labels = map[string]string{object.PodGroupLabel: "g"}
	if got := Pod(p); got.Owners() != "d/j,d/z" || got.PodGroup() != "" {
		t.Errorf("%s of %s", got.PodGroup(), got.Owners())
	}
}
