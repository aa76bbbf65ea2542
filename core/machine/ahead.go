package machine

import (
	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/object"
)

// lookAhead shows the engine the pods whose turn it is now and soon, where it
// has so much to do for each that it goes faster for several at a time. A
// plugin that panics will do so again when its pod's turn comes.
func (m *Machine) lookAhead(p *object.Pod) {
	if m.ahead--; m.ahead > 0 {
		return
	}
	n := m.engine.WorthAhead()
	if n < 2 {
		return
	}
	m.soon = m.queue.Next(append(m.soon[:0], p), n-1)
	m.coming = m.coming[:0]
	for _, p := range m.soon {
		m.coming = append(m.coming, engine.For(m.profiles[p.SchedulerName], p))
	}
	m.ahead = len(m.soon)
	if m.ahead > 1 {
		_ = m.guard("looking ahead", "", func() { m.engine.RefreshAhead(m.coming) })
	}
	clear(m.soon)
	clear(m.coming)
}
