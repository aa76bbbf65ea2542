package machine

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// A binding whose reply was lost while the watch lags does not give the room
// away, whether it was done, was not, or is done later (reliability: R4, B19).
func TestLostBinding(t *testing.T) {
	for name, how := range map[string]fate{"done": lost, "not done": vanished, "done later": delayed} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			p, other := s.pod("p", 30), s.pod("other", 30)
			s.given(s.node("n", 40), p, other)
			s.cycle("", "")
			s.reply(how)
			s.did("ReadPod p-1")
			if s.m.UnknownBindings() != 1 {
				t.Errorf("%d unknown bindings while the pod is read", s.m.UnknownBindings())
			}
			s.cycle("", "")
			s.did("AttemptDone other-2: Unschedulable", "PublishEvent", "PatchStatus")
			for range 3 { // reads fail, the room stays taken
				s.answer(0, refused)
				s.did("ReadPod p-1")
				s.requests = slices.Concat(s.requests[1:], s.requests[:1])
				s.requests = slices.DeleteFunc(s.requests, func(e Effect) bool { _, ok := e.(PatchStatus); return ok })
				s.used(30)
			}
			s.settle()
			s.runs(p, "n")
			if s.m.UnknownBindings() != 0 {
				t.Errorf("%d unknown bindings at last", s.m.UnknownBindings())
			}
			s.where(other, queue.Unschedulable)
		})
	}
}

// A binding that did not arrive is not sent again to a node that has gone since.
func TestLostBindingToVanishedNode(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 30)
	s.given(s.node("n", 40), p)
	s.cycle("", "")
	s.reply(vanished)
	s.did("ReadPod p-1")
	s.deleteNode("n")
	s.tellAll()
	for range 20 {
		if sent := len(s.requests); sent == 0 {
			break
		}
		s.effects = nil
		s.reply(fine) // the read: not bound
		for _, e := range s.effects {
			if b, ok := e.(Bind); ok {
				t.Fatalf("pod %s is bound to node %s, which is gone", b.Pod.Name, b.Node)
			}
		}
	}
	s.given(s.node("m", 40))
	s.settle()
	s.runs(p, "m")
	s.checkRest()
}

// A renewed binding that is refused says nothing of the one before.
func TestRefusalAfterLostBinding(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 30)
	s.given(s.node("n", 40), p)
	s.cycle("", "")
	s.reply(delayed)
	s.reply(fine) // the read: not bound yet
	s.did("Bind p-1 to n")
	s.arrive(0)
	s.reply(refused)
	s.did("ReadPod p-1")
	s.used(30)
	s.reply(fine)
	s.did("PublishEvent p-1 Scheduled")

	q := s.pod("q", 10)
	s.given(q)
	s.cycle("", "")
	s.reply(vanished)
	s.reply(fine)
	s.reply(refused)
	s.reply(fine) // it is really not bound
	s.did("AttemptDone q-3: Error", "PublishEvent q-3 FailedScheduling: running Bind plugin \"Binder\": the network", "PatchStatus q-3")
	s.used(30)
	s.where(q, queue.ErrorBackoff)
	s.settle()
	s.runs(q, "n")
}

// A pod whose binding is answered by nothing at all is given up after a while.
func TestBindingIsNeverKnown(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 30)
	s.given(s.node("n", 40), p)
	s.cycle("", "")
	var delays []time.Duration
	for len(s.requests) == 1 {
		if r, ok := s.requests[0].(ReadPod); ok {
			delays = append(delays, r.Delay)
			s.reply(fine)
		} else if s.reply(vanished); len(delays) > 20 {
			t.Fatal("never gives up")
		}
		if _, ok := s.effects[0].(AttemptDone); ok {
			break
		}
	}
	want := []time.Duration{0, 1, 2, 4, 8, 10, 10, 10}
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(delays, want) {
		t.Errorf("reads after %v, want %v", delays, want)
	}
	s.where(p, queue.ErrorBackoff)
	s.used(0)
}

// Replies to what is no longer asked change nothing.
func TestLateReplies(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 30)
	s.given(s.node("n", 40), p)
	for _, e := range []Event{
		BindReply{UID: p.UID, Result: BindRefused, Err: errFate}, WriteReply{UID: p.UID}, ReadReply{UID: p.UID}, EvictReply{Victim: p.UID, Err: errFate},
		NodeGone{"x"}, PodGone{UID: "x"}, PodGone{Namespace: "ns", Name: "x"}, BudgetGone{"ns", "x"}, Tick{},
	} {
		s.step(e)
		s.did()
	}
	s.where(p, queue.Active)
	s.settle()
	s.runs(p, "n")
	s.step(BindReply{UID: p.UID, Result: BindRefused, Err: errFate})
	s.step(PodSet{p}) // as it was before it was bound
	s.used(30)
	s.settle() // a read says that the pod is bound
	s.checkRest()
}

// A pod whose work is done before the reply to its binding comes, as the watch
// may be faster, was scheduled all the same, and is said to have been.
func TestDoneBeforeTheReply(t *testing.T) {
	for how, want := range map[fate][]string{fine: {"PublishEvent p-1 Scheduled: Successfully assigned ns/p to n"}, refused: nil, lost: nil} {
		s := newStory(t)
		p := s.pod("p", 40)
		s.given(s.node("n", 40), p)
		s.cycle("", "")
		s.step(PodGone{UID: p.UID, Namespace: p.Namespace, Name: p.Name})
		s.used(0)
		s.reply(how)
		s.did(want...)
		if s.m.pods.byUID[p.UID] != nil {
			t.Errorf("%v: still remembered", how)
		}
	}
}

// A pod that another scheduler binds is its pod, at whatever stage ours was.
func TestBoundByAnother(t *testing.T) {
	stages := map[string]func(*story){
		"queued":   func(*story) {},
		"waiting":  func(s *story) { s.cycle("Permit", waits) },
		"writing":  func(s *story) { s.cycle("PreBind", writes) },
		"awaiting": func(s *story) { s.cycle("WritesDone", waits) },
		"binding":  func(s *story) { s.cycle("", "") },
		"settling": func(s *story) { s.cycle("", ""); s.reply(vanished) },
	}
	for name, stage := range stages {
		for _, node := range []string{"n", "m"} {
			t.Run(name+" to "+node, func(t *testing.T) {
				s := newStory(t)
				p := s.pod("p", 40)
				s.given(s.node("n", 40), p)
				stage(s)
				s.given(s.node("m", 40))
				s.change(p, func(p *object.Pod) { p.NodeName = node })
				s.tellAll()
				s.tick(time.Minute) // Permit's time is over
				if pl := s.m.table.Pod(p.UID); pl == nil || s.m.table.Name(pl.Row) != node {
					t.Errorf("it takes its room on %+v", pl)
				}
				s.settle()
				s.runs(p, node)
				s.checkRest()
			})
		}
	}
}

// A pod that shrinks while its binding is under way makes room for others when
// it shows bound.
func TestBoundSmaller(t *testing.T) {
	s := newStory(t)
	p, q := s.pod("p", 40), s.pod("q", 20)
	s.given(s.node("n", 40), p)
	s.cycle("", "")
	s.given(q)
	s.cycle("", "")
	s.change(p, func(p *object.Pod) { p.Demand.Usage.MilliCPU, p.Demand.Requests.MilliCPU = 20, 20 })
	s.tellAll()
	s.where(q, queue.Unschedulable)
	s.answer(0, fine)
	s.settle()
	s.runs(q, "n")
	s.checkRest()
}

// A waiting pod that turns unreadable is not placed as what it was; one that
// is placed stays, and pods of others are none of our business.
func TestUnreadable(t *testing.T) {
	s := newStory(t)
	p, q := s.pod("p", 10), s.pod("q", 40)
	s.given(s.node("n", 20), p, q)
	s.settle()
	s.runs(p, "n")
	s.where(q, queue.Unschedulable)
	unreadable := func(p *object.Pod, scheduler string) {
		s.step(PodDecodeFailed{UID: p.UID, Namespace: p.Namespace, Name: p.Name, SchedulerName: scheduler, Why: errors.New("cannot be")})
	}
	unreadable(q, "another")
	s.did()
	unreadable(p, scheduler)
	s.did("ReadPod p-1")
	s.reply(fine)
	s.used(10)
	unreadable(q, scheduler)
	s.did("AttemptDone q-2: Error", "PublishEvent q-2 FailedScheduling: the pod cannot be decoded: cannot be")
	s.where(q, queue.Nowhere)
	s.setPod(s.pods[q.Key()]) // readable again
	s.tellAll()
	s.settle()
	s.where(q, queue.Unschedulable)
}

// What the watch shows counts for more than a refusal.
func TestRefusedButBound(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 40)
	s.given(s.node("n", 40), p)
	s.cycle("", "")
	s.change(p, func(p *object.Pod) { p.NodeName = "n" })
	s.tellAll()
	s.where(p, queue.InFlight)
	s.reply(refused)
	s.did("PublishEvent p-1 Scheduled")
	s.used(40)
	s.checkRest()
}

// A pod that a hosted Bind plugin says it bound, and that the API does not show bound for half a
// minute, is read.
func TestClaimedBindingIsRead(t *testing.T) {
	p := newEvictions(t, func(alone *framework.Plugin) {
		alone.Hosted = &framework.HostedPlugin{Blocking: framework.Blocking{Bind: true}}
	})
	p.profiles["s"].Host = noHost{}
	start := time.Unix(0, 0)
	for _, e := range []Event{preemptible("p", 1, ""), ScheduleOne{}, BindReply{UID: "p", Result: BindDone}} {
		p.Step(start, e)
	}
	reads := func(after time.Duration) bool {
		return slices.ContainsFunc(p.Step(start.Add(after), Tick{}), func(e Effect) bool {
			read, is := e.(ReadPod)
			return is && read.Pod.Name == "p"
		})
	}
	if reads(claimTimeout - time.Second) {
		t.Error("the pod is read before the API had time to show it bound")
	}
	if !reads(claimTimeout) {
		t.Error("the plugin is believed for good")
	}
}

// A pod that a hosted PreBind plugin rejects is tried again as after an error: no event has to help
// it.
func TestPodThatPreBindRejectsNeedsNoEvent(t *testing.T) {
	p := newEvictions(t, func(alone *framework.Plugin) {
		alone.Hosted = &framework.HostedPlugin{Blocking: framework.Blocking{PreBind: true}}
	})
	of := p.profiles["s"]
	of.Host, of.PreBind = noHost{}, of.Bind
	start := time.Unix(0, 0)
	rejection := &decision.Status{Code: decision.Unschedulable, Plugin: "Alone", Reasons: []string{"no"}}
	for _, e := range []Event{preemptible("p", 1, ""), ScheduleOne{}, PreBindReply{UID: "p", Status: rejection}} {
		p.Step(start, e)
	}
	if got := p.pods.byUID["p"].entry.Place(); got == queue.Unschedulable {
		t.Errorf("the pod is %v", got)
	}
}
