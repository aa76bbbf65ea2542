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

// A pod that fits is assumed, bound, and reported as scheduled.
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

// Without nodes a pod fails with an error that says so, and runs when a node comes.
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
	if d := s.decided[p.UID]; d.PreEnqueueStatus == nil || d.PreEnqueueStatus.Plugin != "Gates" || d.NodesTotal != 1 {
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
			if known := s.m.pods.byName[again.NamespacedName()].pod; known.UID != again.UID {
				t.Fatalf("ns/p is %s, want %s", known.UID, again.UID)
			}
			s.settle()
			s.runs(again, "n")
			s.checkRest()
		})
	}
}

// A pod that is told of under another name is that pod alone, wherever it was under
// its own: every invariant holds.
func TestOneUIDTwoNames(t *testing.T) {
	for _, node := range []string{"", "n"} {
		for _, placed := range []bool{false, true} {
			s := newStory(t)
			p := s.pod("p", 40)
			s.given(s.node("n", 40), p)
			if placed {
				s.settle()
			}
			other := *p
			other.Name, other.NodeName = "q", node
			s.step(PodSet{Pod: &other})
			if m := s.m; m.Knows(p.NamespacedName()) || len(m.Pods()) != 1 || m.Pods()[0].Name != "q" {
				t.Errorf("node %q, placed %t: known are %v", node, placed, m.Pods())
			}
		}
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

// Where a PreBind plugin that may block has something to do, the node is shown; where none
// has, and once they have returned, it is not.
func TestNodeIsShownWhenPreBindBegins(t *testing.T) {
	s := newStory(t)
	s.m.options.HideExpectedNode, s.twin.options.HideExpectedNode = true, true
	p := s.pod("p", 40)
	s.given(s.node("n", 40), p)
	s.cycle("Permit", waits)
	s.m.options.HideExpectedNode = false
	c := s.m.pods.byUID[p.UID].binding
	for _, tc := range []struct {
		at   phase
		want string
	}{{waitOnPermit, "[]"}, {preBindCalled, "[PatchStatus p-1: <nil>, nominated to \"n\"]"}, {bindSent, "[]"}} {
		c.phase = tc.at
		if got := fmt.Sprint(shown(s.m.Step(s.m.now, PreBindBegins{UID: p.UID}))); got != tc.want {
			t.Errorf("%v: did %s", tc.at, got)
		}
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
			m.attempts.dequeue(m.pods.byUID["running-3"])
			m.pods.byUID["running-3"].entry = m.pods.byUID[p.UID].entry
		},
		"cycle":   func(m *Machine, p *object.Pod) { m.pods.byUID[p.UID].binding = nil },
		"both":    func(m *Machine, p *object.Pod) { m.pods.byUID[p.UID].extender = &extenderCycle{} },
		"place":   func(m *Machine, p *object.Pod) { m.table.RemovePod(p.UID) },
		"moved":   func(m *Machine, p *object.Pod) { m.pods.byUID[p.UID].binding.node = "m" },
		"phase":   func(m *Machine, p *object.Pod) { m.bindings.moveTo(reserve, m.pods.byUID[p.UID].binding) },
		"waiting": func(m *Machine, p *object.Pod) { m.pods.byUID[p.UID].binding.phase = waitForWrites },
		"waits":   func(m *Machine, p *object.Pod) { m.bindings.waiting.add(m.pods.byUID[p.UID].binding) },
		"asking": func(m *Machine, p *object.Pod) {
			m.extenders.cycles.add(&extenderCycle{attempt: m.pods.byUID[p.UID].binding.attempt})
		},
		"conditions": func(m *Machine, p *object.Pod) {
			m.pods.byUID["running-3"].stated = m.conditions.order.PushBack(m.pods.byUID["running-3"])
		},
		"dequeued":    func(m *Machine, p *object.Pod) { m.attempts.dequeue(m.pods.byUID[p.UID]) },
		"lost":        func(m *Machine, p *object.Pod) { m.pods.byUID[p.UID].entry = nil },
		"assumed":     func(m *Machine, p *object.Pod) { m.pods.byUID["running-3"].assumed = true },
		"name":        func(m *Machine, p *object.Pod) { delete(m.pods.byName, p.NamespacedName()) },
		"UID":         func(m *Machine, p *object.Pod) { delete(m.pods.byUID, p.UID) },
		"gone":        func(m *Machine, p *object.Pod) { m.pods.byUID["x"] = &podState{pod: stranger} },
		"ended":       func(m *Machine, p *object.Pod) { m.pods.byUID[p.UID].ended = m.pods.byUID[p.UID].binding },
		"unconfirmed": func(m *Machine, p *object.Pod) { m.table.AddPod(p, "m") },
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
