package coscheduling

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/gangscheduling"
)

// The arguments are those of the peer, with its bounds; Berth's own have theirs.
func TestArgs(t *testing.T) {
	for _, c := range []struct{ peer, labels, want string }{
		{"", "", ""},
		{`{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"CoschedulingArgs","permitWaitingTimeSeconds":0,"podGroupBackoffSeconds":0,"podGroupRejectPercentage":100}`, "", ""},
		{`{"permitWaitingTimeSeconds":-1}`, "", "permitWaitingTimeSeconds: Invalid value: -1: must not be negative"},
		{`{"permitWaitingTimeSeconds":9223372036854775807}`, "", ""},
		{`{"podGroupBackoffSeconds":-1}`, "", "podGroupBackoffSeconds: Invalid value: -1: must not be negative"},
		{`{"podGroupRejectPercentage":101}`, "", "podGroupRejectPercentage: Invalid value: 101: must be from 0 to 100"},
		{`{"podGroupRejectPercentage":-1}`, "", "podGroupRejectPercentage: Invalid value: -1: must be from 0 to 100"},
		{`{"prefixes":["a.b"]}`, "", `unknown field "prefixes"`},
		{`[]`, "", "cannot unmarshal array"},
		{"", `{"prefixes":["pod-group.scheduling.sigs.k8s.io"]}`, ""},
		{"", `{"prefixes":["a/b"]}`, `args.prefixes[0] of CoschedulingLabels: Invalid value: "a/b"`},
		{"", `{"prefixes":["a.b","a.b"]}`, "is there twice"},
		{"", `{"prefixes":["scheduling.x-k8s.io"]}`, "its groups are PodGroups"},
	} {
		_, err := New(Args{Peer: json.RawMessage(c.peer), Labels: json.RawMessage(c.labels)}, gangscheduling.New(), nil)
		if got := ""; err != nil {
			if got = err.Error(); c.want == "" || !strings.Contains(got, c.want) {
				t.Errorf("%s %s: %v, want %q", c.peer, c.labels, err, c.want)
			}
		} else if c.want != "" {
			t.Errorf("%s %s: accepted, want %q", c.peer, c.labels, c.want)
		}
	}
	for status, leaves := range map[string]bool{"": false, "{}": false, `{"write":true}`: false, `{"write":false}`: true} {
		if _, rules, err := (Args{Status: json.RawMessage(status)}).parse(); err != nil || rules.LeaveStatus != leaves {
			t.Errorf("%s: %+v, %v", status, rules, err)
		}
	}
	if _, err := New(Args{Status: json.RawMessage(`{"write":"no"}`)}, gangscheduling.New(), nil); err == nil || !strings.Contains(err.Error(), "args of CoschedulingStatus") {
		t.Errorf("a switch that is no bool: %v", err)
	}
	if wait, _, err := (Args{}).parse(); wait != time.Minute || err != nil {
		t.Errorf("by default a pod waits %v in Permit: %v", wait, err)
	}
}

// Higher priority comes first, then half-bound gangs, then who was created or came first. Names do not matter.
func TestLess(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	pod := func(name string, priority int32, active int64) *framework.QueuedPodInfo {
		return &framework.QueuedPodInfo{Pod: &object.Pod{Namespace: "d", Name: name, Priority: priority}, FirstActive: at(active), Timestamp: at(100)}
	}
	group := func(name string, priority int32, created time.Time, came int64) *framework.QueuedPodInfo {
		return &framework.QueuedPodInfo{Pod: &object.Pod{Namespace: "d", Name: "z", Priority: priority}, FirstActive: at(1), Timestamp: at(came),
			Group: &object.PodGroup{Meta: object.Meta{Namespace: "d", Name: name}, Source: "s", Created: created}}
	}
	half := group("half", 1, at(9), 9)
	half.HalfBound = true
	ordered := []*framework.QueuedPodInfo{
		pod("b", 5, 9), half, pod("a", 1, 2), group("old", 1, at(3), 200), pod("c", 1, 4), group("g", 1, at(5), 6),
		group("labels", 1, time.Time{}, 7), pod("a", 0, 1),
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if less(a, b) != (i < j) {
				t.Errorf("%d before %d: %t", i, j, less(a, b))
			}
		}
	}
	if g, h := group("g", 1, at(5), 6), group("h", 1, at(5), 6); less(g, h) || less(h, g) {
		t.Error("the name decides")
	}
}
