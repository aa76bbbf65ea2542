package machine

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/object"
)

// TestVictimsOfAnExtender: an extender may name pods of lower priority on nodes
// that were candidates, and no others.
func TestVictimsOfAnExtender(t *testing.T) {
	for name, c := range map[string]struct {
		left NodeVictims
		err  string
	}{
		"what was offered":  {NodeVictims{Node: "n", Victims: []types.UID{"low-2"}}, ""},
		"another, as lowly": {NodeVictims{Node: "n", Victims: []types.UID{"lower-3"}}, ""},
		"one of its rank": {NodeVictims{Node: "n", Victims: []types.UID{"low-2", "peer-4"}},
			`extender "strict": preempt: pod ns/peer on node "n" is not of lower priority`},
		"one elsewhere": {NodeVictims{Node: "n", Victims: []types.UID{"far-5"}}, `extender "strict": preempt: no pod of UID "far-5" is on node "n"`},
		"another node":  {NodeVictims{Node: "m", Victims: []types.UID{"far-5"}}, `extender "strict": preempt: node "m" was not among the candidates`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			runs := func(node string, priority int32) func(*object.Pod) {
				return func(p *object.Pod) { p.NodeName, p.Priority = node, priority }
			}
			s.given(s.node("n", 40), s.pod("low", 20, runs("n", 1)), s.pod("lower", 0, runs("n", 0)), s.pod("peer", 10, runs("n", 3)),
				s.pod("far", 10, runs("m", 0)))
			p := s.pod("p", 20, managed, func(p *object.Pod) { p.Priority = 3 })
			s.given(p)
			s.cycle("", "")
			s.did("CallExtender 0 to preempt for p-6 about [] [{n [low-2 lower-3] 0}]")
			s.says(ExtenderReply{Victims: []NodeVictims{c.left}})
			if c.err == "" {
				s.did("CallExtender 1 to preempt")
				return
			}
			if d := s.decided[p.UID]; d == nil || len(d.PostFilter) != 1 || d.PostFilter[0] != c.err || len(d.Victims) != 0 {
				t.Errorf("decided %+v", d)
			}
		})
	}
}
