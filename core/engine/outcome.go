package engine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/table"
)

// Choice is the result of one decision: the node for a pod.
type Choice struct {
	// Row is the chosen node's row in the table, -1 when there is none.
	Row table.Row
	// Feasible is the number of nodes that passed every filter. It includes nodes that
	// hosted filters were not asked about because a better one was found; Ties does as
	// well.
	Feasible int
	// Score is the chosen node's weighted total, Ties the number of nodes that have it.
	// Both are 0 where a single node was feasible: nothing was scored.
	Score int64
	Ties  int
	// Rejected is set when the pod was rejected as a whole (PreFilter), or deciding
	// failed (Code Error).
	Rejected *decision.Status
}

// Outcome is the answer for one pod: the choice, and on demand the reasons. It is valid
// until the table changes, the next decision, or Reuse.
type Outcome struct {
	Choice
	work *decider

	tallies []decision.Tally       // result of Tallies; nil: not asked for so far
	codes   byCause[decision.Code] // code of each cause
	// explained holds the blockers that RefitWithoutLower returned.
	explained byCause[*decision.Blocker]
}

// newOutcome returns an empty Outcome, in the memory of the last one that was released with
// Reuse if there is one.
func (e *Engine) newOutcome() *Outcome {
	if o := e.released; o != nil {
		e.released = nil
		return o
	}
	both := &struct { // allocated together
		Outcome
		decider
	}{}
	both.work = &both.decider
	return &both.Outcome
}

// Reuse releases an outcome, whose memory the next decision uses. The caller may not read
// it afterwards.
func (e *Engine) Reuse(o *Outcome) {
	d := o.work
	*d, *o = decider{}, Outcome{work: d}
	e.released = o
}
