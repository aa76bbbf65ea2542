package engine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/table"
)

// Choice is the node that was chosen for a pod.
type Choice struct {
	// Row is the chosen node, -1 when there is none.
	Row table.Row
	// Feasible is the number of nodes that passed every filter. It includes nodes that
	// hosted filters were not asked about because a better one was found; Ties does as
	// well.
	Feasible int
	// Score is the chosen node's total, Ties the number of nodes that have it. Both
	// are 0 where a single node was feasible: nothing was scored.
	Score int64
	Ties  int
	// Rejected is set when the pod was rejected as a whole (PreFilter), or deciding
	// failed (Code Error).
	Rejected *decision.Status
}

// Outcome is the answer for one pod: the choice, and on demand the reasons. It is valid
// until the table changes.
type Outcome struct {
	Choice
	work *decider

	tallies []decision.Tally // once they were asked for; nil: not so far
	codes   byCause[decision.Code]
	// explained holds the blockers that RefitWithoutLower returned.
	explained byCause[*decision.Blocker]
}

// newOutcome returns an empty Outcome. It reuses the last one that was released with
// Reuse.
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

// Reuse releases an outcome for the next decision. The caller may not read it afterwards.
func (e *Engine) Reuse(o *Outcome) {
	d := o.work
	*d, *o = decider{}, Outcome{work: d}
	e.released = o
}
