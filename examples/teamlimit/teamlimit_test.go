package teamlimit

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

func pod(name, team string) *object.Pod {
	return &object.Pod{UID: types.UID(name), Namespace: "ns", Name: name, Labels: map[string]string{label: team}}
}

func newPlugin(t *testing.T, args string) framework.Plugin {
	t.Helper()
	pl, err := New(json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	return *pl
}

// A node that has maxPods pods of the team is rejected, and of the others the one
// with the fewest scores best.
func TestTeamLimit(t *testing.T) {
	pl := newPlugin(t, `{"maxPods": 2}`)
	tb := plugintest.Table(&object.Node{Name: "empty"}, &object.Node{Name: "one"}, &object.Node{Name: "two"})
	tb.AddPod(pod("a", "red"), "one")
	tb.AddPod(pod("b", "red"), "two")
	tb.AddPod(pod("c", "red"), "two")
	tb.AddPod(pod("d", "blue"), "empty")

	got := plugintest.Ask(t, pl, tb, pod("p", "red"))
	want := map[string]string{"empty": "", "one": "", "two": "Unschedulable: node(s) had too many pods of the team"}
	if !maps.Equal(got.Blocked, want) {
		t.Errorf("got %v, want %v", got.Blocked, want)
	}
	if want := map[string]int64{"empty": 0, "one": 1, "two": 2}; !maps.Equal(got.Scores, want) {
		t.Errorf("raw scores %v, want %v", got.Scores, want)
	}
	if want := map[string]int64{"empty": 100, "one": 0}; !maps.Equal(got.Normalized(pl), want) {
		t.Errorf("scores %v, want %v", got.Normalized(pl), want)
	}
	if got := plugintest.Ask(t, pl, tb, pod("q", "")); got.Blocked != nil || got.Scores != nil {
		t.Errorf("a pod without a team: %+v", got)
	}
}

// Pods of the same signature get the same answers, so the signature tells teams
// and namespaces apart.
func TestSign(t *testing.T) {
	pl := newPlugin(t, "")
	other := pod("p", "red")
	other.Namespace = "other"
	seen := map[string]bool{}
	for _, p := range []*object.Pod{pod("p", ""), pod("p", "red"), pod("p", "blue"), other} {
		seen[string(pl.Sign(nil, nil, p))] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d signatures, want 4", len(seen))
	}
}

// A rejected pod is tried again when a pod of its team leaves a node, and not
// when another does.
func TestQueueingHint(t *testing.T) {
	pl := newPlugin(t, "")
	for team, want := range map[string]bool{"red": true, "blue": false} {
		e := framework.Event{Resource: framework.AssignedPod, ActionType: framework.Delete, OldPod: pod("gone", team)}
		if got := plugintest.Queues(pl, pod("p", "red"), e); got != want {
			t.Errorf("a pod of team %s is gone: %v, want %v", team, got, want)
		}
	}
}

// Arguments that make no sense are refused with the reason.
func TestBadArgsAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		`{"maxPods": 0}`:   "maxPods: Invalid value: 0: must be at least 1",
		`{"maxPods": "2"}`: "cannot unmarshal string",
	} {
		if _, err := New(json.RawMessage(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", args, err, want)
		}
	}
}

// The guide shows this code as it is.
func TestGuideShowsTheCode(t *testing.T) {
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	code := read("teamlimit.go") + read("teamlimit_test.go") + read("../teamlimit-scheduler/main.go") + read("../teamlimit-scheduler/config.yaml")
	blocks := strings.Split(read("../../docs/plugins.md"), "\n```")
	shown := 0
	for i := 1; i < len(blocks); i += 2 {
		language, text, _ := strings.Cut(blocks[i], "\n")
		if language != "go" && language != "yaml" {
			continue
		}
		if shown++; !strings.Contains(code, text) {
			t.Errorf("docs/plugins.md shows what the example does not have:\n%s", text)
		}
	}
	if shown < 5 {
		t.Errorf("docs/plugins.md shows %d blocks of code", shown)
	}
}
