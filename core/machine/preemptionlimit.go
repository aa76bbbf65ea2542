package machine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A pod may preempt so often without being placed. Somebody else takes the room
// then each time, another scheduler say, whose pods it preempts again and again.
// From then on it waits between two preemptions, twice as long each time. The
// last wait is no longer than the queue lets a pod wait without an event.
const (
	freePreemptions = 10
	firstWait       = time.Minute
	lastWait        = 5 * time.Minute
	preemptionsOver = 30 * time.Minute // after that time without one they no longer count
)

// heldBack is the message for a pod that could preempt others but may not yet.
const heldBack = "preemption: held back, as 10 preemptions in a row have not placed the pod"

// preemptionCount counts the preemptions in a row of a pod that has not been placed
// since.
type preemptionCount struct {
	n    int
	last time.Time
}

func (p *preemptionCount) add(now time.Time) {
	if p.over(now) {
		p.n = 0
	}
	p.n++
	p.last = now
}

func (p *preemptionCount) over(now time.Time) bool { return now.Sub(p.last) > preemptionsOver }

// due returns when the next may be.
func (p *preemptionCount) due(now time.Time) time.Time {
	if p.n < freePreemptions || p.over(now) {
		return now
	}
	wait := firstWait
	for n := p.n; n > freePreemptions && wait < lastWait; n-- {
		wait *= 2
	}
	return p.last.Add(min(wait, lastWait))
}

// holdsBack reports whether the pod may not preempt these victims yet, and counts the
// refusal. A pod whose victims are all leaving already is not held back.
func (w *preemptors) holdsBack(a *attempt, victims []types.UID) bool {
	if !slices.ContainsFunc(victims, w.stays) || !a.state.preemptionCount.due(w.now).After(w.now) {
		return false
	}
	w.heldBack++
	return true
}
