package machine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// story is a world that a test leads step by step.
type story struct {
	*world
	*testing.T
}

func newStory(t *testing.T) *story { return &story{newWorld(t), t} }

func (s *story) Helper()                           { s.T.Helper() }
func (s *story) Fatalf(format string, args ...any) { s.T.Helper(); s.T.Fatalf(format, args...) }
func (s *story) Logf(format string, args ...any)   { s.T.Logf(format, args...) }

// given puts objects into the cluster and tells the machine.
func (s *story) given(objects ...any) {
	s.T.Helper()
	for _, o := range objects {
		switch o := o.(type) {
		case *object.Node:
			s.setNode(o)
		case *object.Pod:
			s.setPod(o)
		}
	}
	s.tellAll()
}

// did wants the effects of the last step, by their first words.
func (s *story) did(want ...string) {
	s.T.Helper()
	got := shown(s.effects)
	if len(got) != len(want) {
		s.T.Fatalf("did %q, want %q", got, want)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			s.T.Fatalf("did %q, want %q", got, want)
		}
	}
}

// reply answers the only request on its way.
func (s *story) reply(how fate) {
	s.T.Helper()
	if len(s.requests) != 1 {
		s.T.Fatalf("on their way: %q", shown(s.requests))
	}
	s.answer(0, how)
}

func (s *story) where(p *object.Pod, want queue.Place) {
	s.T.Helper()
	if got := s.m.Entry(p.UID).Place(); got != want {
		s.T.Fatalf("%s is %s, want %s\n%s", p.Name, got, want, s.m.queue)
	}
}

func (s *story) runs(p *object.Pod, node string) {
	s.T.Helper()
	if now := s.pods[p.Key()]; now == nil || now.NodeName != node {
		s.T.Fatalf("%s is %+v, want it on %s", p.Name, now, node)
	}
}

func (s *story) used(want int64) {
	s.T.Helper()
	row, ok := s.m.table.Find("n")
	if !ok || s.m.table.Used(0)[row] != want {
		s.T.Fatalf("%dm are taken, want %d", s.m.table.Used(0)[row], want)
	}
}

func TestScheduled(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 10)
	s.given(s.node("n", 40), p)
	s.cycle("", "")
	s.did("AttemptDone p-1: Scheduled n", "Bind p-1 to n")
	s.where(p, queue.InFlight)
	s.used(10)
	s.reply(fine)
	s.did("PublishEvent p-1 Scheduled: Successfully assigned ns/p to n")
	s.where(p, queue.Nowhere)
	if s.m.Assumed() != 1 {
		t.Errorf("%d assumed before the watch shows the binding", s.m.Assumed())
	}
	s.settle()
	s.checkRest()
	if got := s.moody.calls; !slices.Equal(got, []string{"Reserve p", "Reserve again p", "PostBind p"}) {
		t.Errorf("calls %v", got)
	}
}

// An unschedulable pod's record comes first, then the event, then the patch;
// and no patch when there is nothing new to say.
func TestUnschedulable(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 50)
	s.given(s.node("n", 40), p)
	s.cycle("", "")
	said := "0/1 nodes are available: 1 no cpu. nobody to preempt"
	s.did("AttemptDone p-1: Unschedulable", "PublishEvent p-1 FailedScheduling: "+said, "PatchStatus p-1: &{False Unschedulable "+said+"}")
	s.where(p, queue.Unschedulable)
	s.reply(fine)
	s.tellAll()

	s.given(s.node("m", 20)) // worth a try, and another message
	s.tick(20 * time.Second)
	s.cycle("", "")
	s.did("AttemptDone p-1", "PublishEvent p-1", "PatchStatus p-1: &{False Unschedulable 0/2 nodes")
	s.reply(fine)
	s.tellAll()

	s.given(s.node("m", 30)) // the same message
	s.tick(20 * time.Second)
	s.cycle("", "")
	s.did("AttemptDone p-1", "PublishEvent p-1")
	if d := s.decided[p.UID]; d.Attempt != 3 || d.NodesTotal != 2 || !slices.Equal(d.RejectedBy, []string{"Fit"}) {
		t.Errorf("the record is %+v", d)
	}

	s.given(s.node("m", 60))
	s.settle()
	s.runs(p, "m")
}

func TestNoNodes(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 10)
	s.given(p)
	s.cycle("", "")
	s.did("AttemptDone p-1: Unschedulable  no nodes", "PublishEvent p-1 FailedScheduling: no nodes available to schedule pods",
		"PatchStatus p-1: &{False Unschedulable no nodes available to schedule pods}")
	if d := s.decided[p.UID]; !errors.Is(d.Err, ErrNoNodes) || len(d.RejectedBy) != 0 {
		t.Errorf("the record is %+v", d)
	}
	s.where(p, queue.ErrorBackoff)
	s.given(s.node("n", 10))
	s.settle()
	s.runs(p, "n")
}

// A gated pod has one record, however often it is looked at.
func TestGatedOnce(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 10, func(p *object.Pod) { p.Gates = []string{"a", "b"} })
	s.given(s.node("n", 40), p)
	s.did("AttemptDone p-1: Gated")
	if d := s.decided[p.UID]; d.Gate == nil || d.Gate.Plugin != "Gates" || d.NodesTotal != 1 {
		t.Errorf("the record is %+v", d)
	}
	s.change(p, func(p *object.Pod) { p.Gates = []string{"a"} })
	s.tellAll()
	s.did()
	s.where(p, queue.Gated)
	s.change(p, func(p *object.Pod) { p.Gates = nil })
	s.settle()
	s.runs(p, "n")
	s.checkRest()
}

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
		if s.m.pods[p.UID] != nil {
			t.Errorf("%v: still remembered", how)
		}
	}
}

// A pod that was made anew under its name, in one update, takes the old one's
// place at whatever stage that was (reliability: B15, B16).
func TestMadeAnew(t *testing.T) {
	stages := map[string]func(*story){
		"queued":    func(*story) {},
		"waiting":   func(s *story) { s.cycle("Permit", waits) },
		"writing":   func(s *story) { s.cycle("PreBind", writes) },
		"binding":   func(s *story) { s.cycle("", "") },
		"settling":  func(s *story) { s.cycle("", ""); s.reply(vanished) },
		"lost":      func(s *story) { s.cycle("", ""); s.reply(lost) },
		"assumed":   func(s *story) { s.cycle("", ""); s.reply(fine) },
		"running":   func(s *story) { s.settle() },
		"requeued":  func(s *story) { s.cycle("Reserve", rejects) },
		"preparing": func(s *story) { s.cycle("Reserve", panics) },
	}
	for name, stage := range stages {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.given(s.node("n", 40), s.pod("p", 40))
			stage(s)
			s.deletePod("ns/p")
			again := s.pod("p", 40)
			s.setPod(again)
			s.relist()
			if known := s.m.names[nameOf(again)].pod; known.UID != again.UID {
				t.Fatalf("ns/p is %s, want %s", known.UID, again.UID)
			}
			s.settle()
			s.runs(again, "n")
			s.checkRest()
		})
	}
}

// A pod that goes is gone from wherever it was, its room free, and others are
// called; also when the last word of it is old (reliability: B24, B26, B41).
func TestGone(t *testing.T) {
	stages := map[string]func(*story){
		"waiting":  func(s *story) { s.cycle("Permit", waits) },
		"writing":  func(s *story) { s.cycle("PreBind", writes) },
		"binding":  func(s *story) { s.cycle("", "") },
		"settling": func(s *story) { s.cycle("", ""); s.reply(vanished) },
		"lost":     func(s *story) { s.cycle("", ""); s.reply(lost) },
		"assumed":  func(s *story) { s.cycle("", ""); s.reply(fine) },
	}
	for name, stage := range stages {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			p, other := s.pod("p", 40), s.pod("other", 40)
			s.given(s.node("n", 40), p)
			stage(s)
			s.given(other)
			s.cycle("", "")
			s.where(other, queue.Unschedulable)
			s.deletePod(p.Key())
			s.podNews = nil // whatever else there was to tell
			s.tell(podNews{p.Key(), p.UID, nil})
			s.where(p, queue.Nowhere)
			s.where(other, queue.Backoff)
			s.used(0)
			s.settle()
			s.runs(other, "n")
			s.checkRest()
		})
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
	s.did()
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

// A watch that lags shows what was said before the last attempt. What is said
// now is written all the same when it is that again, for the API will show the
// last attempt's.
func TestConditionBehindALaggingWatch(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 40)
	n := s.node("n", 40)
	s.given(n, s.pod("other", 10, func(p *object.Pod) { p.NodeName = "n" }), p)
	tried := func(says string) {
		t.Helper()
		s.tick(time.Minute)
		s.cycle("", "")
		s.did("AttemptDone p-1", "PublishEvent p-1", "PatchStatus p-1: &{False Unschedulable "+says)
		s.reply(fine)
	}
	tried("0/1 nodes are available")
	s.tellAll()
	s.setNode(s.node("n", 41)) // calls the pod
	s.tellAll()
	s.deleteNode("n")
	s.tellAll()
	tried("no nodes available")
	s.podNews = nil // the watch does not show it yet
	s.setNode(n)
	s.tellAll()
	tried("0/1 nodes are available")
}

// Where a pod that waits is about to be bound is not shown when it is not to be.
func TestHiddenNode(t *testing.T) {
	s := newStory(t)
	s.m.options.HideExpectedNode, s.twin.options.HideExpectedNode = true, true
	p := s.pod("p", 40)
	s.given(s.node("n", 40), p)
	s.cycle("Permit", waits)
	s.did("AttemptDone p-1: Waiting n")
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
		{"Bind", passes, `no Bind plugin of profile "test-scheduler" takes the pod`, queue.ErrorBackoff},
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

func count(s *story, call string) (n int) {
	for _, c := range s.moody.calls {
		if c == call {
			n++
		}
	}
	return n
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

// A nomination that the API was asked for and does not show yet is taken back
// all the same when it ends.
func TestNominationIsTakenBack(t *testing.T) {
	s := newStory(t)
	victim := s.pod("victim", 40, func(p *object.Pod) { p.NodeName = "n" })
	p := s.pod("p", 40, func(p *object.Pod) { p.Priority = 1 })
	s.given(s.node("n", 40), victim, p)
	s.cycle("", "")
	s.did("Evict victim-1 for p-2", "AttemptDone p-2: Preempting", "PublishEvent p-2", "PatchStatus p-2: &{False Unschedulable 0/1 nodes are available: 1 no cpu.}, nominated to \"n\"")
	s.change(p, func(p *object.Pod) { p.Labels = map[string]string{"zone": "elsewhere"} })
	s.deletePod(victim.Key())
	s.tellAll()
	s.tick(20 * time.Second)
	s.cycle("", "")
	s.did("AttemptDone p-2: Unschedulable", "PublishEvent p-2", "PatchStatus p-2: &{False Unschedulable 0/1 nodes are available: 1 wrong zone. nobody to preempt}, nominated to \"\"")
	s.settle()
	if node := s.pods[p.Key()].NominatedNode; node != "" {
		t.Errorf("still nominated to %q", node)
	}
	s.given(s.pod("q", 40))
	s.settle()
	s.runs(s.pods["ns/q"], "n")
}

// When a nomination ends, those that it kept out are called.
func TestNominationEnds(t *testing.T) {
	ends := map[string]func(*story, *object.Pod){
		"deleted":   func(s *story, p *object.Pod) { s.deletePod(p.Key()) },
		"withdrawn": func(s *story, p *object.Pod) { s.change(p, func(p *object.Pod) { p.NominatedNode = "" }) },
		"moved":     func(s *story, p *object.Pod) { s.change(p, func(p *object.Pod) { p.NominatedNode = "m" }) },
		"rejected": func(s *story, p *object.Pod) { // it is tried again, and cannot go there
			s.change(p, func(p *object.Pod) { p.Labels = map[string]string{"zone": "nowhere"} })
			s.tellAll()
			s.tick(20 * time.Second)
			s.cycle("", "")
		},
		"bound": func(s *story, p *object.Pod) { s.change(p, func(p *object.Pod) { p.NodeName = "m" }) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			p := s.pod("p", 40, func(p *object.Pod) {
				p.Priority, p.NominatedNode, p.Labels = 1, "n", map[string]string{"zone": "elsewhere"}
			})
			q, high := s.pod("q", 40), s.pod("high", 50, func(p *object.Pod) { p.Priority = 2 })
			s.given(s.node("n", 40), p, q, high)
			s.cycle("", "") // high fits nowhere, nor does p, whose nomination ends; let it have it again
			s.cycle("", "")
			s.m.queue.Nominate(s.m.Entry(p.UID), "n")
			s.twin.queue.Nominate(s.twin.Entry(p.UID), "n")
			s.cycle("", "")
			s.where(q, queue.Unschedulable)
			end(s, p)
			s.tellAll()
			if at := s.m.Entry(q.UID).Place(); at != queue.Backoff && at != queue.Active {
				t.Errorf("q is %s", at)
			}
			s.where(high, queue.Unschedulable)
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

// Pods that are no business of ours take room, and nothing else.
func TestPodsOfOthers(t *testing.T) {
	s := newStory(t)
	theirs := s.pod("theirs", 30, func(p *object.Pod) { p.SchedulerName = "another" })
	s.given(s.node("n", 40), theirs)
	s.did()
	s.where(theirs, queue.Nowhere)
	s.change(theirs, func(p *object.Pod) { p.NodeName = "n" })
	s.tellAll()
	s.used(30)
	s.change(theirs, func(p *object.Pod) { p.Terminal = true })
	s.tellAll()
	s.used(0)
	going := s.pod("going", 30, func(p *object.Pod) { p.Terminating = true })
	s.given(going)
	s.cycle("", "")
	s.did("PublishEvent going-3 FailedScheduling: skip schedule deleting pod: ns/going")
	s.where(going, queue.Nowhere)
}

// Verify finds what does not hold.
func TestVerifyFindsDamage(t *testing.T) {
	stranger := &object.Pod{UID: "x"}
	for name, damage := range map[string]func(*Machine, *object.Pod){
		"table": func(m *Machine, _ *object.Pod) { m.table.Used(0)[0]++ },
		"queue": func(m *Machine, _ *object.Pod) { m.queue.Add(m.now, m.table.Pod("running-3").Pod) },
		"entry": func(m *Machine, p *object.Pod) {
			m.dequeue(m.pods["running-3"])
			m.pods["running-3"].entry = m.pods[p.UID].entry
		},
		"cycle":    func(m *Machine, p *object.Pod) { m.pods[p.UID].binding = nil },
		"both":     func(m *Machine, p *object.Pod) { m.pods[p.UID].extender = &extenderCycle{} },
		"place":    func(m *Machine, p *object.Pod) { m.table.Remove(p.UID) },
		"moved":    func(m *Machine, p *object.Pod) { m.pods[p.UID].binding.node = "m" },
		"phase":    func(m *Machine, p *object.Pod) { m.moveTo(reserve, m.pods[p.UID].binding) },
		"waiting":  func(m *Machine, p *object.Pod) { m.pods[p.UID].binding.phase = waitForWrites },
		"waits":    func(m *Machine, p *object.Pod) { m.waiting.add(m.pods[p.UID].binding) },
		"asking":   func(m *Machine, p *object.Pod) { m.asking.add(&extenderCycle{attempt: m.pods[p.UID].binding.attempt}) },
		"dequeued": func(m *Machine, p *object.Pod) { m.dequeue(m.pods[p.UID]) },
		"lost":     func(m *Machine, p *object.Pod) { m.pods[p.UID].entry = nil },
		"assumed":  func(m *Machine, p *object.Pod) { m.pods["running-3"].assumed = true },
		"name":     func(m *Machine, p *object.Pod) { delete(m.names, nameOf(p)) },
		"UID":      func(m *Machine, p *object.Pod) { delete(m.pods, p.UID) },
		"gone":     func(m *Machine, p *object.Pod) { m.pods["x"] = &podState{pod: stranger} },
		"ended":    func(m *Machine, p *object.Pod) { m.pods[p.UID].ended = m.pods[p.UID].binding },
		"in doubt": func(m *Machine, p *object.Pod) { m.table.Place(p, "m") },
	} {
		s := newStory(t)
		p := s.pod("p", 10)
		s.given(s.node("n", 40), s.pod("running", 10, func(p *object.Pod) { p.NodeName = "n" }), p)
		s.cycle("", "")
		if damage(s.m, p); s.m.Verify() == nil {
			t.Errorf("%s: not found", name)
		}
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
