package machine

import (
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/object"
)

// lookAhead counts the pods whose turn comes before the engine is asked again
// whether it wants to see others ahead of theirs.
type lookAhead struct {
	left   int
	soon   []*object.Pod
	coming []*engine.Request
}

// lookAheadFrom shows the engine the pods whose turn it is now and soon, where it
// has so much to do for each that it goes faster for several at a time. A
// plugin that panics will do so again when its pod's turn comes.
func (d *schedulingCycles) lookAheadFrom(p *object.Pod) {
	l := &d.lookAhead
	if l.left--; l.left > 0 {
		return
	}
	n := d.engine.WorthAhead()
	if n < 2 {
		return
	}
	l.soon = d.queue.Next(append(l.soon[:0], p), n-1)
	l.coming = l.coming[:0]
	for _, p := range l.soon {
		l.coming = append(l.coming, d.pods.byUID[p.UID].request)
	}
	l.left = len(l.soon)
	if l.left > 1 {
		_ = d.guard.run("looking ahead", "", func() { d.engine.RefreshAhead(l.coming) })
	}
	clear(l.soon)
	clear(l.coming)
}
