package machine

import (
	"errors"
	"testing"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
)

// moodies changes the plugin Moody of both machines.
func (s *story) moodies(change func(*framework.Plugin)) {
	for _, m := range []*Machine{s.m, s.twin} {
		change(m.profiles[scheduler].Plugins["Moody"])
	}
}

// A kind that cannot be listed costs the pods about which a plugin that needs it
// has a say, with an error that names the kind, and no others. Once it is listed
// they are placed.
func TestUnlistedKind(t *testing.T) {
	s := newStory(t)
	s.moodies(func(pl *framework.Plugin) {
		pl.Reads.Kinds = []object.Kind{object.ResourceClaims}
		pl.PreFilter = func(_ *table.Table, p *object.Pod) framework.PreFilterResult {
			return framework.PreFilterResult{Skip: p.Name == "other"}
		}
	})
	p, other := s.pod("p", 10), s.pod("other", 10)
	s.given(s.node("n", 40))
	s.step(KindUnlisted{object.ResourceClaims, errors.New("forbidden")})
	s.given(p)
	s.cycle("", "")
	const want = `running PreFilter plugin "Moody": the objects of the kind ResourceClaim cannot be listed: forbidden`
	s.did("AttemptDone p-1: Error  "+want, "PublishEvent p-1 FailedScheduling: "+want, "PatchStatus")
	s.where(p, queue.ErrorBackoff)
	s.given(other)
	s.cycle("", "")
	s.did("AttemptDone other-2: Scheduled n", "Bind")

	s.step(KindListed{object.ResourceClaims})
	s.settle()
	s.runs(p, "n")
	s.runs(other, "n")
}

// A plugin that knows how to do without objects is asked as ever.
func TestOptionalReads(t *testing.T) {
	s := newStory(t)
	s.moodies(func(pl *framework.Plugin) {
		pl.Reads = framework.Reads{Kinds: []object.Kind{object.DeviceClasses}, Optional: true}
	})
	s.step(KindUnlisted{object.DeviceClasses, errors.New("forbidden")})
	p := s.pod("p", 10)
	s.given(s.node("n", 40), p)
	s.settle()
	s.runs(p, "n")
}

// A gate that waits for objects that nobody can see does not hide why: its pods
// are tried, and fail with the reason.
func TestUnlistedKindBehindAGate(t *testing.T) {
	s := newStory(t)
	listed := false
	s.moodies(func(pl *framework.Plugin) {
		pl.Reads.Kinds = []object.Kind{object.ResourceClaims}
		pl.PreEnqueue = func(*table.Table, *object.Pod) *decision.Status {
			if listed {
				return nil
			}
			return &decision.Status{Code: decision.UnschedulableAndUnresolvable, Reasons: []string{"its claim does not exist"}}
		}
	})
	p := s.pod("p", 10)
	s.given(s.node("n", 40), p)
	s.where(p, queue.Gated)
	s.step(KindUnlisted{object.ResourceClaims, errors.New("forbidden")})
	s.cycle("", "")
	s.did("AttemptDone p-1: Error  running PreFilter plugin", "PublishEvent", "PatchStatus")
	listed = true
	s.step(KindListed{object.ResourceClaims})
	s.settle()
	s.runs(p, "n")
}
