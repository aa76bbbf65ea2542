package engine

import (
	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/table"
)

// Choice is the result of one decision: the node for a pod.
type Choice struct {
	// Row is the chosen node's row in the table, -1 when there is none.
	Row table.Row
	// Feasible is the number of nodes that passed every filter. It includes nodes that hosted
	// filters were not asked about because a better one was found; Ties does as well. It is 1 if
	// the pod fits on the node that it is nominated to: no other is evaluated.
	Feasible int
	// Score is the chosen node's weighted total, Ties the number of nodes that have it. Both are 0
	// if nothing was scored, as a single node was feasible.
	Score int64
	Ties  int
	// Rejected is set when the pod was rejected as a whole (PreFilter, RejectPod), or deciding
	// failed (Code Error). It is nil if the filters reject every node.
	Rejected *decision.Status
}

// Outcome is the answer for one pod: the choice, and on demand the reasons. It is valid
// until the table changes, the next decision, or Reuse.
type Outcome struct {
	Choice
	work *decider // the decision, for what is found out on demand

	tallies []decision.Tally       // result of Tallies; nil: not asked for so far
	codes   byCause[decision.Code] // code of each cause
	// explained holds the blockers that RefitWithoutLower returned, by cause.
	explained byCause[*decision.Blocker]
}

// newOutcome returns an empty Outcome. It reuses the last one that Reuse released, if there is one.
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

// Reuse releases an outcome, whose memory the next decision uses. The caller may not read it
// afterwards.
func (e *Engine) Reuse(o *Outcome) {
	d := o.work
	*d, *o = decider{}, Outcome{work: d}
	e.released = o
}
