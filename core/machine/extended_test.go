package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// testExtenders manage the pods that have an API object: one that must be
// heard, and binds, and one that may be ignored.
var testExtenders = []Extender{
	{Name: "strict", Filter: true, Prioritize: true, Preempt: true, Bind: true, Weight: 1, Limit: 2, Timeout: 5 * time.Second},
	{Name: "lax", Filter: true, Prioritize: true, Preempt: true, Weight: 2, Limit: 1, Ignorable: true, Timeout: time.Second},
}

// managed has the extenders manage the pod.
func managed(p *object.Pod) { p.API = &v1.Pod{} }

func nodeNames(nodes []*object.Node) (names []string) {
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names
}

// left leaves all of the candidates.
func left(candidates []framework.Candidate) (all []NodeVictims) {
	for _, c := range candidates {
		l := NodeVictims{Node: c.Node, Violations: c.NumPDBViolations}
		for _, p := range c.Victims {
			l.Victims = append(l.Victims, p.UID)
		}
		all = append(all, l)
	}
	return all
}

// checkAsk: no extender has more to do than it may, and each is asked about
// nodes and pods that the machine was told of.
func (w *world) checkAsk(e CallExtender) {
	w.Helper()
	if w.m.extenders.busy[e.Extender] > testExtenders[e.Extender].Limit+testExtenders[1-e.Extender].Limit {
		w.Fatalf("%d pods are with extender %d", w.m.extenders.busy[e.Extender], e.Extender)
	}
	if len(e.Nodes) == 0 && len(e.Candidates) == 0 {
		w.Fatalf("%s: extender %d is asked about nothing", e.Pod.UID, e.Extender)
	}
	for _, n := range e.Nodes {
		if w.toldNodes[n.Name] != n {
			w.Fatalf("%s: extender %d is asked about node %s, which is not so", e.Pod.UID, e.Extender, n.Name)
		}
	}
}

// answerAsk has an extender agree, fail, say nothing, be of another mind, or
// talk of something else.
func (w *world) answerAsk(e CallExtender, how fate) {
	w.Helper()
	a := ExtenderReply{UID: e.Pod.UID, Call: e.Call}
	names := nodeNames(e.Nodes)
	switch how {
	case lost:
		return
	case refused:
		a.Err = errFate
	case vanished:
		a.Failed = map[string]string{}
		for i, n := range names {
			if i%2 == 0 {
				a.Failed[n] = "not this one"
			}
		}
		a.Passed = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return a.Failed[n] != "" })
	case delayed:
		stray := a
		stray.Call += 1000
		w.step(stray)
		a.Passed = append([]string{"", "nowhere", "n0"}, names...)
		a.Scores = map[string]int64{"nowhere": 10}
		a.Victims = []NodeVictims{{Node: "nowhere", Victims: []types.UID{"nobody"}}}
	default:
		a.Passed, a.Scores, a.Victims = names, map[string]int64{}, left(e.Candidates)
		for i, n := range names {
			a.Scores[n] = int64(i)
		}
	}
	w.step(a)
}

// TestFilterChain: extenders are asked one after the other about what is left,
// then all for scores; the answer counts on the table as it is then.
func TestFilterChain(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 10, managed)
	s.given(s.node("a", 40), s.node("b", 40), s.node("c", 40), p)
	s.cycle("", "")
	s.did("CallExtender 0 to filter for p-1 about [a b c]")
	s.where(p, queue.InFlight)
	s.says(ExtenderReply{Passed: []string{"c", "b", "a"}})
	s.did("CallExtender 1 to filter for p-1 about [a b c]")
	other := s.pod("other", 40) // no extender manages it
	s.given(other)
	s.cycle("", "")
	s.did("AttemptDone other-5: Scheduled", "Bind other-5 to")
	taken := s.decided[other.UID].Node
	s.says(ExtenderReply{Passed: []string{"a", "b", "c"}})
	var rest []string
	for _, n := range []string{"a", "b", "c"} {
		if n != taken {
			rest = append(rest, n)
		}
	}
	s.did(fmt.Sprintf("CallExtender 0 to prioritize for p-1 about %v", rest), fmt.Sprintf("CallExtender 1 to prioritize for p-1 about %v", rest))
	s.says(ExtenderReply{Scores: map[string]int64{rest[0]: 5}})
	s.did()
	s.says(ExtenderReply{Scores: map[string]int64{rest[1]: 3, taken: 10}})
	s.did("AttemptDone p-1: Scheduled "+rest[1], "BindByExtender 0 p-1 to "+rest[1])
	// 75 by the plugin, 3 from the second extender, weight 2, tenfold
	if d := s.decided[p.UID]; d.Ties != 1 || d.NodesFeasible != 2 {
		t.Errorf("the record is %+v", d)
	}
}

// TestVerdicts has, for the first extender's answer about nodes a and b, how
// the attempt ends.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer ExtenderReply
		did    []string
	}{
		{"all fail", ExtenderReply{Failed: map[string]string{"a": "no", "b": "no"}},
			[]string{"AttemptDone p-3: Unschedulable", "PublishEvent p-3 FailedScheduling: 0/2 nodes are available: 2 no. nobody to preempt", "PatchStatus"}},
		{"for good, and that counts", ExtenderReply{Failed: map[string]string{"a": "no"}, Unresolvable: map[string]string{"a": "never", "b": "no"}},
			[]string{"AttemptDone p-3: Unschedulable", "PublishEvent p-3 FailedScheduling: 0/2 nodes are available: 1 never, 1 no. nobody to preempt", "PatchStatus"}},
		{"none without a word", ExtenderReply{},
			[]string{"AttemptDone p-3: Unschedulable", "PublishEvent p-3 FailedScheduling: 0/2 nodes are available: nobody to preempt", "PatchStatus"}},
		{"an error", ExtenderReply{Err: errFate}, []string{"AttemptDone p-3: Error", "PublishEvent p-3 FailedScheduling: the network", "PatchStatus p-3: &{False SchedulerError the network"}},
		{"a node that nobody asked about", ExtenderReply{Passed: []string{"z"}}, []string{"AttemptDone p-3: Unschedulable", "PublishEvent", "PatchStatus"}},
		{"one passes", ExtenderReply{Passed: []string{"b"}}, []string{"CallExtender 1 to filter for p-3 about [b]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t)
			p := s.pod("p", 10, managed)
			p.UID = "p-3"
			s.given(s.node("a", 40), s.node("b", 40), p)
			s.cycle("", "")
			s.says(c.answer)
			s.did(c.did...)
			if d := s.decided[p.UID]; d != nil && d.Result == decision.ResultUnschedulable && !slices.Equal(d.RejectedBy, []string{"Extender"}) {
				t.Errorf("rejected by %v", d.RejectedBy)
			}
		})
	}
}

// TestNominatedFirst: the node that the pod is nominated to is tried alone.
func TestNominatedFirst(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 10, managed, func(p *object.Pod) { p.NominatedNode = "b" })
	s.given(s.node("a", 40), s.node("b", 40), p)
	s.cycle("", "")
	s.did("CallExtender 0 to filter for " + string(p.UID) + " about [b]")
	s.says(ExtenderReply{Err: errFate}) // gives up the node, not the pod
	s.did("CallExtender 0 to filter for " + string(p.UID) + " about [a b]")

	s = newStory(t)
	q := s.pod("q", 10, managed, func(p *object.Pod) { p.NominatedNode = "b" })
	s.given(s.node("a", 40), s.node("b", 40), q)
	s.cycle("", "")
	s.did("CallExtender 0 to filter for " + string(q.UID) + " about [b]")
	s.says(ExtenderReply{Passed: []string{"b"}})
	s.did("CallExtender 1 to filter for " + string(q.UID) + " about [b]")
	s.says(ExtenderReply{Passed: []string{"b"}})
	s.did("AttemptDone "+string(q.UID)+": Scheduled b", "BindByExtender")
}

// TestTakenMeanwhile: where all that extenders let pass is taken and another
// node became free, they are asked again.
func TestTakenMeanwhile(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 30, managed)
	s.given(s.node("a", 40), p)
	s.cycle("", "")
	s.given(s.pod("other", 40))
	s.cycle("", "")
	s.did("AttemptDone other", "Bind other")
	s.given(s.node("b", 40))
	s.says(ExtenderReply{Passed: []string{"a"}})
	s.did("CallExtender 0 to filter for " + string(p.UID) + " about [b]")
	s.given(s.node("c", 40), s.node("b", 0))
	s.says(ExtenderReply{Passed: []string{"b"}})
	s.did("CallExtender 0 to filter for " + string(p.UID) + " about [c]")
	s.given(s.node("d", 40), s.node("c", 0))
	s.says(ExtenderReply{Passed: []string{"c"}})
	s.did("AttemptDone "+string(p.UID)+": Error  3 times in a row the nodes that the extenders accepted did not fit", "PublishEvent", "PatchStatus")
	s.settle()
	s.runs(p, "d")
}

// TestNoAnswer: the machine gives up on an answer by itself, and a late one is
// nothing.
func TestNoAnswer(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 10, managed)
	s.given(s.node("a", 40), p)
	s.cycle("", "")
	late := s.requests[0].(CallExtender)
	s.requests = nil
	s.tick(9 * time.Second)
	s.did()
	s.tick(time.Second)
	s.did("AttemptDone "+string(p.UID)+`: Error  extender "strict": filter: no answer in 10s`, "PublishEvent", "PatchStatus")
	s.step(ExtenderReply{UID: p.UID, Call: late.Call, Passed: []string{"a"}})
	s.did()
	s.settle()
	s.runs(p, "a")
}

// TestWhileAsked: what becomes of a pod that changes while it is asked about.
func TestWhileAsked(t *testing.T) {
	for name, change := range map[string]func(*story, *object.Pod){
		"deleted":         func(s *story, p *object.Pod) { s.deletePod(p.Key()) },
		"being deleted":   func(s *story, p *object.Pod) { s.change(p, func(p *object.Pod) { p.Terminating = true }) },
		"bound elsewhere": func(s *story, p *object.Pod) { s.change(p, func(p *object.Pod) { p.NodeName = "a" }) },
		"made anew":       func(s *story, p *object.Pod) { s.deletePod(p.Key()); s.setPod(s.pod("p", 20, managed)) },
		"relabelled": func(s *story, p *object.Pod) {
			s.change(p, func(p *object.Pod) { p.Labels = map[string]string{"zone": ""} })
		},
		"without nodes": func(s *story, _ *object.Pod) { s.deleteNode("a") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			p := s.pod("p", 10, managed)
			s.given(s.node("a", 40), p)
			s.cycle("", "")
			change(s, p)
			s.tellAll()
			if len(s.requests) > 0 {
				s.answer(0, fine)
			}
			if name == "without nodes" {
				s.setNode(s.node("a", 40))
			}
			s.settle()
			s.checkRest()
		})
	}
}

// TestLine: no more pods are with an extender than may be, and the most
// important comes next.
func TestLine(t *testing.T) {
	s := newStory(t)
	s.given(s.node("a", 40))
	for i, name := range []string{"p", "low", "high"} {
		s.given(s.pod(name, 0, managed, func(p *object.Pod) { p.Priority, p.UID = int32(i), types.UID(name) }))
		s.cycle("", "")
	}
	s.did() // "lax" takes one at a time, and has none yet; "strict" takes two
	if s.m.ExtenderCycles() != 3 || len(s.m.extenders.line) != 1 {
		t.Fatalf("%d pods with extenders, %d in line", s.m.ExtenderCycles(), len(s.m.extenders.line))
	}
	s.says(ExtenderReply{Passed: []string{"a"}}) // now "lax" is busy
	s.did("CallExtender 1 to filter for p about [a]")
	s.says(ExtenderReply{Passed: []string{"a"}})
	s.did("CallExtender 1 to filter for low about [a]") // who has started is not held back
	s.says(ExtenderReply{Passed: []string{"a"}})
	s.did("AttemptDone p: Scheduled a", "BindByExtender 0 p")
	s.says(ExtenderReply{Err: errFate}) // "lax" may be ignored
	s.did("AttemptDone low: Scheduled a", "BindByExtender 0 low", "CallExtender 0 to filter for high about [a]")
	s.settle()
	s.checkRest()
}

// TestBindBy: an extender's word on a binding counts only after the API's.
func TestBindBy(t *testing.T) {
	s := newStory(t)
	p := s.pod("p", 10, managed)
	s.given(s.node("a", 40), p)
	s.cycle("", "")
	s.says(ExtenderReply{Passed: []string{"a"}})
	s.says(ExtenderReply{Passed: []string{"a"}})
	s.did("AttemptDone", "BindByExtender 0 "+string(p.UID)+" to a")
	s.requests = nil
	s.step(BindReply{UID: p.UID, Result: BindDone}) // it says so, and did nothing
	s.did("ReadPod " + string(p.UID))
	s.reply(fine)
	s.did("BindByExtender 0")
	s.requests = nil
	s.step(BindReply{UID: p.UID, Result: BindRefused, Err: errFate})
	s.did("ReadPod " + string(p.UID))
	s.reply(fine)
	s.did("AttemptDone "+string(p.UID)+": Error  the network", "PublishEvent", "PatchStatus")
	s.settle()
	s.runs(p, "a")
	s.checkRest()
}

// says answers the first question that is open.
func (s *story) says(a ExtenderReply) {
	s.T.Helper()
	i := slices.IndexFunc(s.requests, func(e Effect) bool { _, asks := e.(CallExtender); return asks })
	if i < 0 {
		s.T.Fatalf("nobody is asked: %q", shown(s.requests))
	}
	e := s.requests[i].(CallExtender)
	s.requests = slices.Delete(s.requests, i, i+1)
	a.UID, a.Call = e.Pod.UID, e.Call
	s.step(a)
}
