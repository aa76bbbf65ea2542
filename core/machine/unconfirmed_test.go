package machine

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// undo takes the pod back to before it was bound, as a restored etcd does.
func (s *story) undo(p *object.Pod) {
	s.change(p, func(p *object.Pod) { p.NodeName = "" })
	delete(s.ours, p.UID)
	delete(s.published, p.UID)
}

// Reads that fail are no evidence that the pod is not bound.
func TestFailedReadsProveNothing(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 30)
	s.given(s.node("n", 40), p)
	s.cycle("", "")
	s.reply(vanished)
	for range 2 * maxReads {
		s.reply(refused)
		s.did("ReadPod p-1")
		s.used(30)
	}
	s.reply(fine)
	s.did("Bind p-1 to n")
}

// A pod that is held for bound and shown unbound is read. Where the binding was
// undone the pod is scheduled anew; until that is known its room stays taken.
func TestUndoneBinding(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 30)
	s.given(s.node("n", 40), p)
	s.settle()
	s.undo(p)
	s.tellAll()
	s.did("ReadPod p-1")
	s.reply(refused)
	s.did("ReadPod p-1")
	s.used(30)
	s.reply(fine)
	s.did()
	s.used(0)
	s.where(p, queue.Active)
	if s.m.Undone() != 1 {
		t.Errorf("%d bindings undone", s.m.Undone())
	}
	s.settle()
	s.runs(p, "n")
	s.checkRest()
}

// A watch that lags behind what a read has shown undoes nothing.
func TestOldNewsUndoNothing(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 30)
	s.given(s.node("n", 40), p)
	s.cycle("", "")
	s.reply(lost)
	s.reply(fine) // the read: it is bound
	s.tell(podNews{p.Key(), p.UID, p})
	s.did("ReadPod p-1")
	s.tell(podNews{p.Key(), p.UID, p})
	s.did()
	s.used(30)
	s.settle()
	s.checkRest()
	if s.m.Undone() != 0 {
		t.Errorf("%d bindings undone", s.m.Undone())
	}
}

// The pod was shown unbound, and bound again before the read that this led to
// was answered: what that saw no longer counts.
func TestOldReadUndoesNothing(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 30)
	s.given(s.node("n", 40), p)
	s.settle()
	s.undo(p)
	s.tellAll()
	seen := *s.pods[p.Key()]
	s.change(p, func(p *object.Pod) { p.NodeName = "n" })
	s.tellAll()
	s.requests = nil
	s.step(ReadReply{UID: p.UID, Pod: &seen})
	s.did()
	s.used(30)
	s.where(p, queue.Nowhere)
}

// After etcd was restored a pod is read whose binding only the reply has shown.
func TestRewound(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 30)
	s.given(s.node("n", 40), p)
	s.cycle("", "")
	s.reply(fine)
	s.podNews = nil
	s.undo(p)
	s.podNews = nil
	s.step(Rewound{})
	s.did("ReadPod p-1")
	s.reply(fine)
	s.where(p, queue.Active)
	s.settle()
	s.runs(p, "n")
	s.checkRest()
}

// After etcd was restored nobody is evicted a second time for a pod that is gone with
// what was undone; one that is still there preempts anew. Both hold where the reply to
// the eviction comes after that, too.
func TestRewoundEviction(t *testing.T) {
	for _, late := range []bool{false, true} {
		for _, gone := range []bool{false, true} {
			t.Run(fmt.Sprintf("late reply %t, preemptor gone %t", late, gone), func(t *testing.T) {
				s := newStory(t)
				victim := s.pod("victim", 30, func(p *object.Pod) { p.NodeName = "n" })
				high := s.pod("high", 40, func(p *object.Pod) { p.Priority = 1 })
				s.given(s.node("n", 40), victim, high)
				s.cycle("", "")
				i := slices.IndexFunc(s.requests, func(r Effect) bool { _, ok := r.(Evict); return ok })
				if late {
					s.requests = slices.Delete(s.requests, i, i+1)
				} else {
					s.answer(i, fine)
					s.tellAll()
					s.change(victim, func(p *object.Pod) { p.Terminating = false })
					clear(s.evicted)
				}
				s.step(Rewound{})
				s.did()
				s.forget(victim.UID)
				if gone {
					s.deletePod(high.Key())
				}
				s.tellAll()
				if late {
					s.step(EvictReply{Victim: victim.UID, Preemptor: high.UID})
				}
				s.settle()
				if gone {
					s.runs(victim, "n")
				} else {
					s.runs(high, "n")
				}
				s.checkRest()
			})
		}
	}
}

// The nodes' list tells of the restored etcd first, and the pods' list seconds later: a
// preemptor that was tried in between, while its victim still seemed to go, preempts
// anew when the victim is there again.
func TestRewoundBeforeTheVictimIsBack(t *testing.T) {
	s := newStory(t)
	victim := s.pod("victim", 30, func(p *object.Pod) { p.NodeName = "n" })
	high := s.pod("high", 40, func(p *object.Pod) { p.Priority = 1 })
	s.given(s.node("n", 40), victim, high)
	s.cycle("", "")
	s.answer(slices.IndexFunc(s.requests, func(r Effect) bool { _, ok := r.(Evict); return ok }), fine)
	s.tellAll()
	s.step(Rewound{})
	for range 5 {
		s.tick(time.Second)
		s.cycle("", "")
	}
	s.where(high, queue.Unschedulable)
	s.step(Rewound{})
	s.forget(victim.UID)
	s.change(victim, func(p *object.Pod) { p.Terminating = false })
	clear(s.evicted)
	s.tellAll()
	if at := s.m.Entry(high.UID).Place(); at == queue.Unschedulable {
		t.Fatal("nobody tells the preemptor that its victim is there again")
	}
	s.settle()
	s.runs(high, "n")
	s.checkRest()
}

// While a binding is under way nothing is read; when it has ended, the pod is,
// for the reply may be from before etcd was restored.
func TestRewoundWhileBinding(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 30)
	s.given(s.node("n", 40), p)
	s.cycle("", "")
	s.step(Rewound{})
	s.did()
	s.reply(fine)
	s.did("PublishEvent p-1 Scheduled", "ReadPod p-1")
	s.settle()
	s.checkRest()
}

// While a pod is being read etcd is restored to before its binding: the answer, which is
// of before that, does not count, and it is read once more.
func TestReadAcrossARestore(t *testing.T) {
	for name, read := range map[string]func(*story, *object.Pod){
		"as the reply to the binding was lost": func(s *story, _ *object.Pod) { s.reply(lost) },
		"as etcd was restored before":          func(s *story, _ *object.Pod) { s.reply(fine); s.step(Rewound{}) },
		"and was shown bound meanwhile": func(s *story, p *object.Pod) {
			s.reply(fine)
			s.step(Rewound{})
			s.tellAll()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			p := s.pod("p", 30)
			s.given(s.node("n", 40), p)
			s.cycle("", "")
			read(s, p)
			seen := *s.pods[p.Key()]
			s.podNews = nil
			s.undo(p)
			s.step(Rewound{})
			s.tellAll()
			if len(s.requests) != 1 {
				t.Errorf("on their way are %q", shown(s.requests))
			}
			s.requests = nil
			s.step(ReadReply{UID: p.UID, Pod: &seen}) // bound
			s.did("ReadPod p-1")
			s.settle()
			s.runs(p, "n")
			s.checkRest()
			if p := s.m.table.Pod(p.UID); p == nil || s.m.pods.assumedCount != 0 {
				t.Errorf("it takes its room on %+v; %d pods are assumed", p, s.m.pods.assumedCount)
			}
		})
	}
}

// A pod that is gone and comes back under its UID is bound anew when what was sent for
// it before has an answer: this would count for the new binding.
func TestBackBeforeTheReply(t *testing.T) {
	for name, before := range map[string]struct {
		plugin string
		mood   mood
		answer Event
	}{
		"to its binding": {answer: BindReply{UID: "p-1", Result: BindRefused, Err: errFate}},
		"to its writes":  {plugin: "PreBind", mood: writes, answer: WriteReply{UID: "p-1", Err: errFate}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			p := s.pod("p", 30)
			s.given(s.node("n", 40), p)
			s.cycle(before.plugin, before.mood)
			s.step(PodGone{UID: p.UID, Namespace: p.Namespace, Name: p.Name})
			s.requests = nil
			s.step(Rewound{})
			s.step(PodSet{p})
			s.cycle("", "")
			s.did("AttemptDone p-1: Error", "PublishEvent p-1 FailedScheduling", "PatchStatus p-1")
			s.where(p, queue.ErrorBackoff)
			s.step(before.answer)
			s.settle()
			s.runs(p, "n")
			s.checkRest()
		})
	}
}

// The binding of a pod of another scheduler was undone, too: the room is free when a
// read has shown that. It stays taken where the read shows the pod bound, as the
// watch lags.
func TestUndoneBindingOfAnotherScheduler(t *testing.T) {
	for name, undone := range map[string]bool{"a restored backup": true, "a list of an older state": false} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			p := s.pod("p", 30, func(p *object.Pod) { p.SchedulerName = "another" })
			s.given(s.node("n", 40), p)
			s.change(p, func(p *object.Pod) { p.NodeName = "n" })
			s.tellAll()
			s.used(30)
			s.step(Rewound{})
			if undone {
				s.change(p, func(p *object.Pod) { p.NodeName = "" })
			}
			s.podNews = nil
			s.tell(podNews{p.Key(), p.UID, p})
			s.did("ReadPod p-1")
			s.used(30)
			s.reply(refused)
			s.used(30)
			s.reply(fine)
			s.did()
			if undone {
				s.used(0)
			} else {
				s.used(30)
			}
			s.settle()
			s.checkRest()
		})
	}
}

// A pod that is bound no more and cannot be decoded takes no room, whoever is to
// bind it, when a read has said so.
func TestUndoneBindingThatCannotBeDecoded(t *testing.T) {
	for _, scheduler := range []string{"another", scheduler} {
		t.Run(scheduler, func(t *testing.T) {
			s := newStory(t)
			p := s.pod("p", 30, func(p *object.Pod) { p.SchedulerName, p.NodeName = scheduler, "n" })
			s.given(s.node("n", 40), p)
			s.used(30)
			failed := PodDecodeFailed{UID: p.UID, Namespace: p.Namespace, Name: p.Name, SchedulerName: scheduler, Why: errors.New("no")}
			s.step(failed)
			s.did("ReadPod p-1")
			s.used(30)
			s.step(ReadReply{UID: p.UID}) // there is no pod that could be decoded
			s.used(0)
			s.step(failed)
			if known := s.m.KnownPods(); len(known) > 0 || s.m.pods.byUID[p.UID] != nil {
				t.Errorf("the pod is remembered: %v", known)
			}
		})
	}
}
