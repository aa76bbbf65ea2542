package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// waiting is a story of pods, a second between them, that fit on neither of two nodes.
func waiting(t *testing.T, names ...string) (*story, []*object.Pod) {
	s := newStory(t)
	s.given(s.node("n", 40), s.node("m", 40))
	var pods []*object.Pod
	for _, name := range names {
		p := s.pod(name, 50)
		s.given(p)
		s.cycle("", "")
		s.where(p, queue.Unschedulable)
		s.answerAll()
		s.now = s.now.Add(time.Second)
		pods = append(pods, p)
	}
	return s, pods
}

func (s *story) answerAll() {
	for len(s.requests) > 0 {
		s.answer(0, fine)
	}
	s.tellAll()
}

// conditionsWritten are the pods whose conditions the last step wrote.
func (s *story) conditionsWritten() (names []string) {
	for _, e := range s.effects {
		if patch, ok := e.(PatchStatus); ok && patch.Condition != nil {
			names = append(names, patch.Pod.Name)
		}
	}
	return names
}

// The condition of a pod that no event calls is made true again when it is a minute old:
// once, one pod at a time, the oldest first, and without an attempt. Where nothing has
// happened since, there is no timer.
func TestConditionsStayTrue(t *testing.T) {
	s, pods := waiting(t, "a", "b", "c")
	timers := func() bool {
		due, ok := s.m.NextTimer()
		return ok && due.Sub(s.now) < time.Hour
	}
	start := s.now
	s.deleteNode("m") // helps nobody
	s.tellAll()
	if !timers() {
		t.Error("there is no timer")
	}
	s.now = s.now.Add(conditionAge - 5*time.Second)
	var written []string
	last := s.now
	for s.now.Before(start.Add(3 * conditionAge)) {
		s.tick(50 * time.Millisecond)
		names := s.conditionsWritten()
		if len(names) == 0 {
			continue
		}
		if s.now.Sub(start) < conditionAge-3*time.Second || len(names) > 1 || s.now.Sub(last) < conditionPause {
			t.Errorf("%v are written after %s, %s after the last one", names, s.now.Sub(start), s.now.Sub(last))
		}
		written, last = append(written, names...), s.now
		s.answerAll()
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(written, want) {
		t.Errorf("written are the conditions of %v, want %v", written, want)
	}
	for _, p := range pods {
		if now := s.pods[p.Key()].Scheduled.Message; !strings.HasPrefix(now, "0/1 nodes") || s.m.Entry(p.UID).Attempts() != 1 {
			t.Errorf("%s has the condition %q after %d attempts", p.Name, now, s.m.Entry(p.UID).Attempts())
		}
	}
	if timers() {
		t.Error("there is a timer though all is said")
	}
	s.checkRest()
}

// Where many conditions are as old, they are looked at one after the other.
func TestConditionsArePaced(t *testing.T) {
	s, _ := waiting(t, "a", "b")
	s.deleteNode("m")
	s.tellAll()
	s.tick(time.Hour)
	if got := s.conditionsWritten(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("written are %v", got)
	}
	s.tick(conditionPause - time.Nanosecond)
	if got := s.conditionsWritten(); len(got) > 0 {
		t.Errorf("written are %v too soon", got)
	}
	s.tick(time.Nanosecond)
	if got := s.conditionsWritten(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("written are %v", got)
	}
}

// Nothing is said for a pod that an attempt would place, or that is tried again.
func TestConditionsOfOthersStay(t *testing.T) {
	s, pods := waiting(t, "a", "b")
	s.m.queue.Activate(s.now, s.m.pods.byUID[pods[1].UID].entry)
	s.twin.queue.Activate(s.now, s.twin.pods.byUID[pods[1].UID].entry)
	for _, m := range []*Machine{s.m, s.twin} {
		m.table.SetNode(s.node("n", 100)) // nobody is told
		m.news++
	}
	s.tick(time.Hour)
	s.tick(time.Hour)
	if got := s.conditionsWritten(); len(got) > 0 {
		t.Errorf("written are %v", got)
	}
}

// A replay that begins in the middle of a record looks at the conditions at the same time.
func TestConditionsAreInTheSnapshot(t *testing.T) {
	s, pods := waiting(t, "a", "b", "c")
	s.deleteNode("m")
	s.tellAll()
	s.tick(conditionAge)
	if got := s.conditionsWritten(); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("written are %v", got)
	}
	events := []Event{NodeSet{s.nodes["n"]}}
	for _, p := range pods {
		events = append(events, PodSet{s.told[p.Key()]})
	}
	restored := New(options(s.moody))
	if err := restored.Restore(s.now, events, s.m.Snapshot()); err != nil {
		t.Fatal(err)
	}
	for {
		want, ok := s.m.conditions.oldest()
		got, due := restored.conditions.oldest()
		if (want == nil) != (got == nil) || got != nil && (got.pod.UID != want.pod.UID || !due.Equal(ok)) {
			t.Fatalf("next is %v at %s, want %v at %s", got, due, want, ok)
		}
		if want == nil {
			return
		}
		s.m.Step(ok, Tick{})
		restored.Step(ok, Tick{})
	}
}
