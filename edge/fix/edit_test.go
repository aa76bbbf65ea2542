package fix

import (
	"encoding/json"
	"reflect"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	v1 "k8s.io/api/core/v1"
)

// applied is the document after the operations as they are written down.
func applied(t *testing.T, doc string, ops []Op) []byte {
	t.Helper()
	text, err := json.Marshal(render(parse([]byte(doc)), ops))
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := patch.Apply([]byte(doc))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// What is tried is what is written down: operations on an object come to the same as
// JSON Patch on its JSON.
func TestPatch(t *testing.T) {
	const pod = `{"metadata":{"name":"p","labels":{"a":"1"}},"spec":{"nodeSelector":{"x":"1","e.com/y":"2"},"priorityClassName":"low",
		"schedulingGates":[{"name":"g"},{"name":"h"}],
		"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
			{"matchExpressions":[{"key":"a","operator":"Exists"},{"key":"b","operator":"In","values":["1"]},{"key":"c","operator":"Exists"}]}]}}},
		"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule"}],
		"containers":[{"name":"c","resources":{"limits":{"cpu":"2"}},"ports":[{"containerPort":1,"hostPort":1}]},{"name":"d","resources":{"requests":{"cpu":"1"}}}]}}`
	for name, ops := range map[string][]Op{
		"a key with a slash":   {{Op: "remove", Path: "/spec/nodeSelector/e.com~1y"}},
		"what has more in it":  {{Op: "remove", Path: "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"}},
		"a list":               {{Op: "remove", Path: "/spec/schedulingGates"}},
		"a map that is there":  {{Op: "add", Path: "/metadata/labels/b", Value: "2"}, {Op: "replace", Path: "/metadata/labels/a", Value: "3"}},
		"a map that is not":    {{Op: "add", Path: "/spec/containers/0/resources/requests/cpu", Value: "1"}, {Op: "add", Path: "/metadata/annotations/b", Value: "2"}},
		"an amount":            {{Op: "replace", Path: "/spec/containers/1/resources/requests/cpu", Value: "500m"}},
		"numbers":              {{Op: "replace", Path: "/spec/topologySpreadConstraints/0/maxSkew", Value: int64(3)}, {Op: "replace", Path: "/spec/containers/0/ports/0/hostPort", Value: int32(7)}},
		"a pointer":            {{Op: "add", Path: "/spec/priority", Value: int32(5)}, {Op: "remove", Path: "/spec/priorityClassName"}},
		"values of a list":     {{Op: "add", Path: "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/1/values/-", Value: "2"}},
		"two members that go":  {{Op: "remove", Path: "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0"}, {Op: "remove", Path: "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/1"}},
		"a list that is new":   {{Op: "add", Path: "/spec/tolerations/-", Value: map[string]any{"key": "a", "operator": "Exists"}}, {Op: "add", Path: "/spec/tolerations/-", Value: map[string]any{"key": "b"}}},
		"a change and removal": {{Op: "remove", Path: "/spec/containers/0"}, {Op: "replace", Path: "/spec/containers/1/resources/requests/cpu", Value: "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got, want v1.Pod
			if err := json.Unmarshal([]byte(pod), &got); err != nil {
				t.Fatal(err)
			}
			if err := patch(&got, ops); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(applied(t, pod, ops), &want); err != nil {
				t.Fatal(err)
			}
			a, _ := json.Marshal(&got) // a quantity keeps how it was made
			b, _ := json.Marshal(&want)
			if !reflect.DeepEqual(parse(a), parse(b)) {
				t.Errorf("got %s, want %s", a, b)
			}
		})
	}
}

// What is not there can be neither removed nor replaced.
func TestPatchAbsent(t *testing.T) {
	for _, op := range []Op{
		{Op: "remove", Path: "/spec/nodeSelector/x"}, {Op: "remove", Path: "/spec/tolerations/0"}, {Op: "remove", Path: "/spec/unheardOf"},
		{Op: "replace", Path: "/metadata/labels/x", Value: "y"}, {Op: "add", Path: "/spec/priority", Value: "high"}, {Op: "add", Path: "/metadata/name/x", Value: "y"},
	} {
		if err := patch(&v1.Pod{}, []Op{op}); err == nil {
			t.Errorf("%s of %s is no error", op.Op, op.Path)
		}
	}
}

// Operations are written so that none is in the way of another: what is not there
// is added once, with all that goes below it, and members of lists are removed from
// the back.
func TestRender(t *testing.T) {
	for name, c := range map[string]struct {
		doc  string
		ops  []Op
		want string
	}{
		"two tolerations and no list": {
			`{"spec":{}}`,
			[]Op{{Op: "add", Path: "/spec/tolerations/-", Value: "a"}, {Op: "add", Path: "/spec/tolerations/-", Value: "b"}},
			`{"spec":{"tolerations":["a","b"]}}`,
		},
		"a list that is there": {
			`{"spec":{"tolerations":["x"]}}`,
			[]Op{{Op: "add", Path: "/spec/tolerations/-", Value: "a"}},
			`{"spec":{"tolerations":["x","a"]}}`,
		},
		"requests where there are only limits": {
			`{"c":[{"resources":{"limits":{"cpu":"2"}}}]}`,
			[]Op{{Op: "add", Path: "/c/0/resources/requests/cpu", Value: "1"}, {Op: "add", Path: "/c/0/resources/requests/memory", Value: "1Gi"}},
			`{"c":[{"resources":{"limits":{"cpu":"2"},"requests":{"cpu":"1","memory":"1Gi"}}}]}`,
		},
		"members of a list, more than ten": {
			`{"l":[0,1,2,3,4,5,6,7,8,9,10]}`,
			[]Op{{Op: "remove", Path: "/l/2"}, {Op: "remove", Path: "/l/10"}, {Op: "replace", Path: "/l/3", Value: "x"}},
			`{"l":[0,1,"x",4,5,6,7,8,9]}`,
		},
		"a name with a slash": {
			`{"metadata":{}}`,
			[]Op{{Op: "add", Path: "/metadata/labels/" + escape("example.com/a~b"), Value: "v"}},
			`{"metadata":{"labels":{"example.com/a~b":"v"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := applied(t, c.doc, c.ops)
			a, _ := json.Marshal(parse(got))
			b, _ := json.Marshal(parse([]byte(c.want)))
			if string(a) != string(b) {
				t.Errorf("got %s, want %s", a, b)
			}
		})
	}
}
