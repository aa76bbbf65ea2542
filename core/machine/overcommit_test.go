package machine

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// told are the over-commits that the last step told of.
func (s *story) toldOvercommits() (told []Overcommitted) {
	for _, e := range s.effects {
		if o, ok := e.(Overcommitted); ok {
			told = append(told, o)
		}
	}
	return told
}

// Another scheduler gives away room that we gave away, too: whichever binding the API
// shows last is the over-commit, and it is told once. An assumption alone is none.
func TestOvercommitByARace(t *testing.T) {
	s := newStory(t)
	ours, theirs := s.pod("ours", 30), s.pod("theirs", 30, func(p *object.Pod) { p.SchedulerName, p.NodeName = "another", "n" })
	s.given(s.node("n", 40), ours)
	s.cycle("", "")
	s.given(theirs)
	if n, told := s.m.Overcommits(), s.toldOvercommits(); n != 0 || told != nil || s.m.OvercommittedNodes() != 0 {
		t.Errorf("before our binding is done: %d over-commits, told %v", n, told)
	}
	s.answer(0, fine)
	s.tellAll()
	want := Overcommitted{Node: "n", Excess: table.Excess{Resource: v1.ResourceCPU, Requested: 60, Allocatable: 40}}
	told := s.toldOvercommits()
	if len(told) != 1 || told[0].Pod.Name != "ours" || told[0].Node != want.Node || told[0].Excess != want.Excess {
		t.Errorf("told %+v, want %+v", told, want)
	}

	// Nothing more goes there; what asks for nothing of it is no over-commit.
	next, idle := s.pod("next", 10), s.pod("idle", 0, func(p *object.Pod) { p.SchedulerName, p.NodeName = "another", "n" })
	s.given(idle, next)
	s.settle()
	if next.NodeName != "" || s.m.Overcommits() != 1 || s.m.OvercommittedNodes() != 1 {
		t.Errorf("the next is on %q; %d over-commits on %d nodes, want 1", next.NodeName, s.m.Overcommits(), s.m.OvercommittedNodes())
	}

	s.deletePod(theirs.Key())
	s.settle()
	s.runs(next, "n")
	if s.m.Overcommits() != 1 || s.m.OvercommittedNodes() != 0 {
		t.Errorf("after one has gone: %d over-commits on %d nodes", s.m.Overcommits(), s.m.OvercommittedNodes())
	}
}

// What was there before the first decision is no race of ours, and neither is a node
// that shrinks; both are over-committed nodes.
func TestOvercommittedAlready(t *testing.T) {
	s := newStory(t)
	there := func(name string, node string) *object.Pod {
		return s.pod(name, 30, func(p *object.Pod) { p.NodeName = node })
	}
	s.given(s.node("n", 40), s.node("m", 80), there("a", "n"), there("b", "n"), there("c", "m"))
	s.given(s.pod("first", 10))
	s.settle()
	s.given(s.node("m", 20))
	if s.m.Overcommits() != 0 || s.m.OvercommittedNodes() != 2 {
		t.Errorf("%d over-commits on %d nodes, want 0 on 2", s.m.Overcommits(), s.m.OvercommittedNodes())
	}
	s.deleteNode("m")
	s.tellAll()
	if s.m.OvercommittedNodes() != 1 {
		t.Errorf("%d nodes are over-committed when one has gone", s.m.OvercommittedNodes())
	}
}
