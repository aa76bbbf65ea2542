package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// Unreserve goes backwards, and to plugins whose Reserve was not reached, too.
func TestUnreserveInReverse(t *testing.T) {
	for rejecting, want := range map[string][]string{
		"Reserve": {"Reserve p", "Unreserve again p", "Unreserve p"},
		"Permit":  {"Reserve p", "Reserve again p", "Unreserve again p", "Unreserve p"},
	} {
		s := newStory(t)
		s.given(s.node("n", 40), s.pod("p", 40))
		s.cycle(rejecting, rejects)
		if !slices.Equal(s.moody.calls, want) {
			t.Errorf("%s rejects: calls %q, want %q", rejecting, s.moody.calls, want)
		}
	}
}

// A pod that waits at Permit is bound when it is allowed, and rejected on a timeout, a
// rejection or its deletion.
func TestPermit(t *testing.T) {
	tests := map[string]struct {
		then  func(*story, *object.Pod)
		says  string
		place queue.Place
	}{
		"timeout": {func(s *story, _ *object.Pod) { s.tick(9 * time.Second); s.did(); s.tick(time.Second) },
			"0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin Moody.", queue.Unschedulable},
		"rejected": {func(s *story, _ *object.Pod) { s.given(s.pod("x", 0)); s.cycle("Permit", expels) },
			"0/1 nodes are available: 1 rejected.", queue.Unschedulable},
		"deleted": {func(s *story, p *object.Pod) {
			s.change(p, func(p *object.Pod) { p.Terminating = true })
			s.tellAll()
		}, "0/1 nodes are available: 1 pod is being deleted.", queue.Unschedulable},
		"allowed": {func(s *story, _ *object.Pod) { s.given(s.pod("x", 0)); s.cycle("Permit", allows) }, "", queue.InFlight},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			p := s.pod("p", 40)
			s.given(s.node("n", 40), p)
			s.cycle("Permit", waits)
			s.did("AttemptDone p-1: Waiting n", "PatchStatus p-1: <nil>, nominated to \"n\"")
			if next, ok := s.m.NextTimer(); !ok || !next.Equal(s.now.Add(10*time.Second)) {
				t.Errorf("next timer %v %v", next, ok)
			}
			test.then(s, p)
			s.where(p, test.place)
			if d := s.decided[p.UID]; test.says != "" {
				if s.used(0); d.Result != decision.ResultUnschedulable || count(s, "Unreserve p") != 1 {
					t.Errorf("%s, calls %v", d.Result, s.moody.calls)
				}
			}
			said := slices.IndexFunc(s.effects, func(e Effect) bool { a, ok := e.(PublishEvent); return ok && a.Pod.UID == p.UID })
			if test.says != "" && (said < 0 || s.effects[said].(PublishEvent).Note != test.says) {
				t.Errorf("did %q, want %q", shown(s.effects), test.says)
			}
		})
	}
}

// Once a reply is known to end a wait, neither time nor another plugin ends it otherwise.
// A reply that is for another attempt changes nothing.
func TestPermitIsAnsweredOnce(t *testing.T) {
	for name, others := range map[string]func(*story){
		"time is over":    func(s *story) { s.tick(20 * time.Second) },
		"another allows":  func(s *story) { s.given(s.pod("x", 0)); s.cycle("Permit", allows) },
		"another rejects": func(s *story) { s.given(s.pod("x", 0)); s.cycle("Permit", expels) },
		"another attempt": func(s *story) { s.step(PermitReply{UID: "p-1", Attempt: 2, Plugin: "Moody"}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			p := s.pod("p", 40)
			s.given(s.node("n", 40), p)
			s.cycle("Permit", waits)
			e := PermitReply{UID: p.UID, Attempt: 1, Plugin: "Moody", Preempt: true, Message: "make way"}
			late := e
			late.Attempt = 2
			for _, m := range []*Machine{s.m, s.twin} {
				if m.Answer(late) || !m.Answer(e) || m.Answer(e) {
					t.Error("another reply than the first counts")
				}
			}
			others(s)
			s.where(p, queue.InFlight)
			s.used(40)
			s.step(e)
			s.where(p, queue.ErrorBackoff)
			s.used(0)
			if d := s.decided[p.UID]; d.Result != decision.ResultError || d.Err.Error() != "waiting on permit for pod: make way" {
				t.Errorf("decided %s, %v", d.Result, d.Err)
			}
			s.settle()
			s.runs(p, "n")
			s.checkRest()
		})
	}
}

// What a pod waits for is told once, when what PreBind writes is there, whether
// it then has to wait or not.
func TestWaitNotice(t *testing.T) {
	for settle, want := range map[mood][]string{
		waits: {"PublishEvent p-1 Moody: in no hurry"},
		"":    {"PublishEvent p-1 Moody: in no hurry", "Bind p-1 to n"},
	} {
		s := newStory(t)
		p := s.pod("p", 40)
		s.given(s.node("n", 40), p)
		s.cycle("PreBind", writes)
		s.did("AttemptDone p-1", "PatchStatus p-1", "Write for p-1")
		s.moody.moods["WaitNotice"], s.moody.moods["WritesDone"] = waits, settle
		s.answer(1, fine) // the patch of its nomination is on its way, too
		s.did(want...)
		if settle == waits {
			s.moody.moods["WaitNotice"], s.moody.moods["WritesDone"] = waits, waits
			s.step(ObjectSet{&object.PersistentVolume{Meta: object.Meta{Kind: object.PersistentVolumes, Name: "v"}}})
			s.did()
		}
	}
}

// A pod whose PreBind writes take their time is bound when they have had their
// effect; failing that, all is undone.
func TestWritesDone(t *testing.T) {
	volume := &object.PersistentVolume{Meta: object.Meta{Kind: object.PersistentVolumes, Name: "v"}}
	tests := map[string]struct {
		then func(*story, *object.Pod)
		says string // why it was not bound; "" is bound
	}{
		"an object came": {func(s *story, _ *object.Pod) {
			s.moody.moods["WritesDone"] = waits
			s.step(ObjectSet{volume})
			s.did() // not the one that it waits for
			s.step(ObjectSet{volume})
		}, ""},
		"an object went": {func(s *story, _ *object.Pod) {
			s.moody.moods["WritesDone"] = waits
			s.step(ObjectSet{volume})
			s.step(ObjectGone{Kind: object.PersistentVolumes, Name: "v"})
		}, ""},
		"its node changed": {func(s *story, _ *object.Pod) {
			s.given(s.node("m", 40))
			s.did()
			s.given(s.node("n", 40))
		}, ""},
		"undone by another": {func(s *story, _ *object.Pod) {
			s.moody.moods["WritesDone"] = fails
			s.step(ObjectSet{volume})
		}, `running PreBind plugin "Moody": out of sorts`},
		"a panic": {func(s *story, _ *object.Pod) {
			s.moody.moods["WritesDone"] = panics
			s.step(ObjectSet{volume})
		}, `running PreBind plugin "Moody" panicked: at WritesDone`},
		"time is over": {func(s *story, _ *object.Pod) {
			s.tick(19 * time.Second)
			s.did()
			s.tick(time.Second)
		}, `running PreBind plugin "Moody": too late`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			p := s.pod("p", 40)
			s.given(s.node("n", 40), p)
			s.cycle("PreBind", writes)
			s.moody.moods["WritesDone"] = waits
			s.answer(1, fine) // the write; the patch of its nomination is on its way, too
			s.where(p, queue.InFlight)
			s.used(40)
			if next, ok := s.m.NextTimer(); !ok || !next.Equal(s.now.Add(20*time.Second)) {
				t.Errorf("next timer %v %v", next, ok)
			}
			test.then(s, p)
			if test.says == "" {
				s.did("Bind p-1 to n")
				return
			}
			if d := s.decided[p.UID]; d.Err == nil || !strings.HasPrefix(d.Err.Error(), test.says) {
				t.Errorf("decided %v", d.Err)
			}
			s.used(0)
			if count(s, "Unreserve p") != 1 {
				t.Errorf("calls %v", s.moody.calls)
			}
			s.settle()
			s.runs(p, "n")
			s.checkRest()
		})
	}
}

// A node that is cordoned while Permit or PreBind holds a pod gets the pod all the same,
// as with kube-scheduler.
func TestNodeIsCordoned(t *testing.T) {
	for name, stage := range map[string]struct{ held, released func(*story) }{
		"waiting": {func(s *story) { s.cycle("Permit", waits) }, func(s *story) {
			s.given(s.pod("x", 0))
			s.cycle("Permit", allows)
		}},
		"writing": {func(s *story) { s.cycle("PreBind", writes) }, func(s *story) {
			s.answer(slices.IndexFunc(s.requests, func(r Effect) bool { _, ok := r.(Write); return ok }), fine)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			p := s.pod("p", 40)
			s.given(s.node("n", 40), p)
			stage.held(s)
			cordoned := *s.nodes["n"]
			cordoned.Unschedulable = true
			s.given(&cordoned)
			stage.released(s)
			if !slices.Contains(shown(s.effects), "Bind p-1 to n") {
				t.Errorf("did %q", shown(s.effects))
			}
			s.settle()
			s.runs(p, "n")
		})
	}
}

// A node that vanishes while pods are on their way to it takes nothing with
// it but its room.
func TestNodeVanishes(t *testing.T) {
	for name, stage := range map[string]func(*story){
		"waiting": func(s *story) { s.cycle("Permit", waits) },
		"writing": func(s *story) { s.cycle("PreBind", writes) },
		"binding": func(s *story) { s.cycle("", "") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.given(s.node("n", 40), s.pod("p", 40))
			stage(s)
			s.deleteNode("n")
			s.tellAll()
			s.given(s.node("m", 40))
			s.settle()
			s.given(s.node("m", 40)) // for the one whose wait was over
			s.settle()
			s.checkRest()
		})
	}
}
