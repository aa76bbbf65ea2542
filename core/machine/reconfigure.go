package machine

import (
	"slices"

	"github.com/berth-scheduler/berth/core/engine"
	"github.com/berth-scheduler/berth/core/queue"
)

// reconfigure replaces the profiles. It drops what was evaluated under the old ones,
// breaks off attempts that wait for extenders, and makes all waiting pods active. Binding
// cycles go on with their old plugins, which know what to undo. An attempt whose
// PostFilter plugin writes ends when that is done.
func (m *Machine) reconfigure(e Reconfigured) {
	m.options.Profiles = e.Profiles
	for _, p := range e.Profiles {
		m.profiles[p.Name] = p
	}
	m.engine.Reconfigure(e.Workers)
	for _, ps := range m.pods.byUID { // any order: each by itself
		if ps.request != nil {
			ps.request = engine.For(m.profiles[ps.request.Profile.Name], ps.request.Pod)
		}
		ps.toldGated = false
	}
	var brokenOff []*queue.Entry
	for _, c := range slices.Clone(m.extenders.cycles) {
		if c.postFilter != nil && len(c.postFilter.result.Writes) > 0 {
			continue
		}
		brokenOff = append(brokenOff, c.state.entry)
		m.extenders.finish(c.state)
	}
	m.queue.Reconfigure(m.now, queue.Backoffs{Initial: e.InitialBackoff, Max: e.MaxBackoff}, brokenOff)
}
