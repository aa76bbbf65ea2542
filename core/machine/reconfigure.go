package machine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/queue"
)

// reconfigure takes in that the profiles have changed. What was evaluated under the
// old ones is forgotten, attempts that wait for extenders are broken off, and all
// pods that wait are tried again. Binding cycles go on to their end with the
// plugins with which they began: these know what is to be undone. An attempt whose
// PostFilter plugin writes ends when that is done.
func (m *Machine) reconfigure(e Reconfigured) {
	m.options.Profiles = e.Profiles
	for _, p := range e.Profiles {
		m.profiles[p.Name] = p
	}
	m.engine.Reconfigure(e.Workers)
	for _, ps := range m.pods { // any order: each by itself
		if ps.request != nil {
			ps.request = engine.For(m.profiles[ps.request.Profile.Name], ps.request.Pod)
		}
		ps.toldGated = false
	}
	var brokenOff []*queue.Entry
	for _, c := range slices.Clone(m.extenderCycles) {
		if c.postFilter != nil && len(c.postFilter.result.Writes) > 0 {
			continue
		}
		brokenOff = append(brokenOff, c.state.entry)
		m.endExtenderCycle(c.state)
	}
	m.lookAhead = lookAhead{}
	m.queue.Reconfigure(m.now, queue.Backoffs{Initial: e.InitialBackoff, Max: e.MaxBackoff}, brokenOff)
}
