package machine

import (
	"strings"
	"testing"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
)

// story is a world that a test leads step by step.
type story struct {
	*world
	*testing.T
}

func newStory(t *testing.T) *story { return &story{newWorld(t), t} }

func (s *story) Helper() { s.T.Helper() }

func (s *story) Fatalf(format string, args ...any) { s.T.Helper(); s.T.Fatalf(format, args...) }

func (s *story) Logf(format string, args ...any) { s.T.Logf(format, args...) }

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

func count(s *story, call string) (n int) {
	for _, c := range s.moody.calls {
		if c == call {
			n++
		}
	}
	return n
}
