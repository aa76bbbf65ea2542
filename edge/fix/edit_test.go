package fix

import (
	"encoding/json"
	"testing"
)

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
			got := patched([]byte(c.doc), parse([]byte(c.doc)), c.ops)
			if got == nil {
				t.Fatalf("%v cannot be applied", c.ops)
			}
			a, _ := json.Marshal(parse(got))
			b, _ := json.Marshal(parse([]byte(c.want)))
			if string(a) != string(b) {
				t.Errorf("got %s, want %s", a, b)
			}
		})
	}
}
