package extender

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"unicode/utf8"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/machine"
)

// canned answers every request with the same bytes.
type canned []byte

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(c))}, nil
}

// Whatever an extender replies, asking it ends with an error or with an answer
// about what it was asked, within bounds.
func FuzzReplies(f *testing.F) {
	for _, text := range []string{
		`{"nodenames":["a"]}`, `{"NodeNames":["b","a","a"],"FailedNodes":{"b":"no"}}`, `{"nodes":{"items":[{"metadata":{"name":"a"}}]}}`,
		`{"nodes":{"items":[{"metadata":{"name":"a"},"status":{"allocatable":{"cpu":"1e-999999999"}}}]}}`,
		`{"failedNodes":{"a":"x","b":"y"},"failedAndUnresolvableNodes":{"a":"z"}}`, `{"error":"no"}`, `null`, `[]`, `{}`, `"`, ``,
		`[{"host":"a","score":5},{"host":"a","score":900}]`, `[{"host":"c","score":5}]`, `[{"host":"a","score":-1}]`, `[{"host":"a","score":1e300}]`,
		`{"nodeNameToMetaVictims":{"a":{"pods":[{"uid":"x"}],"numPDBViolations":1}}}`, `{"nodeNameToMetaVictims":{"a":null}}`,
		`{"nodeNameToMetaVictims":{"a":{"pods":[null]}}}`, `{"nodeNameToMetaVictims":{"z":{"numPDBViolations":-1}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, reply []byte) {
		for _, cached := range []bool{true, false} {
			x, err := New([]configv1.Extender{{URLPrefix: "http://extender", FilterVerb: "f", PrioritizeVerb: "p", PreemptVerb: "e", BindVerb: "b", Weight: 1, NodeCacheCapable: cached}})
			if err != nil {
				t.Fatal(err)
			}
			x[0].client.Transport = canned(reply)
			checkFilter(t, x.Answer(t.Context(), question(machine.Filter)))
			for node, score := range x.Answer(t.Context(), question(machine.Prioritize)).Scores {
				if node != "a" && node != "b" || score < 0 || score > maxScore {
					t.Errorf("score %d of node %q", score, node)
				}
			}
			for _, l := range x.Answer(t.Context(), question(machine.Preempt)).Victims {
				if l.Violations < 0 {
					t.Errorf("%d violations", l.Violations)
				}
			}
			if result, err := x.Bind(t.Context(), machine.BindByExtender{Pod: pod("p"), Node: "a"}, always); (result == machine.BindDone) != (err == nil) {
				t.Errorf("result %v, error %v", result, err)
			}
		}
	})
}

func checkFilter(t *testing.T, answer machine.ExtenderReply) {
	t.Helper()
	if answer.Err != nil {
		return
	}
	for _, node := range answer.Passed {
		if node != "a" && node != "b" {
			t.Errorf("node %q passes", node)
		}
	}
	for _, reasons := range []map[string]string{answer.Failed, answer.Unresolvable} {
		for node, reason := range reasons {
			if node != "a" && node != "b" || len(reason) > maxReason+len(" ...") || !utf8.ValidString(reason) {
				t.Errorf("node %q fails: %d bytes", node, len(reason))
			}
		}
	}
}
