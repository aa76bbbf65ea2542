package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/queue"
)

// What fails after the pod was assumed is undone, told, and tried again.
func TestFailures(t *testing.T) {
	tests := []struct {
		point string
		mood  mood
		says  string
		place queue.Place
	}{
		{"PreFilter", fails, `running PreFilter plugin "Moody": out of sorts`, queue.ErrorBackoff},
		{"PreFilter", rejects, "0/1 nodes are available: not in the mood. nobody to preempt", queue.Unschedulable},
		{"PreScore", fails, `running PreScore plugin "Moody": out of sorts`, queue.ErrorBackoff},
		{"Reserve", fails, `running Reserve plugin "Moody": out of sorts`, queue.ErrorBackoff},
		{"Reserve", rejects, "0/1 nodes are available: 1 not in the mood.", queue.Unschedulable},
		{"Reserve", pends, "0/1 nodes are available: 1 not in the mood yet.", queue.Unschedulable},
		{"Permit", fails, `running Permit plugin "Moody": out of sorts`, queue.ErrorBackoff},
		{"Permit", rejects, "0/1 nodes are available: 1 not in the mood.", queue.Unschedulable},
		{"PreBind", fails, `running PreBind plugin "Moody": out of sorts`, queue.ErrorBackoff},
		{"PreBind", rejects, "0/1 nodes are available: 1 not in the mood.", queue.Unschedulable},
		{"Bind", passes, `no Bind plugin of profile "test-scheduler" binds pod ns/p: each of them skips it`, queue.ErrorBackoff},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.point, " ", test.mood), func(t *testing.T) {
			s := newStory(t)
			p := s.pod("p", 40)
			s.given(s.node("n", 40), p)
			if test.point == "PreScore" {
				s.given(s.node("m", 40)) // or nothing is scored
			}
			s.cycle(test.point, test.mood)
			s.where(p, test.place)
			s.used(0)
			last := s.effects[len(s.effects)-2:]
			if a, ok := last[0].(PublishEvent); !ok || a.Note != test.says {
				t.Errorf("did %q, want %q", shown(s.effects), test.says)
			}
			if c := last[1].(PatchStatus).Condition; c == nil || c.Message != test.says || (c.Reason == v1.PodReasonSchedulerError) != (test.place == queue.ErrorBackoff) {
				t.Errorf("the condition is %+v", c)
			}
			if r, u := count(s, "Reserve p"), count(s, "Unreserve p"); r != u {
				t.Errorf("calls %v", s.moody.calls)
			}
			s.given(s.node("n", 40)) // a new mood
			s.settle()
			s.checkRest()
			if s.pods[p.Key()].NodeName == "" {
				t.Error("is not tried again")
			}
		})
	}
}

// A panic, wherever it is raised, costs the pod at hand one attempt at most.
func TestPanics(t *testing.T) {
	points := map[string]bool{ // whether the attempt goes on
		"Sign": false, "Epoch": false, "PreFilter": false, "Filter": false, "Explain": false, "PostFilter": false,
		"PreScore": false, "Score": false, "NormalizeScore": false, "Reserve": false, "Permit": false, "PreBind": false, "Bind": false,
		"PreEnqueue": true, "Less": true,
	}
	for _, point := range slices.Sorted(maps.Keys(points)) {
		t.Run(point, func(t *testing.T) {
			s := newStory(t)
			p, big := s.pod("p", 10), s.pod("big", 90)
			s.given(s.node("n", 40), s.node("m", 40))
			s.setPod(p)
			s.setPod(big)
			switch {
			case points[point]:
				s.tellPod()
				s.moody.moods[point] = panics
				s.tellPod()
			case point == "Explain" || point == "PostFilter":
				s.tellAll()
				s.cycle("", "")
				s.cycle(point, panics)
			default:
				if point == "Sign" { // the class is found at arrival
					s.moody.moods[point] = panics
				}
				s.tellAll()
				s.cycle(point, panics)
				s.where(p, queue.ErrorBackoff)
				if d := s.decided[p.UID]; d.Result != decision.ResultError || !strings.Contains(d.Err.Error(), "panicked: at "+point+" (plugins_test.go:") {
					t.Errorf("%s %v", d.Result, d.Err)
				}
			}
			if s.m.Panics() == 0 {
				t.Error("no panic is counted")
			}
			if point == "PreEnqueue" { // gated until its mood changes
				s.where(big, queue.Gated)
				s.given(s.node("n", 40))
			}
			s.settle()
			s.checkRest()
			if s.pods[p.Key()].NodeName == "" {
				t.Error("is not bound in the end")
			}
		})
	}
	for _, point := range []string{"Unreserve", "PostBind"} { // nothing is lost by these
		s := newStory(t)
		p := s.pod("p", 10)
		s.given(s.node("n", 40), p)
		s.cycle("", "")
		s.moody.moods[point] = panics
		s.reply(map[string]fate{"Unreserve": refused, "PostBind": fine}[point])
		if s.m.Panics() != 1 {
			t.Errorf("%s: %d panics", point, s.m.Panics())
		}
		s.settle()
		s.checkRest()
		s.runs(p, "n")
	}
}

// Views that a panic left half made are not used again.
func TestPanicLeavesNoView(t *testing.T) {
	w := newStory(t) // for its objects
	mo := &moody{moods: map[string]mood{}}
	m := New(options(mo)) // nobody brings its views up to date between the steps
	events := []Event{NodeSet{w.node("n", 40)}, NodeSet{w.node("m", 40)}}
	for _, name := range []string{"a", "b", "c", "d"} { // their class is well known
		p := w.pod(name, 10)
		events = append(events, PodSet{p}, ScheduleOne{}, BindReply{UID: p.UID})
	}
	for _, e := range append(events, PodSet{w.pod("p", 10)}) {
		m.Step(w.now, e)
	}
	mo.moods["Filter"] = panics
	if m.Step(w.now, ScheduleOne{}); m.Panics() != 1 {
		t.Fatalf("%d panics", m.Panics())
	}
	if err := m.Verify(); err != nil {
		t.Error(err)
	}
}

// The record of an attempt that failed names the extension point and the plugin.
func TestFailedPoint(t *testing.T) {
	for _, point := range []string{"PreFilter", "PreScore", "Reserve", "Permit", "PreBind", "WritesDone"} {
		s := newStory(t)
		p := s.pod("p", 10)
		s.given(s.node("n", 40), s.node("m", 40), p)
		s.cycle(point, fails)
		want := point
		if point == "WritesDone" {
			want = "PreBind"
		}
		if d := s.decided[p.UID]; d.Result != decision.ResultError || d.FailedPoint != want || d.FailedPlugin != "Moody" {
			t.Errorf("%s: %s at %q of %q", point, d.Result, d.FailedPoint, d.FailedPlugin)
		}
	}
}
