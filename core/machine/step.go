package machine

import (
	"time"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/queue"
	"github.com/berth-scheduler/berth/core/table"
)

// step is what all parts of a machine share: the cluster, the pods that wait, and the step
// that is under way, with its time and its effects so far.
type step struct {
	table *table.Table
	queue *queue.Queue

	now     time.Time
	number  uint64 // of the step
	news    uint64 // steps that were no Tick
	effects []Effect
	changed Change
}

// begin begins a step for the event.
func (s *step) begin(now time.Time, e Event) {
	s.now, s.effects, s.changed = now, nil, Change{}
	s.number++
	s.table.SetNow(now)
	if _, tick := e.(Tick); !tick {
		s.news++
	}
}

// end returns the effects of the step. What is left by then is of a step that panicked.
func (s *step) end() []Effect {
	effects := s.effects
	s.effects = nil
	return effects
}

// emit adds an effect of the step.
func (s *step) emit(e Effect) { s.effects = append(s.effects, e) }

// moveAll passes the event to the queue, which moves the pods that it may help.
func (s *step) moveAll(e *framework.Event) {
	if e.ActionType != 0 {
		s.recordChange(e.Resource, e.ActionType)
		s.queue.MoveAllToActiveOrBackoff(s.now, e, nil)
	}
}

// Change is what an event changed in the cluster, as a resource and an action.
type Change struct {
	Resource framework.EventResource
	Action   framework.ActionType // 0: nothing
	// Bound: it is a pod of one of our profiles, which was seen without a node before.
	Bound bool
}

// recordChange records what the step changed in the cluster, if nothing was recorded yet.
func (s *step) recordChange(r framework.EventResource, a framework.ActionType) {
	if s.changed.Action == 0 {
		s.changed.Resource, s.changed.Action = r, a
	}
}
