package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// plan is whom a pod preempted last, as its record says.
type plan struct {
	node    string
	victims map[types.UID]*object.Pod // those that did not leave at once
}

// checkEvict: only pods of lower priority are evicted, and none twice, unless
// the API refused.
func (w *world) checkEvict(e Evict) {
	w.Helper()
	victim := e.Victim.UID
	if e.Victim.Priority >= e.Preemptor.Priority {
		w.Fatalf("%s of priority %d is evicted for %s of priority %d", victim, e.Victim.Priority, e.Preemptor.UID, e.Preemptor.Priority)
	}
	if p := w.pods[e.Victim.Key()]; w.evicted[victim] && p != nil && p.UID == victim {
		w.Fatalf("%s is evicted again", victim)
	}
	if w.evicting(victim) {
		w.Fatalf("%s is evicted while its eviction is under way", victim)
	}
}

func (w *world) evicting(victim types.UID) bool {
	return slices.ContainsFunc(w.requests, func(r Effect) bool {
		e, ok := r.(Evict)
		return ok && e.Victim.UID == victim
	})
}

// forget strikes a victim out that leaves no more, or has left.
func (w *world) forget(victim types.UID) {
	for _, plan := range w.plans {
		delete(plan.victims, victim)
	}
}

// checkPlan: others have to go for a pod only when all victims of the last time
// are gone or stay, or their node is gone.
func (w *world) checkPlan(d *decision.Decision) {
	w.Helper()
	if last := w.plans[d.UID]; w.toldNodes[last.node] != nil {
		for _, v := range last.victims {
			if w.leaving(v, last.node) && slices.ContainsFunc(w.effects, func(e Effect) bool { return sendsAway(e, d.UID) }) {
				w.Fatalf("%s preempts %v on %s while %s, which it preempted, is leaving %s", d.UID, d.Victims, d.NominatedNode, v.UID, last.node)
			}
		}
	}
	now := plan{node: d.NominatedNode, victims: map[types.UID]*object.Pod{}}
	for _, v := range d.Victims {
		victim := w.told[v.String()]
		if w.m.table.Pod(victim.UID) != nil && (w.evicting(victim.UID) || !victim.Terminating) { // not one that leaves by itself
			if w.escaped[victim.UID] { // pods for which its eviction failed count on it no more
				w.forget(victim.UID)
				delete(w.escaped, victim.UID)
			}
			now.victims[victim.UID] = victim
		}
	}
	w.plans[d.UID] = now
}

// sendsAway tells whether somebody has to go for the pod.
func sendsAway(e Effect, preemptor types.UID) bool {
	switch e := e.(type) {
	case Evict:
		return e.Preemptor.UID == preemptor
	case PublishEvent:
		return e.Reason == "Preempted" && e.Related.UID == preemptor
	}
	return false
}

// leaving tells whether a victim is known to be on the node still, and its
// eviction was not refused.
func (w *world) leaving(v *object.Pod, node string) bool {
	known := w.told[v.Key()]
	if known == nil || known.UID != v.UID || known.Terminal || w.escaped[v.UID] {
		return false
	}
	pl := w.m.table.Pod(v.UID)
	return pl != nil && w.m.table.Name(pl.Row) == node
}

// A victim that Permit or PreBind holds is stopped in memory and tried again
// later; the API hears of an eviction only when the binding was under way
// (in kube-scheduler: waiting pods, pods in PreBind).
func TestVictimsStoppedInMemory(t *testing.T) {
	const note = "Preempted by pod high-3 on node n (in kube-scheduler memory)."
	tests := map[string]struct {
		stage func(*story)
		says  string // of the victim's attempt; "": it is evicted through the API
		later bool   // only when its writes are answered
	}{
		"waiting":  {stage: func(s *story) { s.cycle("Permit", waits) }, says: "waiting on permit for pod: preempted"},
		"awaiting": {stage: func(s *story) { s.cycle("WritesDone", waits) }, says: "preempted by Fit"},
		"writing":  {stage: func(s *story) { s.cycle("PreBind", writes) }, says: "preempted by Fit", later: true},
		"binding":  {stage: func(s *story) { s.cycle("", "") }},
		"settling": {stage: func(s *story) { s.cycle("", ""); s.reply(vanished) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			low := s.pod("low", 40)
			s.given(s.node("n", 40), low)
			test.stage(s)
			high := s.pod("high", 40, func(p *object.Pod) { p.Priority = 1 })
			s.given(high)
			s.cycle("", "")
			told := slices.Contains(shown(s.effects), "PublishEvent low-1 Preempted: "+note)
			asked := slices.Contains(shown(s.effects), "Evict low-1 for high-3")
			if told != (test.says != "") || asked != (test.says == "") {
				t.Errorf("it does %q", shown(s.effects))
			}
			if test.later {
				s.where(low, queue.InFlight)
				s.used(40)
				s.tick(20 * time.Second)
				s.cycle("", "") // the preemptor does not preempt again
				if slices.ContainsFunc(s.effects, func(e Effect) bool { return sendsAway(e, high.UID) }) {
					t.Errorf("it does %q", shown(s.effects))
				}
				s.answer(slices.IndexFunc(s.requests, func(r Effect) bool { _, ok := r.(Write); return ok }), fine)
			}
			if test.says != "" {
				s.where(low, queue.ErrorBackoff)
				s.used(0)
				if d := s.decided[low.UID]; d.Err == nil || d.Err.Error() != test.says {
					t.Errorf("the victim's attempt ended with %v", d.Err)
				}
				if n := count(s, "Unreserve low"); n != 1 {
					t.Errorf("Reserve was undone %d times", n)
				}
			}
			s.settle()
			s.runs(high, "n")
			if p := s.pods[low.Key()]; (p != nil) != (test.says != "") {
				t.Errorf("of the victim is left %v", p)
			}
			s.checkRest()
		})
	}
}

// A preemptor is active as soon as its last victim is stopped in memory, though its
// backoff is not over.
func TestPreemptorOfStoppedVictimIsActivated(t *testing.T) {
	s := newStory(t)
	s.given(s.node("n", 40), s.pod("low", 40))
	s.cycle("PreBind", writes)
	high := s.pod("high", 40, func(p *object.Pod) { p.Priority = 1 })
	s.given(high)
	s.cycle("", "")
	s.where(high, queue.Unschedulable)
	s.answer(slices.IndexFunc(s.requests, func(r Effect) bool { _, ok := r.(Write); return ok }), fine)
	s.where(high, queue.Active)
}

// A victim that another writer binds before its writes are answered can no
// longer be stopped: it is evicted after all.
func TestVictimEscapesItsStop(t *testing.T) {
	s := newStory(t)
	low, high := s.pod("low", 40), s.pod("high", 40, func(p *object.Pod) { p.Priority = 1 })
	s.given(s.node("n", 40), low)
	s.cycle("PreBind", writes)
	s.given(high)
	s.cycle("", "")
	s.change(low, func(p *object.Pod) { p.NodeName = "n" })
	s.tellAll()
	s.settle()
	s.runs(high, "n")
	if s.pods[low.Key()] != nil {
		t.Error("the victim stays")
	}
	s.checkRest()
}

// prowl creates a pod that takes a node or half of it, of any priority.
func (c *chaos) prowl() {
	name := c.podName()
	if c.pods["ns/"+name] == nil {
		c.setPod(c.pod(name, oneOf[int64](c, 20, 20, 40), func(p *object.Pod) { p.Priority = int32(c.pick(4)) }))
	}
}

// distract makes an attempt fail, or hold up, at one point.
func (c *chaos) distract() {
	if c.pick(2) > 0 {
		return
	}
	points := map[string][]mood{"PreFilter": {fails}, "Reserve": {fails, rejects}, "Permit": {waits}, "PreBind": {writes}, "WritesDone": {waits}}
	point := oneOf(c, "PreFilter", "Reserve", "Permit", "PreBind", "PreBind", "WritesDone")
	c.moody.moods[point] = oneOf(c, points[point]...)
}

// TestChaosOfPreemption: two small nodes, more pods than fit, and victims that
// take their time. The world holds each plan and each eviction to its rules:
// only lesser pods, none twice, no new plan while victims of the last are
// leaving; and at rest nobody is nominated in vain.
func TestChaosOfPreemption(t *testing.T) {
	longer(t)
	rapid.Check(t, func(t *rapid.T) {
		c := &chaos{world: newWorld(t), t: t}
		c.setNode(c.node("n0", 40))
		c.setNode(c.node("n1", 40))
		actions := map[string]func(*rapid.T){}
		for name, action := range map[string]action{
			"create": {3, c.prowl}, "decide": {8, c.decide}, "reply": {6, c.reply}, "watch": {8, c.watch}, "pass": {4, c.pass},
			"remove": {1, c.remove}, "delete": {1, c.delete}, "bind elsewhere": {1, c.bindElsewhere}, "node": {1, func() {
				if name := fmt.Sprint("n", c.pick(2)); c.nodes[name] != nil && c.pick(2) == 0 {
					c.deleteNode(name)
				} else {
					c.setNode(c.node(name, 40))
				}
			}},
		} {
			for i := range action.weight {
				actions[fmt.Sprint(name, " ", i)] = func(t *rapid.T) {
					c.t = t
					c.distract()
					action.do()
					clear(c.moody.moods)
				}
			}
		}
		t.Repeat(actions)
		c.rest()
		c.leave()
	})
}

// A nominated pod that is on its way out keeps room on its node until it would be tried.
// Who found no room because of it is tried then.
func TestNominatedPodOnItsWayOut(t *testing.T) {
	s := newStory(t)
	leaving := s.pod("leaving", 40, func(p *object.Pod) { p.Priority, p.NominatedNode, p.Terminating = 1, "n", true })
	other := s.pod("other", 40, func(p *object.Pod) { p.Priority = 1 })
	s.given(s.node("n", 40), other, leaving)
	s.cycle("", "")
	s.where(other, queue.Unschedulable)
	s.cycle("", "")
	s.settle()
	s.runs(other, "n")
}

// A victim that goes calls all preemptors; those whose own victims are still
// leaving wait out their backoff, and are tried as soon as the last is gone.
func TestPreemptorsWaitForTheirVictims(t *testing.T) {
	s := newStory(t)
	var highs []*object.Pod
	for i := range 2 {
		s.given(s.node(fmt.Sprint("n", i), 40), s.pod(fmt.Sprint("low", i), 40))
		s.cycle("", "")
		s.reply(fine)
	}
	for i := range 2 {
		high := s.pod(fmt.Sprint("high", i), 40, func(p *object.Pod) { p.Priority = 1 })
		s.given(high)
		s.cycle("", "")
		highs = append(highs, high)
	}
	s.where(highs[0], queue.Unschedulable)
	s.where(highs[1], queue.Unschedulable)
	evict := func(preemptor *object.Pod, victim string) {
		s.answer(slices.IndexFunc(s.requests, func(r Effect) bool { e, ok := r.(Evict); return ok && e.Preemptor.UID == preemptor.UID }), fine)
		s.deletePod(victim)
		s.tellAll()
	}
	evict(highs[0], "ns/low0")
	s.where(highs[0], queue.Backoff)
	s.where(highs[1], queue.ErrorBackoff)
	s.cycle("", "")
	s.where(highs[0], queue.InFlight)
	if s.m.Ready() {
		t.Error("the other is to be tried, too")
	}
	evict(highs[1], "ns/low1")
	s.where(highs[1], queue.Backoff)
	s.settle()
	for _, p := range highs {
		if s.pods[p.Key()].NodeName == "" {
			t.Errorf("%s is not bound", p.Key())
		}
	}
	s.checkRest()
}
