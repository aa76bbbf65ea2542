package engine

import "github.com/berth-scheduler/berth/core/ranking"

// A transient view is not kept. Its class comes by for the first time, or its
// answers hold for one decision. When the decision is over the next transient view
// has its buffers.

// buffers are the columns of a transient view.
type buffers struct {
	index  *ranking.Index
	shared *sharedAnswers // where the view shares its answers with no other
}

// acquire makes the view a transient one, with buffers.
func (e *Engine) acquire(v *view, s *sharedAnswers) {
	b := &buffers{}
	if n := len(e.buffers); n > 0 {
		b, e.buffers = e.buffers[n-1], e.buffers[:n-1]
	}
	if s.signature == "" && b.shared != nil {
		s.reuse(b.shared)
	}
	v.buffers, e.early[v.class.signature] = b, v
	v.build(s, b.index)
}

// release takes the buffers of a transient view back.
func (e *Engine) release(v *view) {
	if v.buffers.index = v.index; v.shared.signature == "" {
		v.buffers.shared = v.shared
	}
	if e.early[v.class.signature] == v {
		delete(e.early, v.class.signature)
	}
	e.buffers = append(e.buffers, v.buffers)
}

// releaseTransient releases the transient view of the last decision.
func (e *Engine) releaseTransient() {
	if e.transient != nil {
		e.release(e.transient)
		e.transient = nil
	}
}
